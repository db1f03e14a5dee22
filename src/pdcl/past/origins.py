"""Where each row of a memory was at the last checkpoint, so that the next one writes only the rows that are new.

>>> origins = Origins(4)
>>> origins.kept(torch.tensor([0, 3]))
>>> origins.written(torch.tensor([2]), 3)
>>> origins.rows.tolist()
[0, 3, -1]

Rows that were dropped at the end are a change too:

>>> shorter = Origins(4)
>>> shorter.kept(torch.tensor([0, 1]))
>>> shorter.unchanged
False
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdcl.past.columns import leaf_state
from pdcl.past.journal import BY_ROW

if TYPE_CHECKING:
    from pdcl.past.store import Memory


class Origins:
    """`rows`: for each slot the one that its row had before, −1 where it was written since."""

    def __init__(self, size: int) -> None:
        self.before, self.rows = size, torch.arange(size)

    def written(self, slots: Tensor, size: int) -> None:
        """These slots have new rows; there are `size` rows now."""
        if size > len(self.rows):
            self.rows = torch.cat([self.rows, torch.full((size - len(self.rows),), -1)])
        self.rows[slots.cpu()] = -1

    def kept(self, slots: Tensor) -> None:
        """Only the rows of these slots are left, in this order."""
        self.rows = self.rows[slots.cpu()]

    @property
    def unchanged(self) -> bool:
        return torch.equal(self.rows, torch.arange(self.before))


def is_by_row(column: str) -> bool:
    """Whether methods change this column by `write` and `keep` alone, so that its changes are known."""
    return column.partition(".")[0] in BY_ROW


def rows_apart(memory: Memory, slots: Tensor) -> dict[str, Tensor]:
    """The rows of these slots, of the columns that change row by row, in the form of `Memory.state_dict`."""
    found: dict[str, Tensor] = {}
    for name, column in memory.columns.items():
        if is_by_row(name):
            found |= leaf_state(name, column.read(slots))
    return found


def bytes_by_row(memory: Memory) -> int:
    """What the columns take that change row by row."""
    return sum(column.stored(memory.size) for name, column in memory.columns.items() if is_by_row(name))


@contextmanager
def rows_left_out(memory: Memory) -> Iterator[None]:
    """Within it, `Memory.state_dict` leaves out the columns that change row by row: they are written apart."""
    memory.rows_left_out = True
    try:
        yield
    finally:
        memory.rows_left_out = False
