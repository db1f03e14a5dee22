"""What the lab's commands share: how they are asked, and how they answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import tyro
from rich.table import Table

from pdcl.cli.form import plain
from pdcl.errors import UsageError
from pdcl.screen import Screen

T = TypeVar("T")


def parsed(kind: type[T], argv: list[str], command: str, config: tuple[object, ...] = ()) -> T:
    """The options of a command; what can't be read ends in a line that names its help."""
    try:
        return tyro.cli(plain(kind), args=argv, prog=command, config=config)
    except SystemExit as stop:
        if stop.code:
            raise UsageError(f"see '{command} --help'") from stop
        raise


def unfolded() -> Screen:
    """A pipe has no width; what is read by programs shouldn't be folded."""
    console = Screen()
    return console if console.is_terminal else Screen(width=500)


def numbers(columns: Iterable[str], texts: Iterable[str]) -> Table:
    """A table without lines: `texts` are the columns of words, all others are numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name, justify="left" if name in texts else "right")
    return table
