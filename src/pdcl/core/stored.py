"""Numbers of stored samples, where each rank may hold the inputs of some of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from pdcl.core.slacks import Read
from pdcl.memory.store import Memory
from pdcl.ranks import Ranks
from pdcl.trees import length


def outputs_here(memory: Memory, slots: Tensor, forward: Callable[[Any], Tensor]) -> Tensor:
    """Outputs of stored samples whose inputs are here."""
    return outputs_of(memory, memory.read("x", slots), forward)


def outputs_of(memory: Memory, x: Any, forward: Callable[[Any], Tensor]) -> Tensor:
    """Outputs of inputs that are here. Of a divided memory they may be none, and not every network takes none."""
    return forward(x) if length(x) or not memory.shards else forward(memory.blank())[:0]


def spread(read: Read, memory: Memory, ranks: Ranks) -> Read:
    """`read`, of which each rank does a part: that whose inputs it holds, or any where all hold all."""
    if not memory.shards:
        return ranks.spread(read)

    def shared(slots: Tensor, owners: Tensor) -> Tensor:
        share = memory.share(slots)
        return share.whole(read(share.own(slots), share.own(owners)))

    return shared
