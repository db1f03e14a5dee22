"""Which ranks hold the inputs of which stored samples: all hold all, or each those of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pdcl.past.file_rows import exceeds, in_ram, inputs_among
from pdcl.past.shard_rows import ShardRows, owners
from pdcl.ranks import Ranks


@dataclass(frozen=True)
class Share:
    """Of so many samples those whose inputs this rank holds. mine: a mask; None where every rank holds all."""

    ranks: Ranks
    total: int
    mine: Tensor | None = None

    def own(self, things: Tensor) -> Tensor:
        """What belongs to this rank's samples, of what belongs to all: [total, …]."""
        return things if self.mine is None else things[self.mine.to(things.device)]

    def whole(self, values: Tensor) -> Tensor:
        """All values along the last dimension, of which each rank has those of its own samples."""
        return values if self.mine is None else self.ranks.whole(values, self.total, self.mine)

    def places(self, positions: Tensor) -> Tensor:
        """Where this rank's samples among these positions stand in `own`."""
        if self.mine is None:
            return positions
        return (self.mine.cumsum(0) - 1)[positions[self.mine[positions]]]


def share_of(ids: Tensor, ranks: Ranks) -> Share:
    """The samples with these ids that are this rank's."""
    return Share(ranks, len(ids), owners(ids, ranks.world) == ranks.rank)


def divided(columns: Mapping[str, Any], size: int, rows: int, most: int, ranks: Ranks) -> dict[str, ShardRows]:
    """The columns that ranks divide before they hold `rows` rows, since that is more than `most` bytes on each.

    `size` of them are in use. Where a part of the inputs couldn't go to a file, such as sequences, none is divided.
    """
    if ranks.alone or "id" not in columns or not exceeds(columns, rows, most):
        return {}
    inputs = in_ram(columns)
    if len(inputs) < len(inputs_among(columns)):
        return {}
    here = most // sum(column.row_bytes() for column in inputs.values())
    mine, slots = share_of(columns["id"].used(size), ranks).mine, torch.arange(size)
    assert mine is not None
    found = {}
    for name, column in inputs.items():
        found[name] = ShardRows(column.data, ranks, here)
        found[name].reserve(size, size)
        found[name].write(slots, column.used(size), mine)
    return found
