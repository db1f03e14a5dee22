"""Experience replay: train on the current batch and as many stored samples, one mean over both.

Chaudhry et al., "On Tiny Episodic Memories in Continual Learning", 2019; reservoir after Vitter, 1985.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lifelong.learner import Learner
from pdcl.past.bound import parse_bound, parse_bytes
from pdcl.past.columns import column_for
from pdcl.past.store import IN_RAM, Memory
from pdcl.streams.task import Spec, Task
from pdcl.training.batches import Batch, batches, in_blocks
from pdcl.training.learner import EVALUATION_BATCH, Step
from pdcl.trees import Tree, cat, flatten

MOST_REPLAY = 2**16
SHOWN = 32


def some_of(task: Task) -> Tensor:
    """Positions of up to 32 samples that memory's columns are made for; several, since sequences vary in length."""
    return torch.arange(min(len(task.data), SHOWN))


@dataclass(eq=False)
class Remembering(Learner):
    """What all methods with a memory share: its bound.

    memory: how much is stored, in samples (500) or bytes (64MB)
    memory_in_ram: up to how many bytes of stored inputs a process holds in RAM; more lie in a scratch file
    """

    memory: int | str = 200
    memory_in_ram: str = IN_RAM

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_bound(self.memory)
        parse_bytes("memory_in_ram", self.memory_in_ram)
        self.samples_seen = 0

    def prepare(self, spec: Spec) -> None:
        super().prepare(spec)
        self.store = Memory(self.memory, self.place, self.memory_in_ram)
        if spec.tasks is not None and str(self.memory).isdigit() and int(self.memory) < spec.tasks:
            raise UsageError(
                f"memory={self.memory} is smaller than the {spec.tasks} tasks of the stream: "
                f"some would keep no sample; give at least memory={spec.tasks}"
            )

    def check_room(self, task: Task) -> None:
        places, tasks = self.held.places(self.row_bytes(*task.data.fetch(some_of(task)))), task.index + 1
        if places < tasks:
            raise UsageError(
                f"memory={self.memory} holds {places} samples and this is task number {tasks}: some task would keep "
                "no sample; begin a learner with more memory, or learn several tasks as one"
            )

    def row_bytes(self, x: Tree, y: Tree) -> int:
        """Bytes of one of these samples, without the columns that a method adds: input, target, task, id."""
        leaves = flatten((x, y)).values()
        return sum(column_for(leaf, self.place).row_bytes(leaf) for leaf in leaves) + 16

    @property
    def held(self) -> Memory:
        """The memory, after `prepare`."""
        assert self.store is not None
        return self.store

    def rows(self, batch: Batch, **more: Tensor) -> dict[str, Tree]:
        """A batch as memory rows: raw input, target, task, an id that no other sample ever has, and more."""
        task = torch.full((len(batch),), batch.task)
        return {"x": batch.x, "y": batch.y, "task": task, "id": batch.index + self.samples_seen, **more}

    def end(self, task: Task) -> None:
        self.samples_seen += len(task.data)


@dataclass(eq=False)
class Rehearsal(Remembering):
    """A method that replays a batch of stored samples at each step.

    replay: stored samples per step (as many as the batch has, if nothing is said)
    """

    replay: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replay is not None and not 1 <= self.replay <= MOST_REPLAY:
            raise UsageError(f"replay={self.replay} must lie between 1 and {MOST_REPLAY}: all are in one step")

    def take(self, batch: Batch) -> Step:
        """A step may read `replay` as a number. What was stated stands again after it: that is what is saved."""
        stated, self.replay = self.replay, self.portion(batch)
        try:
            return super().take(batch)
        finally:
            self.replay = stated

    def portion(self, batch: Batch) -> int:
        """How many samples are replayed beside this batch."""
        return self.replay or batch.total


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
