"""Experience replay: train on the current batch and as many stored samples, one mean over both.

Chaudhry et al., "On Tiny Episodic Memories in Continual Learning", 2019; reservoir after Vitter, 1985.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.learning.batches import EVALUATION_BATCH, Batch, Step, batches, in_blocks
from pdcl.methods.replay import Rehearsal, some_of
from pdcl.streams.task import Spec, Task
from pdcl.trees import Tree, cat


@dataclass(eq=False)
class ER(Rehearsal):
    """Experience replay with a reservoir: every sample ever seen is held with the same probability."""

    persistent: ClassVar[tuple[str, ...]] = ("samples_seen",)
    data_parallel: ClassVar[bool] = True

    def step(self, batch: Batch) -> Step:
        total = batch.total + min(self.portion(batch), len(self.held))
        x, y = self.with_replayed(batch)
        losses = self.losses(self.outputs(x), y)
        self.descend(losses, self.even_weights(losses, total))
        self.remember(batch)
        return Step(losses[: len(batch)].detach())

    def with_replayed(self, batch: Batch) -> tuple[Tree, Tensor]:
        """The batch and, once memory holds something, `replay` distinct stored samples behind it."""
        if not len(self.held):
            return batch.x, batch.y
        slots = self.held.draw(self.portion(batch), self.generator)
        if not self.peers.alone:
            slots = slots[self.peers.part(len(slots), backwards=True)]
        return cat([batch.x, self.held.read("x", slots)]), cat([batch.y, self.held.read("y", slots)])

    def absorb(self, task: Task) -> None:
        self.begin(task, 1)
        order = in_blocks(torch.randperm(len(task.data), generator=self.generator), task.data)
        for batch in batches(task.data, task.index, EVALUATION_BATCH, order, self.place):
            self.remember(batch)
        self.end(task)

    def remember(self, batch: Batch) -> None:
        if not self.held.reservoir.pass_by(batch.total):
            self.held.add_reservoir(self.generator, **self.rows(batch.complete()))


@dataclass(eq=False)
class ERRing(ER):
    """Experience replay with one first-in-first-out ring per class seen so far, all of the same size."""

    persistent: ClassVar[tuple[str, ...]] = ("samples_seen", "ranks", "started")

    def prepare(self, spec: Spec) -> None:
        super().prepare(spec)
        self.ranks: dict[str, int] = {}
        self.started = False
        self._lookup: Tensor | None = None

    def check_room(self, task: Task) -> None:
        super().check_room(task)
        rings = len({*self.ranks, *map(str, task.classes or (task.index,))})
        places = self.held.places(self.row_bytes(*task.data.fetch(some_of(task))))
        if places < rings:
            raise UsageError(f"memory={self.memory} holds {places} samples, fewer than the {rings} classes so far")

    def begin(self, task: Task, steps: int) -> None:
        for group in task.classes or (task.index,):
            self.ranks.setdefault(str(group), len(self.ranks))
        self._lookup = None
        self.started = False

    def remember(self, batch: Batch) -> None:
        rows = self.rows(batch)
        self.held.allocate(**rows)
        if not self.started:
            self.held.start_ring(len(self.ranks))
            self.started = True
        self.held.add_ring(self._rank(batch), **rows)

    def _rank(self, batch: Batch) -> Tensor:
        """Which ring each sample belongs to: its class's, or its task's where there are no classes."""
        if self._lookup is None:
            self._lookup = torch.zeros(1 + max(int(name) for name in self.ranks), dtype=torch.long)
            for name, rank in self.ranks.items():
                self._lookup[int(name)] = rank
        classes = isinstance(batch.y, Tensor) and batch.y.dtype == torch.long and batch.y.ndim == 1
        groups = batch.y if classes else torch.full((len(batch),), batch.task)
        return self._lookup[groups.cpu()]
