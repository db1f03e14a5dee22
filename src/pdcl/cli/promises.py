"""The table of promises on the screen: in colour on a terminal, plain lines anywhere else."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pdcl.judging.promise import Promise
from pdcl.judging.table import Promises

STYLES = {"kept": "green", "learned": "green", "BROKEN": "bold red", "NOT LEARNED": "bold red"}
INDENT = 2


def plain_table(promises: Promises) -> Text:
    """Lines that can be searched and compared, whatever the width."""
    return Text("\n".join(" " * INDENT + line for line in str(promises).splitlines()))


def coloured_table(promises: Promises) -> RenderableType:
    """A table that fits the terminal: long verdicts wrap within their column."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in promises.headings:
        table.add_column(Text(heading), no_wrap=heading not in ("task", "verdict"))
    for row, cells in zip(promises, promises.cells, strict=True):
        table.add_row(*map(Text, cells[:-1]), Text(cells[-1], style=_style(row)))
    if promises.notes:
        table.caption = Text("\n".join(promises.notes), style="dim")
        table.caption_justify = "left"
    return Padding(table, (0, 0, 0, INDENT))


def _style(row: Promise) -> str:
    return STYLES.get(row.verdict, "yellow")
