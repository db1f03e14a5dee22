"""How a memory goes back to what it was: the rows that were overwritten since, and what was moved.

Nothing is copied when the journal opens. It holds as many rows as were overwritten or dropped, so learning a small task
into a large memory costs little, and a task that stores n samples costs at most n rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pdcl.storage.interrupts import put_off

# Columns that methods only write by `write` and `keep`, with all their leaves (`x.input_ids`). A method may edit others
# in place, through a view.
BY_ROW = ("x", "y", "task", "id")
STRIP = 2**22


class Journal:
    """What a memory was when the journal opened: `columns` and `rest` by reference, and how to undo what came since."""

    def __init__(self, columns: dict[str, Tensor], size: int, rest: dict[str, Any]) -> None:
        self.columns, self.size, self.rest = dict(columns), size, rest
        self._steps: list[partial[None]] = []
        self._owned = size
        self._whole: set[str] = set()

    @property
    def nbytes(self) -> int:
        """What it holds itself."""
        held = [each for step in self._steps for each in step.args[2:]]
        return sum(each.numel() * each.element_size() for each in held)

    def handed_out(self, name: str, column: Tensor) -> None:
        """A view of this column is handed out: its holder may change the rows without our knowing."""
        if name.partition(".")[0] not in BY_ROW and name not in self._whole and column is self.columns.get(name):
            self._steps.append(partial(_put, column, slice(0, self._owned), column[: self._owned].clone()))
            self._whole.add(name)

    def overwritten(self, columns: dict[str, Tensor], slots: Tensor) -> None:
        """These slots are about to be written; rows from `_owned` on hold nothing that must come back."""
        old = slots[slots < self._owned].unique()
        if len(old):
            for column in self._own(columns):
                self._steps.append(partial(_put, column, old, column[old]))

    def kept(self, columns: dict[str, Tensor], slots: Tensor) -> None:
        """Move the rows of `slots` to the front, as `keep` does, and note how they come back."""
        dropped = torch.ones(self._owned, dtype=torch.bool, device=slots.device)
        dropped[slots[slots < self._owned]] = False
        self.overwritten(columns, dropped.nonzero().flatten())
        # An interrupt between a move and its note would leave rows nobody can put back.
        with put_off():
            for column in columns.values():
                for strip in strips(column):
                    strip[: len(slots)] = strip.index_select(0, slots)
                    if any(column is own for own in self.columns.values()):
                        self._steps.append(partial(_spread, strip, slots))
            self._owned = len(slots)

    def undo(self) -> None:
        """Put everything back, the latest change first."""
        while self._steps:
            self._steps.pop()()

    def _own(self, columns: dict[str, Tensor]) -> list[Tensor]:
        return [column for name, column in columns.items() if column is self.columns.get(name)]


def strips(column: Tensor) -> Iterator[Tensor]:
    """A column as strips of a few MB, each with all rows: moving rows strip by strip takes little memory."""
    if not column.numel():
        return
    flat = column.view(len(column), -1)
    # Moving eight bytes takes as long as moving one.
    if flat.shape[1] * flat.element_size() % 8 == 0 and column.is_contiguous():
        flat = flat.view(torch.int64)
    yield from flat.split(max(1, STRIP // (len(flat) * flat.element_size())), 1)


def _put(column: Tensor, slots: Tensor | slice, rows: Tensor) -> None:
    column[slots] = rows


def _spread(strip: Tensor, slots: Tensor) -> None:
    strip[slots] = strip[: len(slots)].clone()
