"""`pdcl report DIR…`: any set of runs as one self-contained HTML page."""

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
class Report:
    """Write one HTML file that shows finished runs: the table, the finding, and every run in charts. Works offline.

    For the directory of a saved model: its life, with every limit, what was then, what is now and the verdict.
    """

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR …")]
    """Directories that hold runs, or runs; or one saved model."""

    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report.html")
    """The file to write."""

    no_samples: bool = False
    """Keep the content of samples in memory out of the file."""

    title: str | None = None
    """What the page is called."""


def main(argv: Sequence[str] | None = None) -> int:
    options = tyro.cli(plain(Report), args=argv, prog="pdcl report", config=(tyro.conf.FlagCreatePairsOff,))
    from pdcl.errors import UsageError
    from pdcl.reports.life import is_model
    from pdcl.reports.writing import write_report

    if not options.directories:
        raise UsageError("name a directory that holds runs, such as the --out of `pdcl run`")
    path = write_report(options.directories, options.out, not options.no_samples, options.title)
    say(f"{path} ({path.stat().st_size / 2**20:.1f} MB): open it in any browser, or send it to someone")
    first = shlex.quote(str(options.directories[0]))
    say(f"next: pdcl gate {first} --help" if is_model(options.directories[0]) else f"next: pdcl figures {first}")
    return 0
