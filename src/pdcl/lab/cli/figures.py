"""`pdcl figures DIR…`: the plots of a paper from finished runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pdcl.cli.form import plain
from pdcl.printable import say


@dataclass
class Figures:
    """Draw every plot that the runs have data for, as SVG, PDF and PNG; says what it leaves out and why."""

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR …")]
    """Directories that hold runs, or runs."""

    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("figures")
    """Directory to write to."""


def main(argv: Sequence[str] | None = None) -> int:
    options = tyro.cli(plain(Figures), args=argv, prog="pdcl figures")
    from pdcl.errors import UsageError
    from pdcl.lab.figures.drawing import draw

    if not options.directories:
        raise UsageError("name a directory that holds runs, such as the --out of `pdcl run`")
    drawn = draw(options.directories, options.out)
    for name in dict.fromkeys(path.stem for path in drawn.paths):
        say(f"drawn    {name}")
    for name, why in drawn.skipped.items():
        say(f"left out {name}: {why}")
    say(f"{options.out} holds {len(drawn.paths)} files")
    say(f"next: pdcl report {shlex.quote(str(options.directories[0]))}")
    return 0
