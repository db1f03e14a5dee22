"""`pdcl resume RUN`: continue a run that was interrupted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pdcl.errors import RunFinished
from pdcl.printable import say

USAGE = """usage: pdcl resume RUN [options]

  pdcl resume runs/digits-pdcl-m100-s0

  --data DIR                 where the data of benchmarks lies
  --network PKG.MOD:BUILD    where the run was given its own network
  --plugin FILE              a Python file that registers methods or streams
  --no-snapshot              don't keep what memory holds at the end
  --checkpoint-every 30s     save the state so often, or every so many steps (500)

RUN is the directory of a run. It goes on from its newest checkpoint to the result that it would have had."""


@dataclass
class Resuming:
    """How a run goes on.

    data: where the data of benchmarks lies
    network: PACKAGE.MODULE:FUNCTION, where the run was given its own network
    plugin: a Python file that registers methods or streams
    snapshot: keep what memory holds at the end
    checkpoint_every: save the state every so many steps (500) or so often (30s, 5m)
    """

    data: str | None = None
    network: str = ""
    plugin: str | None = None
    snapshot: bool = True
    checkpoint_every: str = "30s"


def main(argv: list[str]) -> int:
    if not argv or argv[0].startswith("-"):
        say(USAGE)
        return 0 if "--help" in argv or "-h" in argv else 2
    from pdcl.cli.building import own_network
    from pdcl.cli.display import Display
    from pdcl.cli.form import parse
    from pdcl.cli.run import close
    from pdcl.learning.placement import keep_freed_memory
    from pdcl.running.plugins import load_file
    from pdcl.running.resume import resume

    keep_freed_memory()
    path = Path(argv[0])
    options = parse([Resuming], {}, argv[1:], "pdcl resume RUN", USAGE.splitlines()[-1])
    if plugin := options.pop("plugin", None):
        load_file(plugin)
    options["network"] = own_network(options.get("network") or None, _seed(path))
    try:
        with Display() as display:
            resume(path, listeners=[display.listener], **options)
    except RunFinished:
        say(f"{path} is finished already: shown, not run again")
    close([path])
    return 0


def _seed(path: Path) -> int:
    """Of the run: one that was stopped before its first checkpoint starts from the weights that it began with."""
    from pdcl.records.reading import read_config

    seed = read_config(path).get("seed")
    return seed if isinstance(seed, int) else 0
