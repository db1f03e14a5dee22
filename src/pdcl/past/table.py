"""Columns by name, rows 0..size−1 in use: how a memory is read."""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor

from pdcl.past.columns import Rows, Sequences, allocated
from pdcl.past.file_rows import FileRows, exceeds
from pdcl.past.journal import Journal
from pdcl.trees import Tree, unflatten

Column: TypeAlias = Rows | Sequences | FileRows


class Table:
    """What a memory holds. most_in_ram: bytes of inputs beyond which they go to a file."""

    def __init__(self, most_in_ram: int) -> None:
        self.most_in_ram = most_in_ram
        self.columns: dict[str, Column] = {}
        self.size = 0
        self._journal: Journal | None = None

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, column: str) -> Tree:
        """The rows in use; of a tensor a view."""
        found = self.columns.get(column)
        if found is None:
            return unflatten({name: leaf.used(self.size) for name, leaf in self._branches(column).items()})
        if self._journal is not None and isinstance(found, Rows):
            self._journal.handed_out(column, found.data)
        return found.used(self.size)

    def read(self, column: str, slots: Tensor) -> Tree:
        """A copy of these rows; the quickest way for a few."""
        found = self.columns.get(column)
        if found is not None:
            return found.read(slots)
        return unflatten({name: leaf.read(slots) for name, leaf in self._branches(column).items()})

    def _branches(self, column: str) -> dict[str, Column]:
        start = f"{column}."
        found = {name[len(start) :]: leaf for name, leaf in self.columns.items() if name.startswith(start)}
        if not found:
            raise KeyError(column)
        return found

    @property
    def nbytes(self) -> int:
        """What is allocated, in bytes."""
        return allocated(self.columns.values())

    @property
    def stored(self) -> int:
        """What the samples in it take, in bytes."""
        return sum(column.stored(self.size) for column in self.columns.values())

    def _tensors(self) -> dict[str, Tensor]:
        """The columns whose rows a journal notes; others go back by where their rows lie."""
        return {name: column.data for name, column in self.columns.items() if isinstance(column, Rows)}

    def on_disk(self, rows: int) -> bool:
        """Whether so many inputs that are about to be stored here will lie in a file."""
        if any(isinstance(column, FileRows) for column in self.columns.values()):
            return True
        return exceeds(self.columns, rows, self.most_in_ram)
