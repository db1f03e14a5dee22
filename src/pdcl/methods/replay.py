"""What methods with a memory share: its bound, its rows, how many samples a step replays."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.learning.batches import Batch, Step
from pdcl.lifelong.learner import Learner
from pdcl.past.bound import parse_bound, parse_bytes
from pdcl.past.columns import column_for
from pdcl.past.store import IN_RAM, Memory
from pdcl.streams.task import Spec, Task
from pdcl.trees import Tree, flatten

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
