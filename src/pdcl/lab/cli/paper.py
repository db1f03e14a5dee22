"""`pdcl paper DIR…`: what runs of `pdcl study paper` say of each claim of the paper, as one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pdcl.cli.form import plain
from pdcl.printable import say


@dataclass
class Paper:
    """Write a Markdown page with every claim of the paper, held or not, and all figures and tables."""

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR …")]
    """Directories that hold runs of `pdcl study paper`."""

    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("paper.md")
    """File to write; figures go to a directory of the same name beside it."""


def main(argv: Sequence[str] | None = None) -> int:
    options = tyro.cli(plain(Paper), args=argv, prog="pdcl paper")
    from pdcl.errors import UsageError
    from pdcl.lab.paper.page import write_page

    if not options.directories:
        raise UsageError("name a directory that holds runs of `pdcl study paper`, such as runs/paper")
    verdicts = write_page(options.directories, options.out)
    say(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    say(f"wrote {options.out} and {options.out.parent / options.out.stem}")
    say("next: pdcl study paper --dry-run   (what isn't run yet)")
    return 0
