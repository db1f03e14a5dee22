"""A draw of stored samples: which are replayed, and what each weighs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from pdcl.ranks import Ranks


@dataclass(frozen=True)
class Drawn:
    """Slots to replay and a weight per quantity and slot: [m], [Q, m]."""

    slots: Tensor
    weights: Tensor

    def part_of(self, ranks: Ranks) -> Drawn:
        """What this rank computes of the draw, with the weights of the whole."""
        mine = ranks.part(len(self.slots), backwards=True)
        return Drawn(self.slots[mine], self.weights[:, mine])
