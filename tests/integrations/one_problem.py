"""One small problem through several training loops: the same core, the same batches, so the same duals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset, Sampler

import pdcl
from pdcl.integrations.task_replay import TaskReplay, forward_of
from pdcl.learning.batches import epoch_order, seeded
from pdcl.learning.loop import Loop
from pdcl.learning.progress import Moved
from pdcl.learning.schedule import Schedule
from pdcl.streams.data import TensorData
from pdcl.streams.task import Spec, Stream, Task
from pdcl.trees import cat

TASKS, BATCH, LR, EPOCHS = 3, 8, 0.3, 2
CORE: dict[str, Any] = {
    "tolerance": 0.2, "dual": "ascent:lr=2", "drift": 0.3, "soften": 0.6, "witness": 4, "guard": 4,
    "partition": "affine:alpha=0.5", "dual_steps": 8,
}  # fmt: skip


class Rows(Dataset[Any]):
    """Two of six classes. Computed in double precision, another order of sums differs in the last digits alone; the
    numbers are those of single precision, in which Datasets are read."""

    def __init__(self, task: int) -> None:
        random = np.random.default_rng(task)
        y = 2 * task + np.arange(48) % 2
        self.x = torch.as_tensor(random.normal(size=(48, 6)) + 2 * np.eye(6)[y]).float().double()
        self.targets = torch.as_tensor(y)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        return self.x[row], int(self.targets[row])


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 6)).double()


class Fading(pdcl.Lever):
    """Past tasks weigh a tenth less after each dual step, from one task to the next anew. steps: how many there were
    of each task."""

    def __init__(self) -> None:
        self.steps: dict[int, int] = {}

    def pull(self, core: pdcl.PrimalDual, moved: Moved) -> None:
        assert moved.duals == core.task_duals().tolist()
        assert len(moved.slacks) == core.past_tasks
        core.algorithm.constraints.base.mul_(0.9)
        self.steps[core.past_tasks] = self.steps.get(core.past_tasks, 0) + 1


def core(lever: pdcl.Lever | None = None) -> pdcl.PrimalDual:
    return pdcl.PrimalDual(36, generator=seeded(0, 1), lever=lever, **CORE)


class InOrder(Sampler[int]):
    """Positions in the order that our loop has, epoch by epoch."""

    def __init__(self, samples: int, task: int) -> None:
        self.samples, self.task, self.epoch = samples, task, 0

    def __len__(self) -> int:
        return self.samples

    def __iter__(self) -> Iterator[int]:
        self.epoch += 1
        return iter(epoch_order(self.samples, 0, self.task, self.epoch - 1).tolist())


def by_hand(lever: pdcl.Lever | None = None) -> tuple[pdcl.PrimalDual, list[list[float]]]:
    """A loop written by hand: `pdcl.PrimalDual` and torch."""
    model, primal_dual, duals = network(), core(lever), []
    optimiser, forward, seen = torch.optim.SGD(model.parameters(), LR), forward_of(model), 0
    for number in range(TASKS):
        rows = Rows(number)
        data = TensorData(rows.x, rows.targets)
        trained = primal_dual.hold_back(data, seeded(0, number, 3), forward)
        part = data if trained is None else data.subset(trained)
        steps = Schedule(EPOCHS, BATCH).steps(len(part))
        primal_dual.begin(len(part), steps)
        for epoch in range(EPOCHS):
            for index in epoch_order(len(part), 0, number, epoch).split(BATCH):
                x, y = part.fetch(index)
                drawn = primal_dual.draw(len(y))
                inputs = x if drawn is None else cat([x, primal_dual.past.inputs(drawn.slots)])
                terms, weights = primal_dual.terms(model(inputs), y, drawn), primal_dual.weights(len(y), drawn)
                optimiser.zero_grad()
                (terms.mean() if weights is None else (weights * terms).sum()).backward()
                optimiser.step()
                primal_dual.observe(index, terms.detach(), len(y))
                if primal_dual.due():
                    primal_dual.measure(forward)
        duals.append(primal_dual.end(f"task {number}", data, forward, seen).duals)
        seen += len(data)
    return primal_dual, duals


def by_task_replay(lever: pdcl.Lever | None = None) -> list[list[float]]:
    """A loop that knows its own loss alone, as adapters of other libraries see theirs."""
    model, replay, duals = network(), TaskReplay(core(lever)), []
    optimiser = torch.optim.SGD(model.parameters(), LR)
    for number in range(TASKS):
        part: Any = replay.enter(f"task {number}", Rows(number), model)
        replay.begin(len(part), Schedule(EPOCHS, BATCH).steps(len(part)))
        for epoch in range(EPOCHS):
            for index in epoch_order(len(part), 0, number, epoch).split(BATCH):
                rows = [part[i] for i in index.tolist()]
                x, y = torch.stack([row[0] for row in rows]), torch.tensor([row[1] for row in rows])
                optimiser.zero_grad()
                replay.total(cross_entropy(model(x), y), len(y), model).backward()
                optimiser.step()
                replay.after(model)
        duals.append(replay.leave(model).duals)
    return duals


def by_learner(lever: pdcl.Lever | None = None) -> list[list[float]]:
    """Our own loop."""
    spec = Spec((6,), torch.float64, 6, labels=tuple(range(6)))
    data = [TensorData(Rows(k).x, Rows(k).targets) for k in range(TASKS)]
    stream = Stream("small", [Task(k, f"task {k}", d, d, (2 * k, 2 * k + 1)) for k, d in enumerate(data)], spec)
    learner = pdcl.PDCL(network(), memory=36, optimizer="sgd", lr=LR, lever=lever, **CORE)
    learner.prepare(spec)
    return Loop(learner, stream, Schedule(EPOCHS, BATCH)).run().duals
