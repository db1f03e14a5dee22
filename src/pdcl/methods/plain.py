"""Lower and upper bound of a comparison: plain training, and training on everything seen so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pdcl.errors import UsageError
from pdcl.learning.batches import Batch, Step, mixed
from pdcl.lifelong.learner import Learner
from pdcl.networks.heads import fitted
from pdcl.streams.data import Data
from pdcl.streams.task import Spec, Task


@dataclass(eq=False)
class Finetune(Learner):
    """Plain training on the current task: no memory, no defence against forgetting. The lower end."""

    data_parallel: ClassVar[bool] = True

    def step(self, batch: Batch) -> Step:
        losses = self.losses(self.outputs(batch.x), batch.y)
        self.descend(losses, self.even_weights(losses, batch.total))
        return Step(losses.detach())


@dataclass(eq=False)
class Joint(Finetune):
    """Each task trains a fresh network on everything seen so far: what unbounded memory and time would give.

    restart: begin each task with a fresh network
    """

    restart: bool = True

    persistent: ClassVar[tuple[str, ...]] = ("fresh",)

    def prepare(self, spec: Spec) -> None:
        super().prepare(spec)
        self.past: list[Data] = []
        self.fresh = {name: value.clone() for name, value in self.model.state_dict().items()}

    def mix(self, task: Task) -> Data | None:
        if task.index > len(self.past):
            raise UsageError(
                f"joint training needs all data, and that of {task.index - len(self.past)} past tasks isn't here; "
                "hand it in with learner.recall(tasks)"
            )
        return mixed(self.past) if self.past else None

    def begin(self, task: Task, steps: int) -> None:
        if self.restart:
            self.fresh = fitted(self.fresh, {n: v.clone() for n, v in self.model.state_dict().items()})
            self.model.load_state_dict(self.fresh)
            self.optimiser = self.new_optimiser()

    def end(self, task: Task) -> None:
        self.past.append(task.data)

    def recall(self, tasks: Sequence[Task]) -> None:
        self.past = [task.data for task in tasks]
