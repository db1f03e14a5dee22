"""`pdcl unpack FILE --out DIR`: runs that were packed into one file, as records again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pdcl.cli.form import plain
from pdcl.printable import counted, say


@dataclass
class Unpack:
    """Make records of the runs in a packed file, such as the one that `pdcl paper` leaves beside its figures.

    A study then counts them as finished. They have no checkpoints, and only some of their events.
    """

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """A packed file: runs.jsonl.gz."""

    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """Directory for the runs; those that are there already stay as they are."""


def main(argv: Sequence[str] | None = None) -> int:
    options = tyro.cli(plain(Unpack), args=argv, prog="pdcl unpack")
    from pdcl.lab.studies.packing import unpack

    found = unpack(options.file, options.out)
    say(f"{counted(len(found.written), 'run')} written to {options.out}, {len(found.kept)} were there already")
    say(f"next: pdcl results {options.out}")
    return 0
