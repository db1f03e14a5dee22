"""First in, first out: one ring of slots per group (a class or a task), all of the same size.

A ring of quota places holds the newest samples of its group. Slots are handed out as places are first used, so rings
that are far from full cost little.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pdcl.algorithm.selection import ring_slots
from pdcl.errors import UsageError


class Ring:
    """`table` groups × width: the slot of each place used so far (−1: none); `counters`: samples seen per group."""

    def __init__(self, groups: int, quota: int) -> None:
        self.quota = quota
        self.table = torch.zeros(groups, 0, dtype=torch.long)
        self.counters = torch.zeros(groups, dtype=torch.long)

    def offer(self, groups: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """Which of these samples stay, and the slot of each; new places get slots from `size` on."""
        kept, places, self.counters = ring_slots(groups, self.counters, self.quota)
        group, place = places // self.quota, places % self.quota
        self._reserve(int(place.max()) + 1 if len(place) else 0)
        fresh = self.table[group, place] < 0
        self.table[group[fresh], place[fresh]] = torch.arange(size, size + int(fresh.sum()))
        return kept, self.table[group, place]

    def _reserve(self, width: int) -> None:
        groups, have = self.table.shape
        if width > have:
            more = min(self.quota, max(width, 2 * have)) - have
            self.table = torch.cat([self.table, torch.full((groups, more), -1)], 1)

    def newest(self, most: int) -> list[Tensor]:
        """Slots of the newest `most` samples of each group, oldest first."""
        found = []
        for slots, count in zip(self.table, self.counters.tolist(), strict=True):
            held = min(count, self.quota)
            order = torch.arange(count - held, count) % self.quota
            found.append(slots[order][max(0, held - most) :])
        return found

    def restarted(self, groups: int, quota: int) -> tuple[Ring, Tensor]:
        """Rings of another size or number, and the slots that they keep of these, which become 0, 1, …"""
        newest, ring, start = self.newest(quota), Ring(groups, quota), 0
        ring._reserve(max(len(slots) for slots in newest))
        for group, slots in enumerate(newest):
            ring.table[group, : len(slots)] = torch.arange(start, start + len(slots))
            ring.counters[group] = len(slots)
            start += len(slots)
        return ring, torch.cat(newest)

    def state_dict(self) -> dict[str, Any]:
        return {"table": self.table.flatten().clone(), "counters": self.counters.clone(), "quota": self.quota}

    @classmethod
    def from_state(cls, state: dict[str, Any], size: int) -> Ring:
        """A state without `quota` holds a table of full width."""
        table, counters = state["table"].clone(), state["counters"].clone()
        width = len(table) // max(1, len(counters))
        ring = cls(len(counters), int(state.get("quota", width)))
        whole = len(table) == width * len(counters) and 0 <= width <= ring.quota > 0
        used = counters.clamp(max=ring.quota)
        if not whole or bool((table >= size).any()) or bool((used > width).any()) or bool((counters < 0).any()):
            raise UsageError(
                f"the saved rings, {len(table)} places of {len(counters)} groups, don't fit {size} samples"
            )
        ring.table, ring.counters = table.view(len(counters), width), counters
        return ring
