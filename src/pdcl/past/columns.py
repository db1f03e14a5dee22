"""The columns of a memory: rows of one shape in one tensor, or sequences of unequal length end to end.

Both keep rows 0 … size − 1 and allocate as they fill, by doubling. `stored` is what the rows in use take, `nbytes` what
is allocated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.past.journal import strips
from pdcl.ragged import Ragged, entries
from pdcl.trees import Leaf

FEWEST = 16
VALUES, LENGTHS = ":values", ":lengths"


def next_size(rows: int, have: int, most: int) -> int:
    """How many rows to allocate so that `rows` fit: twice as many as there are, unless that is more than `most`."""
    return have if rows <= have else min(most, max(rows, 2 * have, FEWEST))


def check_like(data: Tensor, name: str, rows: Leaf) -> None:
    """Refuse rows of another shape or dtype than those of `data`."""
    if not isinstance(rows, Tensor) or rows.shape[1:] != data.shape[1:] or rows.dtype != data.dtype:
        got = f"{tuple(rows.shape[1:])} {rows.dtype}" if isinstance(rows, Tensor) else "sequences of unequal length"
        raise UsageError(
            f"memory column {name!r} holds {tuple(data.shape[1:])} {data.dtype}, "
            f"got {got}; give every task the same shape and dtype"
        )


class Rows:
    """One tensor, allocated × …"""

    def __init__(self, like: Tensor, device: torch.device) -> None:
        self.data = torch.zeros((0, *like.shape[1:]), dtype=like.dtype, device=device)

    def check(self, name: str, rows: Leaf) -> None:
        """Refuse rows of another shape or dtype."""
        check_like(self.data, name, rows)

    def read(self, slots: Tensor) -> Tensor:
        return self.data.index_select(0, slots.to(self.data.device))

    def used(self, size: int) -> Tensor:
        """The rows in use (a view)."""
        return self.data[:size]

    def write(self, slots: Tensor, rows: Tensor) -> None:
        self.data[slots] = rows.to(self.data.device)

    def keep(self, slots: Tensor) -> None:
        slots = slots.to(self.data.device)
        for strip in strips(self.data):
            strip[: len(slots)] = strip.index_select(0, slots)

    def mark(self) -> Tensor:
        """What `go_back` needs besides the rows that a journal notes."""
        return self.data

    def go_back(self, mark: Tensor) -> None:
        self.data = mark

    def reserve(self, rows: int, most: int) -> None:
        """Have room for `rows`, and for twice as many as before unless that is more than `most`."""
        if rows > len(self.data):
            self._resize(next_size(rows, len(self.data), most), len(self.data))

    def shrink(self, size: int) -> None:
        """Allocate no more than the rows in use need."""
        if len(self.data) > size:
            self._resize(size, size)

    def _resize(self, rows: int, copied: int) -> None:
        data = self.data.new_zeros(rows, *self.data.shape[1:])
        data[:copied] = self.data[:copied]
        self.data = data

    def widen(self, more: Tensor) -> None:
        """Give rows more entries along their first dimension."""
        wide = torch.cat([self.data, self.data.new_zeros(len(self.data), *more.shape[1:])], 1)
        wide[: len(more), self.data.shape[1] :] = more.to(wide)
        self.data = wide

    def row_bytes(self, rows: Leaf | None = None) -> int:
        return _bytes_of_one(self.data)

    def stored(self, size: int) -> int:
        return size * self.row_bytes()

    @property
    def nbytes(self) -> int:
        return self.data.numel() * self.data.element_size()

    def state(self, name: str, size: int) -> dict[str, Tensor]:
        return {name: self.data[:size].clone()}


class Sequences:
    """Values of all sequences in one tensor; each row has its start and length there.

    A row written anew goes behind all others. What it leaves behind is reclaimed when the tensor is full.
    """

    def __init__(self, like: Ragged, device: torch.device) -> None:
        self.values = torch.zeros((0, *like.values.shape[1:]), dtype=like.dtype, device=device)
        self.starts = torch.zeros(0, dtype=torch.int64, device=device)
        self.lengths = torch.zeros(0, dtype=torch.int64, device=device)
        self.end = 0

    def check(self, name: str, rows: Leaf) -> None:
        """Refuse what isn't ragged, and entries of another shape or dtype."""
        own = f"sequences of {tuple(self.values.shape[1:])} {self.values.dtype}"
        if not isinstance(rows, Ragged):
            raise UsageError(f"memory column {name!r} holds {own}, got {tuple(rows.shape[1:])} {rows.dtype}")
        if rows.values.shape[1:] != self.values.shape[1:] or rows.dtype != self.values.dtype:
            got = f"sequences of {tuple(rows.values.shape[1:])} {rows.dtype}"
            raise UsageError(f"memory column {name!r} holds {own}, got {got}; give every task the same")

    def read(self, slots: Tensor) -> Ragged:
        slots = slots.to(self.lengths.device)
        lengths = self.lengths[slots]
        return Ragged(self.values.index_select(0, entries(self.starts[slots], lengths)), lengths)

    def used(self, size: int) -> Ragged:
        return self.read(torch.arange(size, device=self.lengths.device))

    def write(self, slots: Tensor, rows: Ragged) -> None:
        rows, slots = rows.to(self.values.device), slots.to(self.values.device)
        self.lengths[slots] = 0
        self._make_room(len(rows.values))
        self.starts[slots] = self.end + rows.lengths.cumsum(0) - rows.lengths
        self.lengths[slots] = rows.lengths
        self.values[self.end : self.end + len(rows.values)] = rows.values
        self.end += len(rows.values)

    def keep(self, slots: Tensor) -> None:
        slots = slots.to(self.lengths.device)
        starts, lengths = self.starts[slots], self.lengths[slots]
        self.starts[: len(slots)], self.lengths[: len(slots)] = starts, lengths
        self.lengths[len(slots) :] = 0

    def mark(self) -> tuple[Tensor, Tensor, Tensor, int]:
        """All that `go_back` needs: values up to `end` are never written again, only moved to another tensor."""
        return self.values, self.starts.clone(), self.lengths.clone(), self.end

    def go_back(self, mark: tuple[Tensor, Tensor, Tensor, int]) -> None:
        self.values, self.starts, self.lengths, self.end = mark

    def reserve(self, rows: int, most: int) -> None:
        have = len(self.lengths)
        if rows > have:
            more = self.lengths.new_zeros(next_size(rows, have, most) - have)
            self.starts, self.lengths = torch.cat([self.starts, more]), torch.cat([self.lengths, more])

    def _make_room(self, count: int) -> None:
        """Room for `count` values behind the others: reclaim what is unused, and double if that is too little."""
        if self.end + count > len(self.values):
            needed = int(self.lengths.sum()) + count
            self._repack(len(self.values) if 2 * needed <= len(self.values) else 2 * needed)

    def spare(self, room: int) -> None:
        """Allocate no more values than there are and as many beside them as fit into `room` bytes."""
        self._repack(int(self.lengths.sum()) + room // _bytes_of_one(self.values))

    def _repack(self, count: int) -> None:
        held = self.read(torch.arange(len(self.lengths), device=self.lengths.device))
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.values, self.end = self.values.new_zeros(count, *self.values.shape[1:]), len(held.values)
        self.values[: self.end] = held.values

    def shrink(self, size: int) -> None:
        self.starts, self.lengths = self.starts[:size].clone(), self.lengths[:size].clone()
        self.spare(0)

    def row_bytes(self, rows: Leaf | None = None) -> int:
        """Bytes of a row of the mean length of `rows` (of none, where there are none), rounded up."""
        count, values = (len(rows), len(rows.values)) if isinstance(rows, Ragged) and len(rows) else (1, 0)
        return 2 * self.lengths.element_size() + -(-values * _bytes_of_one(self.values) // count)

    def stored(self, size: int) -> int:
        values = int(self.lengths[:size].sum()) * _bytes_of_one(self.values)
        return 2 * size * self.lengths.element_size() + values

    @property
    def nbytes(self) -> int:
        rows = 2 * len(self.lengths) * self.lengths.element_size()
        return rows + self.values.numel() * self.values.element_size()

    def state(self, name: str, size: int) -> dict[str, Tensor]:
        return leaf_state(name, self.used(size))


def column_for(rows: Leaf, device: torch.device) -> Rows | Sequences:
    return Sequences(rows, device) if isinstance(rows, Ragged) else Rows(rows, device)


def branches(columns: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The columns of the leaves of a tree."""
    start = f"{name}."
    found = {each[len(start) :]: leaf for each, leaf in columns.items() if each.startswith(start)}
    if not found:
        raise KeyError(name)
    return found


def allocated(columns: Iterable[Any]) -> int:
    """Bytes that columns have allocated together."""
    return sum(column.nbytes for column in columns)


def release(columns: Collection[Any], size: int, most: int) -> None:
    """Allocate what is stored; sequences share what `most` bytes leave, so that few writes have to move them."""
    sequences = [column for column in columns if isinstance(column, Sequences)]
    for column in sequences:
        column.spare(0)
    if allocated(columns) > most:
        for each in columns:
            each.shrink(size)
    left = most - allocated(columns)
    for column in sequences:
        column.spare(left // len(sequences))


def leaf_state(name: str, leaf: Leaf) -> dict[str, Tensor]:
    """A leaf as the tensors that a state has for it; `saved_leaves` puts them together again."""
    return {name + VALUES: leaf.values, name + LENGTHS: leaf.lengths} if isinstance(leaf, Ragged) else {name: leaf}


def saved_leaves(saved: dict[str, Any]) -> dict[str, Leaf]:
    """The columns of a saved state, sequences put together again; refused where they don't belong together."""
    found: dict[str, Leaf] = {}
    for name, value in saved.items():
        if name.endswith(VALUES):
            column = name.removesuffix(VALUES)
            found[column] = _sequences(column, value, saved.get(column + LENGTHS))
        elif not name.endswith(LENGTHS):
            found[name] = value
        elif name.removesuffix(LENGTHS) + VALUES not in saved:
            raise UsageError(f"the saved memory has {name} without its values")
    counts = {name: len(leaf) for name, leaf in found.items()}
    if len(set(counts.values())) > 1:
        raise UsageError(f"the saved memory's columns have different numbers of rows: {counts}")
    return found


def _sequences(name: str, values: Tensor, lengths: Tensor | None) -> Ragged:
    if lengths is None or lengths.dtype != torch.int64 or lengths.dim() != 1 or values.dim() < 1:
        raise UsageError(f"the saved memory's {name} has no lengths of its sequences")
    if bool((lengths < 0).any()) or bool((lengths > len(values)).any()) or int(lengths.sum()) != len(values):
        raise UsageError(f"the saved memory's {name} has {len(values)} values, which its lengths don't add up to")
    return Ragged(values, lengths)


def _bytes_of_one(data: Tensor) -> int:
    return int(torch.Size(data.shape[1:]).numel()) * data.element_size()
