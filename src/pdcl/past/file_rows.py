"""A memory column in a scratch file, for inputs that are more than RAM should hold.

Slot i lies in row `places[i]` of the file. Dropping and reordering slots moves numbers, never rows; and while a
snapshot is open its rows are left alone, so that going back needs nothing but the old numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pdcl.past.columns import FEWEST, Rows, check_like, next_size
from pdcl.storage.scratch import Scratch, scratch_rows
from pdcl.streams.gathering import returning_memory
from pdcl.streams.mapped import MappedRows
from pdcl.trees import Leaf, Tree, cat, flatten, take, unflatten

if TYPE_CHECKING:
    from pdcl.past.store import Memory

COPIED_AT_ONCE = 2**24
FETCHED_AT_ONCE = 1000


class FileRows:
    """Like `Rows`, on disk: `rows` to begin with, and numbers for so many slots. `count` of them are in use."""

    def __init__(self, rows: Tensor, slots: int) -> None:
        self.file = Scratch(tuple(rows.shape[1:]), rows.dtype)
        self.places = torch.zeros(slots, dtype=torch.int64)
        self.count, self.most = 0, 0
        self.unused = torch.zeros(0, dtype=torch.int64)
        self.protected: Tensor | None = None
        self._map(max(len(rows), FEWEST))
        if len(rows):
            self.write(torch.arange(len(rows)), rows)

    def _map(self, rows: int) -> None:
        self.data, flat = self.file.mapped(rows)
        self._announced = MappedRows(flat)

    @property
    def _at_once(self) -> int:
        return max(1, COPIED_AT_ONCE // self.file.row_bytes)

    def check(self, name: str, rows: Leaf) -> None:
        """Refuse rows of another shape or dtype."""
        check_like(self.data, name, rows)

    def read(self, slots: Tensor) -> Tensor:
        places = self.places[slots.cpu()]
        self._announced.announce(places)
        found = returning_memory((len(places), *self.file.shape), self.file.dtype)
        return torch.index_select(self.data, 0, places, out=found)

    def used(self, size: int) -> Tensor:
        """The rows in use: a view where they lie in order, else a copy, on disk too."""
        in_order = torch.equal(self.places[:size], torch.arange(size))
        return self.data[:size] if in_order else self._copy(size)

    def _copy(self, size: int) -> Tensor:
        copied = scratch_rows(size, self.file.shape, self.file.dtype)
        for slots in torch.arange(size).split(self._at_once) if size else ():
            copied[slots[0] : slots[-1] + 1] = self.read(slots)
        return copied

    def write(self, slots: Tensor, rows: Tensor) -> None:
        slots = slots.cpu()
        fresh = slots >= self.count
        if self.protected is not None:
            fresh |= self.protected[self.places[slots]]
        self.places[slots[fresh]] = self._free_rows(int(fresh.sum()))
        self.count = max(self.count, int(slots.max()) + 1) if len(slots) else self.count
        places = self.places[slots]
        for here, part in zip(places.split(self._at_once), rows.split(self._at_once), strict=True):
            self.data[here] = part.cpu()

    def _free_rows(self, count: int) -> Tensor:
        """Rows of the file that no slot and no snapshot looks at; the file grows where there are too few."""
        if count > len(self.unused):
            free = torch.ones(len(self.data), dtype=torch.bool) if self.protected is None else ~self.protected
            free[self.places[: self.count]] = False
            self.unused = free.nonzero().flatten()
        if count > len(self.unused):
            self._grow(count - len(self.unused))
        found, self.unused = self.unused[:count], self.unused[count:]
        return found

    def _grow(self, more: int) -> None:
        before = len(self.data)
        self._map(max(before + more, min(2 * before, self.most)))
        added = len(self.data) - before
        self.unused = torch.cat([self.unused, torch.arange(before, len(self.data))])
        if self.protected is not None:
            self.protected = torch.cat([self.protected, torch.zeros(added, dtype=torch.bool)])

    def keep(self, slots: Tensor) -> None:
        self.places[: len(slots)] = self.places[slots.cpu()]
        self.count = len(slots)

    def mark(self) -> tuple[Tensor, int]:
        """All that `go_back` needs: the rows of now stay as they are until `release`."""
        self.protected = torch.zeros(len(self.data), dtype=torch.bool)
        self.protected[self.places[: self.count]] = True
        return self.places.clone(), self.count

    def go_back(self, mark: tuple[Tensor, int]) -> None:
        self.places, self.count = mark
        self.release()

    def release(self) -> None:
        """No snapshot is open any more."""
        self.protected = None

    def reserve(self, rows: int, most: int) -> None:
        self.most = most
        if (more := next_size(rows, len(self.places), most) - len(self.places)) > 0:
            self.places = torch.cat([self.places, self.places.new_zeros(more)])

    def shrink(self, size: int) -> None:
        self.places = self.places[:size].clone()

    def row_bytes(self, rows: Leaf | None = None) -> int:
        return self.file.row_bytes

    def stored(self, size: int) -> int:
        return size * self.file.row_bytes

    @property
    def nbytes(self) -> int:
        return len(self.places) * self.file.row_bytes

    def state(self, name: str, size: int) -> dict[str, Tensor]:
        return {name: self._copy(size)}

    def __deepcopy__(self, memo: dict[int, Any]) -> FileRows:
        return FileRows(self.used(self.count), len(self.places))

    def __reduce__(self) -> tuple[Any, ...]:
        return FileRows, (self.used(self.count).clone(), len(self.places))


def beyond(columns: Mapping[str, Any], size: int, rows: int, most: int) -> dict[str, FileRows]:
    """The columns that have to go to a file before they hold `rows` rows; `size` of them are in use."""
    inputs = in_ram(columns) if exceeds(columns, rows, most) else {}
    return {name: FileRows(each.used(size), len(each.data)) for name, each in inputs.items()}


def exceeds(columns: Mapping[str, Any], rows: int, most: int) -> bool:
    """Whether `rows` rows of the inputs that are held in RAM would take more than `most` bytes."""
    return sum(column.stored(rows) for column in in_ram(columns).values()) > most


def in_ram(columns: Mapping[str, Any]) -> dict[str, Rows]:
    """The inputs that could go to a file; what an accelerator holds stays there, sequences stay in RAM."""
    inputs = {name: column for name, column in columns.items() if name.partition(".")[0] == "x"}
    rows = {name: column for name, column in inputs.items() if isinstance(column, Rows) and column.row_bytes()}
    return {name: column for name, column in rows.items() if column.data.device.type == "cpu"}


def fetched(memory: Memory, fetch: Callable[[Tensor], tuple[Tree, Tree]], positions: Tensor) -> tuple[Tree, Tree]:
    """`fetch(positions)`, inputs and targets that memory is about to store; on disk where they won't fit into RAM."""
    if not len(positions) or not memory.on_disk(len(positions)):
        return fetch(positions)
    # In ascending order: data that is read from its start is then read once.
    order = positions.argsort(stable=True)
    inputs: dict[str, Any] = {}
    rest: list[tuple[dict[str, Leaf], Tree]] = []
    for places in order.split(FETCHED_AT_ONCE):
        x, y = fetch(positions[places])
        leaves = flatten(x)
        for name, leaf in leaves.items():
            if isinstance(leaf, Tensor):
                if name not in inputs:
                    inputs[name] = scratch_rows(len(positions), tuple(leaf.shape[1:]), leaf.dtype)
                inputs[name][places] = leaf
        rest.append(({name: leaf for name, leaf in leaves.items() if name not in inputs}, y))
    back = order.argsort()
    uneven, targets = ([each[side] for each in rest] for side in range(2))
    sequences = {name: take(cat([each[name] for each in uneven]), back) for name in uneven[0]}
    found = {name: inputs[name] if name in inputs else sequences[name] for name in leaves}
    return unflatten(found), take(cat(targets), back)
