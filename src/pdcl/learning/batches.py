"""The order in which a task's samples are seen, what a learner gets of them at each step, and what it gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.learning.schedule import single_left
from pdcl.ranks import ALONE, Ranks
from pdcl.streams.data import Data
from pdcl.streams.joined import JoinedData
from pdcl.streams.readers import fetched
from pdcl.trees import Tree, to

# How many samples one forward pass takes where nothing is trained.
EVALUATION_BATCH = 250


@dataclass(frozen=True)
class Batch:
    """Raw inputs (a tensor, or a tree of them) and targets of `index` positions of the current task's data.

    positions: `index` of all ranks. total: how many samples the batch has on all ranks.
    """

    x: Tree
    y: Tensor
    index: Tensor
    task: int
    of: Whole | None = None
    positions: Tensor = field(init=False)
    total: int = field(init=False)

    def __post_init__(self) -> None:
        # Plain attributes: every step asks for them several times.
        positions = self.index if self.of is None else self.of.index
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "total", len(positions))

    def __len__(self) -> int:
        return len(self.y)

    def complete(self) -> Batch:
        """The batch of all ranks, read here."""
        if self.of is None:
            return self
        data, index = self.of.data, self.of.index
        x, y = data.fetch(index)
        return Batch(to(x, self.y.device), y.to(self.y.device), index, self.task)


@dataclass(frozen=True)
class Whole:
    """What a batch is one rank's part of."""

    data: Data
    index: Tensor


@dataclass(frozen=True)
class Step:
    """What one update did: the current batch's losses, one per sample, and numbers worth plotting.

    `losses` are looked at some steps later, so nobody may write into them.
    """

    losses: Tensor
    scalars: dict[str, float] = field(default_factory=dict)


def seeded(*numbers: int) -> torch.Generator:
    """A generator that is a pure function of these numbers; nearby numbers give unrelated streams."""
    state = np.random.SeedSequence(numbers).generate_state(2, np.uint32)
    return torch.Generator().manual_seed(int(state[0]) << 32 | int(state[1]))


def epoch_order(samples: int, seed: int, task: int, epoch: int) -> Tensor:
    """The order of one epoch: a pure function of (seed, task, epoch), so a position is three integers."""
    return torch.randperm(samples, generator=seeded(seed, task, epoch))


def in_blocks(order: Tensor, data: Data) -> Tensor:
    """This order, or where data is read from its start, the same block by block: each is shuffled within itself."""
    return order if data.blocks is None else order[data.blocks[order].argsort(stable=True)]


def batches(
    data: Data,
    task: int,
    size: int,
    order: Tensor,
    device: torch.device,
    start: int = 0,
    ranks: Ranks = ALONE,
    joins: bool = False,
) -> Iterator[Batch]:
    """Batches of `size` in this order, from batch number `start` on; the last one may be short. Of each, this rank's
    part. Data that is slow to read is read ahead. joins: a single sample that is left over goes with the batch before
    it."""
    parts = list(order.split(size))
    if joins and single_left(len(order), size):
        parts[-2:] = [torch.cat(parts[-2:])]
    whole = parts[start:]
    mine = whole if ranks.alone else [index[ranks.part(len(index))] for index in whole]
    for index, own, (x, y) in zip(whole, mine, fetched(data, mine), strict=True):
        yield Batch(to(x, device), y.to(device), own, task, None if ranks.alone else Whole(data, index))


def mixed(parts: list[Data]) -> Data:
    """Two or more sets of samples as one, in order, for a method that mixes stored samples into each pass."""
    if any(part.blocks is not None for part in parts):
        raise UsageError("this method mixes stored samples into each pass, so pdcl.Iterated won't do: use pdcl or er")
    return JoinedData(parts)
