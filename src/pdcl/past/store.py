"""The bounded store of past samples: columns by name, rows 0..size−1 in use.

A value of a row is a tensor, sequences (`Ragged`), or a tuple or dict of these, which takes one column per leaf:
`x.input_ids`, `x.attention_mask`. A column keeps the dtype of what is put into it (uint8 images stay uint8). All
operations are vectorised over rows. What is allocated follows what is held, up to the bound, which is a number of
samples or a number of bytes. Inputs of more than `in_ram` bytes lie in a scratch file.
"""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.past.bound import parse_bound, parse_bytes
from pdcl.past.columns import Rows, Sequences, allocated, branches, column_for, release, saved_leaves
from pdcl.past.file_rows import FileRows, beyond, exceeds
from pdcl.past.journal import Journal
from pdcl.past.origins import Origins, is_by_row
from pdcl.past.reservoir import Reservoir
from pdcl.past.ring import Ring
from pdcl.trees import Leaf, Tree, flatten, length, take, unflatten

_PERMUTE_UP_TO = 4096
# One part in so many of a bound in bytes stays free beside sequences: where new ones go before old ones are cleared.
SPARE = 16
IN_RAM = "1GB"

Column: TypeAlias = Rows | Sequences | FileRows


class Memory:
    """At most `bound` samples (or bytes) with columns `x`, `y`, `task`, `id` and what a method adds.

    Sequences have no fixed size, so under a bound in bytes the capacity follows from the first rows' mean size, and
    shrinks where longer ones come: then samples are dropped, of a reservoir at random, else evenly in their order.
    """

    def __init__(self, bound: int | str, device: torch.device | str = "cpu", in_ram: str = IN_RAM) -> None:
        self._samples, self._bytes = parse_bound(bound)
        self.bound, self.in_ram = bound, in_ram
        # Bytes of inputs beyond which they go to a file.
        self.most_in_ram = parse_bytes("memory_in_ram", in_ram)
        self.columns: dict[str, Column] = {}
        self.size = 0
        self.device = torch.device(device)
        self.reservoir = Reservoir()
        self._ring: Ring | None = None
        self._journal: Journal | None = None
        self.origins: Origins | None = None
        self.rows_left_out = False

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, column: str) -> Tree:
        """The rows in use; of a tensor a view to write into, so a snapshot copies the column: `read` to look at it."""
        found = self.columns.get(column)
        if found is None:
            return self.read(column)
        if self._journal is not None and isinstance(found, Rows):
            self._journal.handed_out(column, found.data)
        return found.used(self.size)

    def read(self, column: str, slots: Tensor | None = None) -> Tree:
        """A copy of these rows, the quickest way for a few; or all rows in use, which nobody writes into."""
        found = self.columns.get(column)
        if found is not None:
            return found.used(self.size) if slots is None else found.read(slots)
        leaves = branches(self.columns, column).items()
        return unflatten({name: leaf.used(self.size) if slots is None else leaf.read(slots) for name, leaf in leaves})

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

    @property
    def capacity(self) -> int:
        """How many samples fit. In bytes this is known once the first rows show how large a sample is."""
        if self._samples is None:
            raise UsageError(f"memory={self.bound!r} has no capacity in samples before its first sample")
        return self._samples

    def places(self, each: int) -> int:
        """How many samples of `each` bytes fit, before the first one is held."""
        return self._samples if self._samples is not None else (self._bytes or 0) // max(1, each)

    def allocate(self, **rows: Tree) -> None:
        """Make the columns, shaped like `rows` (n × …), if that hasn't happened yet."""
        self._leaves(rows)

    def _leaves(self, rows: dict[str, Tree]) -> dict[str, Leaf]:
        """Rows by column, after making the columns or checking against them."""
        leaves = {name: leaf for column, tree in rows.items() for name, leaf in flatten(tree, column).items()}
        if not self.columns:
            columns: dict[str, Column] = {name: column_for(leaf, self.device) for name, leaf in leaves.items()}
            if self._samples is None:
                self._samples = self._fitting(columns, leaves)
            self.columns = columns
        elif leaves.keys() != self.columns.keys():
            raise UsageError(f"memory has columns {sorted(self.columns)}, got rows with {sorted(leaves)}")
        for name, leaf in leaves.items():
            self.columns[name].check(name, leaf)
        return leaves

    def _fitting(self, columns: dict[str, Column], leaves: dict[str, Leaf]) -> int:
        """How many such samples the bytes hold."""
        assert self._bytes is not None
        each = sum(column.row_bytes(leaves[name]) for name, column in columns.items())
        if self._bytes < each:
            raise UsageError(f"memory={self.bound!r} can't hold one sample: each takes {each} bytes")
        return self._bytes // each

    def write(self, slots: Tensor, **rows: Tree) -> None:
        """Put rows into these slots, which are distinct; slots beyond `size` must continue it without a gap."""
        self._put(slots, self._leaves(rows))
        self._hold_bytes()

    def _put(self, slots: Tensor, leaves: dict[str, Leaf]) -> None:
        if len(slots) == 0:
            return
        size = self.size if self.size == self.capacity else max(self.size, int(slots.max()) + 1)
        if size > self.size:
            self.columns |= beyond(self.columns, self.size, size, self.most_in_ram)
        for column in self.columns.values():
            column.reserve(size, self.capacity)
        if self._journal is not None:
            self._journal.overwritten(self._tensors(), slots)
        if self.origins is not None:
            self.origins.written(slots, size)
        for name, leaf in leaves.items():
            self.columns[name].write(slots, leaf)  # type: ignore[arg-type]
        self.size = size

    def append(self, **rows: Tree) -> None:
        """Add rows behind those in use."""
        leaves = self._leaves(rows)
        count = max(map(len, leaves.values()))
        if self.size + count > self.capacity:
            raise UsageError(f"{count} more samples don't fit: {self.size} of {self.capacity} are in use")
        self._put(torch.arange(self.size, self.size + count), leaves)
        self._hold_bytes()

    def keep(self, slots: Tensor) -> None:
        """Keep only these rows, in this order."""
        if self.origins is not None:
            self.origins.kept(slots)
        if self._journal is not None:
            self._journal.kept(self._tensors(), slots.to(self.device))
        for column in self.columns.values():
            if self._journal is None or not isinstance(column, Rows):
                column.keep(slots)
        self.size = len(slots)

    def replace(self, slots: Tensor, **rows: Tree) -> None:
        """Keep these rows in this order, and put `rows` behind them."""
        self.keep(slots)
        self.append(**rows)

    def _hold_bytes(self, generator: torch.Generator | None = None) -> None:
        """Drop samples until the rest fits into the bytes that bound it, and allocate no more than those."""
        if self._bytes is None:
            return
        sequences = [column for column in self.columns.values() if isinstance(column, Sequences)]
        most = self._bytes - self._bytes // SPARE if sequences else self._bytes
        while (stored := self.stored) > most:
            if self.size < 2:
                raise UsageError(f"memory={self.bound!r} can't hold one sample: this one takes {stored} bytes")
            self._lower_capacity(min(self.size - 1, self.size * most // stored), generator)
        if self.nbytes > self._bytes:
            release(self.columns.values(), self.size, self._bytes)

    def _lower_capacity(self, capacity: int, generator: torch.Generator | None) -> None:
        """Hold no more than `capacity` from now on: of rings the newest, else at random; evenly without a generator."""
        self._samples = capacity
        self.reservoir.forget_decisions()
        if self._ring is not None:
            self.start_ring(len(self._ring.counters))
        elif self.size > capacity and generator is not None:
            self.keep(torch.randperm(self.size, generator=generator)[:capacity].sort().values)
        elif self.size > capacity:
            self.keep(torch.linspace(0, self.size - 1, capacity).long())

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """min(n, size) distinct slots, uniformly. The cost doesn't depend on the size."""
        n = min(n, self.size)
        if self.size <= max(_PERMUTE_UP_TO, n * n):
            return torch.randperm(self.size, generator=generator)[:n]
        while True:
            slots = torch.randint(self.size, (n,), generator=generator)
            if len(torch.unique(slots)) == n:
                return slots

    @property
    def seen(self) -> int:
        """How many samples the reservoir was offered."""
        return self.reservoir.seen

    def add_reservoir(self, generator: torch.Generator, **rows: Tree) -> None:
        """Offer rows in order to a reservoir: each row ever offered is held with the same probability."""
        if not self.columns:
            self.allocate(**rows)
        kept = self.reservoir.offer(max(map(length, rows.values())), self.capacity, generator)
        if kept is not None:
            positions, slots = kept
            self._put(slots, self._leaves({name: take(tree, positions) for name, tree in rows.items()}))
            self._hold_bytes(generator)

    def start_ring(self, groups: int) -> None:
        """Share the capacity evenly among `groups` first-in-first-out rings, keeping the newest of each held group.

        Call again when more groups are known.
        """
        quota = self.capacity // groups
        if quota == 0:
            raise UsageError(f"memory={self.bound!r} is smaller than the {groups} classes it must hold; enlarge it")
        if not self.size:
            self._ring = Ring(groups, quota)
            return
        assert self._ring is not None
        self._ring, kept = self._ring.restarted(groups, quota)
        self.keep(kept)

    def add_ring(self, groups: Tensor, **rows: Tree) -> None:
        """Put each row into its group's ring, over the oldest of that group once the ring is full."""
        if self._ring is None:
            raise UsageError("a ring memory needs start_ring(groups) first")
        self.allocate(**rows)
        kept, slots = self._ring.offer(groups.cpu(), self.size)
        self.write(slots, **{name: take(tree, kept) for name, tree in rows.items()})

    def widen(self, column: str, more: Tensor, generator: torch.Generator | None = None) -> None:
        """Give the rows of a column more entries along their first dimension: `more` is size × k × …

        Where bytes bound it fewer samples fit then; those of a reservoir are dropped by the generator.
        """
        wide = self.columns[column]
        assert isinstance(wide, Rows)
        wide.widen(more)
        self._fit_wider_rows(generator)

    def join_column(self, column: str, values: Tensor, generator: torch.Generator | None = None) -> None:
        """Add a column to the rows in use; where bytes bound it fewer samples fit then, as in `widen`."""
        joined = Rows(values, self.device)
        joined.reserve(self.size, self.capacity)
        joined.write(torch.arange(self.size), values)
        self.columns[column] = joined
        self._fit_wider_rows(generator)

    def _fit_wider_rows(self, generator: torch.Generator | None) -> None:
        each = sum(held.row_bytes() for held in self.columns.values())
        if self._bytes is not None and self._bytes // each < self.capacity:
            self._lower_capacity(self._bytes // each, generator)
        self._hold_bytes(generator)

    def counts(self, tasks: int) -> list[int]:
        """How many samples of each task are held."""
        if not self.size:
            return [0] * tasks
        held: list[int] = torch.bincount(self["task"], minlength=tasks).tolist()
        return held

    def snapshot(self) -> Journal:
        """Remember what is held now, without copying it. Until `restore` or `release` changes are noted."""
        rest = {
            "columns": [(name, column, column.mark()) for name, column in self.columns.items()],
            "samples": self._samples,
            "ring": copy.deepcopy(self._ring),
            "reservoir": self.reservoir.state_dict(),
        }
        self._journal = Journal(self._tensors(), self.size, rest)
        return self._journal

    def restore(self, before: Journal) -> None:
        """Hold again what was held when the snapshot was taken."""
        before.undo()
        for _, column, mark in before.rest["columns"]:
            column.go_back(mark)
        self.columns = {name: column for name, column, _ in before.rest["columns"]}
        self.size, self._samples, self._ring = before.size, before.rest["samples"], before.rest["ring"]
        self.reservoir.load_state_dict(before.rest["reservoir"])
        self._journal = self.origins = None

    def release(self) -> None:
        """What happened since the snapshot stays."""
        self._journal = None
        for column in self.columns.values():
            if isinstance(column, FileRows):
                column.release()

    def state_dict(self) -> dict[str, Any]:
        columns: dict[str, Tensor] = {}
        for name, column in self.columns.items():
            if not (self.rows_left_out and is_by_row(name)):
                columns |= column.state(name, self.size)
        return {
            "columns": columns,
            "ring": {} if self._ring is None else self._ring.state_dict(),
            "reservoir": self.reservoir.state_dict(),
            "samples": self._samples,
            "bound": str(self.bound),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a saved state; one that asks for more than the bound allows is refused."""
        if str(self.bound) != state["bound"]:
            raise UsageError(f"the saved memory is bounded by {state['bound']}, this one by {self.bound}")
        leaves, samples = saved_leaves(state["columns"]), state["samples"]
        fresh = Memory(self.bound, self.device, self.in_ram)
        held = len(next(iter(leaves.values()))) if leaves else 0
        fresh._take_capacity(samples, leaves, held)
        fresh.reservoir.load_state_dict(state.get("reservoir") or {"seen": state["seen"]})
        if leaves:
            fresh._put(torch.arange(held), fresh._leaves(dict(leaves)))
        if ring := state.get("ring") or {}:
            fresh._ring = Ring.from_state(ring, fresh.size)
        fresh._hold_bytes()
        self.__dict__.update(fresh.__dict__)

    def _take_capacity(self, samples: int | None, leaves: dict[str, Leaf], held: int) -> None:
        """Set the saved capacity, if the bound allows it for such rows."""
        smallest = sum(column_for(leaf, self.device).row_bytes() for leaf in leaves.values())
        if self._bytes is None:
            fits = samples == self._samples
        else:
            fits = samples is None or 0 <= samples * max(smallest, 1) <= self._bytes
        if not fits or held > (samples or 0):
            raise UsageError(f"the saved memory holds {held} of {samples} samples, which memory={self.bound} doesn't")
        self._samples = samples
