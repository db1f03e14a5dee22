"""Two sides measured in one run: they take turns, a few steps each, so that a busy machine slows both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice

import torch
from torch import Tensor

from pdcl.learning.batches import batches
from pdcl.lifelong.learner import Learner
from pdcl.streams.task import Task

TURN = 60


def images(y: Tensor, seed: int) -> Tensor:
    """Random grey images whose mean brightness tells the class: learnable, so that duals move as on real data."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 120, (len(y), 1, 28, 28), generator=random, dtype=torch.uint8)
    return x + (12 * y).to(torch.uint8).reshape(-1, 1, 1, 1)


def turns(learner: Learner, task: Task, batch: int) -> Iterator[float]:
    """CPU seconds of each turn of one task's steps: batches, replay, duals, everything but its beginning and end."""
    learner.begin(task, -(-len(task.data) // batch))
    order = torch.randperm(len(task.data), generator=torch.Generator().manual_seed(0))
    coming = batches(task.data, task.index, batch, order, learner.place)
    for _ in range(0, len(task.data), batch * TURN):
        start = time.process_time()
        for each in islice(coming, TURN):
            learner.step(each)
        yield time.process_time() - start


def ratio(above: Callable[[], Iterator[float]], below: Callable[[], Iterator[float]], rounds: int) -> float:
    """Median of CPU seconds above / below over the turns of all rounds, but for the first, which warms up."""
    pairs = [pair for _ in range(rounds) for pair in islice(zip(above(), below(), strict=True), 1, None)]
    return statistics.median(one / other for one, other in pairs)
