"""The order in which a task's samples are seen, and what a learner gets of them at each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pdcl.streams.data import Data
from pdcl.trees import Tree, cat, take, to


@dataclass(frozen=True)
class Batch:
    """Raw inputs (a tensor, or a tree of them) and targets of `index` positions of the current task's data."""

    x: Tree
    y: Tensor
    index: Tensor
    task: int

    def __len__(self) -> int:
        return len(self.y)


def seeded(*numbers: int) -> torch.Generator:
    """A generator that is a pure function of these numbers; nearby numbers give unrelated streams."""
    state = np.random.SeedSequence(numbers).generate_state(2, np.uint32)
    return torch.Generator().manual_seed(int(state[0]) << 32 | int(state[1]))


def epoch_order(samples: int, seed: int, task: int, epoch: int) -> Tensor:
    """The order of one epoch: a pure function of (seed, task, epoch), so a position is three integers."""
    return torch.randperm(samples, generator=seeded(seed, task, epoch))


def batches(data: Data, task: int, size: int, order: Tensor, device: torch.device, start: int = 0) -> Iterator[Batch]:
    """Batches of `size` in this order, from batch number `start` on; the last one may be short."""
    for index in order.split(size)[start:]:
        x, y = data.fetch(index)
        yield Batch(to(x, device), y.to(device), index, task)


class Joined(Data):
    """Two or more sets of samples as one, in order."""

    def __init__(self, parts: list[Data]) -> None:
        self.parts = parts
        self.targets = cat([part.targets for part in parts])
        self._starts = torch.tensor([0, *np.cumsum([len(part) for part in parts])[:-1].tolist()])

    def fetch(self, index: Tensor) -> tuple[Tree, Tensor]:
        owner = torch.searchsorted(self._starts, index, right=True) - 1
        places, found = [], []
        for number in owner.unique().tolist():
            here = (owner == number).nonzero().squeeze(1)
            values, _ = self.parts[number].fetch(index[here] - self._starts[number])
            places.append(here)
            found.append(to(values, "cpu"))
        return take(cat(found), torch.cat(places).argsort()), self.targets[index]

    def subset(self, index: Tensor) -> Data:
        raise NotImplementedError("a join is read, not divided")
