"""The bounded store of past samples: one preallocated tensor per column, rows 0..size−1 in use.

A column keeps the dtype of what is put into it (uint8 images stay uint8). All operations are vectorised over
rows; nothing grows beyond the bound, which is a number of samples or a number of bytes.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from pdcl.duality.selection import ring_slots
from pdcl.errors import UsageError
from pdcl.memory.journal import Journal, strips
from pdcl.memory.reservoir import Reservoir

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_PERMUTE_UP_TO = 4096


def parse_bound(bound: int | str) -> tuple[int | None, int | None]:
    """A bound as (samples, bytes), one of them None: `500`, `"500"`, `"64MB"`, `"1.5GiB"`."""
    text = str(bound).strip()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?i?B)?", text, re.IGNORECASE)
    unit = match[2].upper() if match and match[2] else None
    if not match or (unit is None and not match[1].isdigit()):
        raise UsageError(f"memory={bound!r} is neither a number of samples (500) nor of bytes ('64MB')")
    if float(match[1]) == 0:
        raise UsageError(f"memory={bound!r} holds nothing; give at least one sample per task")
    if unit is None:
        return int(match[1]), None
    return None, int(float(match[1]) * _UNITS[unit])


class Memory:
    """At most `bound` samples (or bytes) with columns `x`, `y`, `task`, `id` and whatever a method adds."""

    def __init__(self, bound: int | str, device: torch.device | str = "cpu") -> None:
        self._samples, self._bytes = parse_bound(bound)
        self.bound = bound
        self.device = torch.device(device)
        self.columns: dict[str, Tensor] = {}
        self.size = 0
        self.reservoir = Reservoir()
        self._ring: Tensor | None = None
        self._ring_counters: Tensor | None = None
        self._journal: Journal | None = None

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, column: str) -> Tensor:
        """The rows in use of one column (a view)."""
        if self._journal is not None:
            self._journal.handed_out(column, self.columns[column])
        return self.columns[column][: self.size]

    def read(self, column: str, slots: Tensor) -> Tensor:
        """A copy of these rows of one column; the quickest way for a few."""
        return self.columns[column].index_select(0, slots.to(self.device))

    @property
    def capacity(self) -> int:
        """How many samples fit. In bytes this is known once the first rows show how large a sample is."""
        if self._samples is None:
            raise UsageError(f"memory={self.bound!r} has no capacity in samples before its first sample")
        return self._samples

    def places(self, each: int) -> int:
        """How many samples of `each` bytes fit, before the first one is held."""
        return self._samples if self._samples is not None else (self._bytes or 0) // max(1, each)

    @property
    def nbytes(self) -> int:
        return sum(column.numel() * column.element_size() for column in self.columns.values())

    def allocate(self, **rows: Tensor) -> None:
        """Reserve the columns, shaped like `rows` (n × …), if that hasn't happened yet."""
        if self.columns:
            self._check(rows)
            return
        if self._samples is None:
            assert self._bytes is not None
            each = sum(value[:1].numel() * value.element_size() for value in rows.values())
            self._samples = self._bytes // each
            if self._samples == 0:
                raise UsageError(f"memory={self.bound!r} can't hold one sample: each takes {each} bytes")
        for name, value in rows.items():
            self.columns[name] = torch.zeros((self._samples, *value.shape[1:]), dtype=value.dtype, device=self.device)

    def _check(self, rows: dict[str, Tensor]) -> None:
        if rows.keys() != self.columns.keys():
            raise UsageError(f"memory has columns {sorted(self.columns)}, got rows with {sorted(rows)}")
        for name, value in rows.items():
            column = self.columns[name]
            if value.shape[1:] != column.shape[1:] or value.dtype != column.dtype:
                raise UsageError(
                    f"memory column {name!r} holds {tuple(column.shape[1:])} {column.dtype}, "
                    f"got {tuple(value.shape[1:])} {value.dtype}; give every task the same shape and dtype"
                )

    def write(self, slots: Tensor, **rows: Tensor) -> None:
        """Put rows into these slots; slots beyond `size` must continue it without a gap."""
        self.allocate(**rows)
        if len(slots) == 0:
            return
        if self._journal is not None:
            self._journal.overwritten(self.columns, slots)
        for name, value in rows.items():
            self.columns[name][slots] = value.to(self.device)
        if self.size < self.capacity:
            self.size = max(self.size, int(slots.max()) + 1)

    def append(self, **rows: Tensor) -> None:
        """Add rows behind those in use."""
        self.allocate(**rows)
        count = len(next(iter(rows.values())))
        if self.size + count > self.capacity:
            raise UsageError(f"{count} more samples don't fit: {self.size} of {self.capacity} are in use")
        self.write(torch.arange(self.size, self.size + count), **rows)

    def keep(self, slots: Tensor) -> None:
        """Keep only these rows, in this order."""
        slots = slots.to(self.device)
        if self._journal is not None:
            self._journal.kept(self.columns, slots)
        else:
            for column in self.columns.values():
                for strip in strips(column):
                    strip[: len(slots)] = strip.index_select(0, slots)
        self.size = len(slots)

    def replace(self, slots: Tensor, **rows: Tensor) -> None:
        """Keep these rows in this order, and put `rows` behind them."""
        self.keep(slots)
        self.append(**rows)

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

    def add_reservoir(self, generator: torch.Generator, **rows: Tensor) -> None:
        """Offer rows in order to a reservoir: each row ever offered is held with the same probability."""
        if not self.columns:
            self.allocate(**rows)
        kept = self.reservoir.offer(len(next(iter(rows.values()))), self.capacity, generator)
        if kept is not None:
            positions, slots = kept
            self.write(slots, **{name: value[positions] for name, value in rows.items()})

    def start_ring(self, groups: int) -> None:
        """Share the capacity evenly among `groups` first-in-first-out rings, keeping the newest of each held group.

        Rows need a column `group`. Call again when more groups are known.
        """
        quota = self.capacity // groups
        if quota == 0:
            raise UsageError(f"memory={self.bound!r} is smaller than the {groups} classes it must hold; enlarge it")
        table = torch.full((groups * quota,), -1, dtype=torch.long)
        counters = torch.zeros(groups, dtype=torch.long)
        if self.size:
            assert self._ring is not None
            assert self._ring_counters is not None
            newest = _newest_of_each(self._ring, self._ring_counters, quota)
            self.keep(torch.cat(newest))
            start = 0
            for group, slots in enumerate(newest):
                table[group * quota : group * quota + len(slots)] = torch.arange(start, start + len(slots))
                counters[group] = len(slots)
                start += len(slots)
        self._ring, self._ring_counters = table, counters

    def add_ring(self, groups: Tensor, **rows: Tensor) -> None:
        """Put each row into its group's ring, over the oldest of that group once the ring is full."""
        if self._ring is None or self._ring_counters is None:
            raise UsageError("a ring memory needs start_ring(groups) first")
        self.allocate(**rows)
        quota = len(self._ring) // len(self._ring_counters)
        kept, places, self._ring_counters = ring_slots(groups.cpu(), self._ring_counters, quota)
        fresh = places[self._ring[places] < 0]
        self._ring[fresh] = torch.arange(self.size, self.size + len(fresh))
        self.write(self._ring[places], **{name: value[kept] for name, value in rows.items()})

    def widen(self, column: str, more: Tensor) -> None:
        """Give the rows of a column more entries along their first dimension: `more` is size × k × …"""
        old = self.columns[column]
        wide = torch.cat([old, old.new_zeros(len(old), *more.shape[1:])], 1)
        wide[: self.size, old.shape[1] :] = more.to(wide)
        self.columns[column] = wide

    def join_column(self, column: str, values: Tensor) -> None:
        """Add a column to the rows in use."""
        whole = torch.zeros((self.capacity, *values.shape[1:]), dtype=values.dtype, device=self.device)
        whole[: self.size] = values.to(self.device)
        self.columns[column] = whole

    def counts(self, tasks: int) -> list[int]:
        """How many samples of each task are held."""
        if not self.size:
            return [0] * tasks
        held: list[int] = torch.bincount(self["task"], minlength=tasks).tolist()
        return held

    def snapshot(self) -> Journal:
        """Remember what is held now, without copying it. Until `restore` or `release` changes are noted."""
        rest = {
            "samples": self._samples,
            "ring": None if self._ring is None else self._ring.clone(),
            "counters": None if self._ring_counters is None else self._ring_counters.clone(),
            "reservoir": self.reservoir.state_dict(),
        }
        self._journal = Journal(self.columns, self.size, rest)
        return self._journal

    def restore(self, before: Journal) -> None:
        """Hold again what was held when the snapshot was taken."""
        before.undo()
        self.columns, self.size, self._samples = dict(before.columns), before.size, before.rest["samples"]
        self._ring, self._ring_counters = before.rest["ring"], before.rest["counters"]
        self.reservoir.load_state_dict(before.rest["reservoir"])
        self._journal = None

    def release(self) -> None:
        """What happened since the snapshot stays."""
        self._journal = None

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {name: self[name].clone() for name in self.columns}
        ring = {} if self._ring is None else {"table": self._ring, "counters": self._ring_counters}
        return {
            "columns": state,
            "ring": ring,
            "reservoir": self.reservoir.state_dict(),
            "samples": self._samples,
            "bound": str(self.bound),
        }

    def _check_size(self, samples: int | None, columns: dict[str, Tensor]) -> None:
        """A state may not ask for more than the bound allows."""
        own, most = parse_bound(self.bound)
        each = sum(value[:1].numel() * value.element_size() for value in columns.values())
        held = max((len(value) for value in columns.values()), default=0)
        fits = samples == own if most is None else samples is None or (0 <= samples * max(each, 1) <= most)
        if not fits or held > (samples or 0):
            raise UsageError(f"the saved memory holds {held} of {samples} samples, which memory={self.bound} doesn't")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if str(self.bound) != state["bound"]:
            raise UsageError(f"the saved memory is bounded by {state['bound']}, this one by {self.bound}")
        self._check_size(state["samples"], state["columns"])
        self._samples, self.size, self.columns = state["samples"], 0, {}
        self.reservoir.load_state_dict(state.get("reservoir") or {"seen": state["seen"]})
        if state["columns"]:
            self.allocate(**state["columns"])
            self.write(torch.arange(len(state["columns"]["x"])), **state["columns"])
        ring = state.get("ring") or {}
        self._ring, self._ring_counters = ring.get("table"), ring.get("counters")


def _newest_of_each(table: Tensor, counters: Tensor, quota: int) -> list[Tensor]:
    """Slots of the newest `quota` rows of each ring, oldest first."""
    old = len(table) // len(counters)
    newest = []
    for group, count in enumerate(counters.tolist()):
        held = min(count, old)
        order = torch.arange(count - held, count) % old
        newest.append(table[group * old + order][max(0, held - quota) :])
    return newest
