"""Learning without forgetting: on new data, the outputs for past classes stay what they were before the task.

    L = ℓ(f(x)|_seen, y) − α Σ_{c past} q_c log p_c        q = softmax(z/T)|_past,  p = softmax(f(x)/T)|_past

z are the outputs for x when the task began, after the classifier alone was warmed up on the new classes.

Li, Hoiem, "Learning without Forgetting", ECCV 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from pdcl.errors import UsageError
from pdcl.lab.methods.refusals import only_classification
from pdcl.learning.batches import EVALUATION_BATCH, Batch, Step
from pdcl.lifelong.learner import Learner
from pdcl.objective import masked
from pdcl.streams.data import Data, everything
from pdcl.streams.task import Spec, Task
from pdcl.trees import Tree, to

WARM_BATCH = 10


@dataclass(eq=False)
class LwF(Learner):
    """LwF: distillation from the network as it was before the task, on the task's own data; no memory.

    alpha: α, the weight of the distillation
    temperature: T, above 1 to let small probabilities count
    warm_epochs: passes over the new data that train the classifier alone, before the outputs are recorded
    """

    alpha: float = 1.0
    temperature: float = 2.0
    warm_epochs: int = 1

    persistent: ClassVar[tuple[str, ...]] = ("past", "seen", "recorded")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha < 0 or not self.temperature > 0 or self.warm_epochs < 0:
            given = f"alpha={self.alpha} and warm_epochs={self.warm_epochs}"
            raise UsageError(f"{given} must not be negative, temperature={self.temperature} positive")

    def prepare(self, spec: Spec) -> None:
        only_classification("lwf", spec)
        super().prepare(spec)
        if self.warm_epochs and not isinstance(getattr(self.model, "head", None), nn.Module):
            raise UsageError(
                "lwf warms up the classifier alone, but this network has no attributes `head` and `features`; "
                "give it both, or warm_epochs=0"
            )
        self.past: list[int] = []
        self.seen: list[int] = []
        self.recorded = torch.zeros(0)

    def begin(self, task: Task, steps: int) -> None:
        self.past, self.seen = self.seen, sorted({*self.seen, *task.classes})
        if self.past:
            self.model.eval()
            self._warm(task)
            self.recorded = self._over(task.data, self.outputs)
            self.model.train()

    @torch.no_grad()
    def _over(self, data: Data, function: Callable[[Tree], Tensor]) -> Tensor:
        """`function` of all raw inputs, in pieces."""
        pieces = everything(data).split(EVALUATION_BATCH)
        return torch.cat([function(to(data.fetch(index)[0], self.place)) for index in pieces])

    def _warm(self, task: Task) -> None:
        """Train the classifier alone on the new classes; features don't change, so they are computed once."""
        if not self.warm_epochs:
            return
        features, targets = self._over(task.data, self.penultimate), task.data.targets.to(self.place)
        head = self.model.head
        assert isinstance(head, nn.Module)
        optimiser = torch.optim.SGD(head.parameters(), lr=self.lr)
        for _ in range(self.warm_epochs):
            for index in torch.randperm(len(targets), generator=self.generator).split(WARM_BATCH):
                optimiser.zero_grad()
                cross_entropy(masked(head(features[index]), task.classes), targets[index]).backward()
                optimiser.step()

    def step(self, batch: Batch) -> Step:
        outputs = self.outputs(batch.x)
        losses = self.losses(masked(outputs, tuple(self.seen)), batch.y)
        scalar = losses.mean()
        if self.past:
            recorded = self.recorded[batch.index.to(self.recorded.device)]
            scalar = scalar + self.alpha * distance(outputs[:, self.past], recorded[:, self.past], self.temperature)
        self.descend(scalar)
        return Step(losses.detach())


def distance(outputs: Tensor, recorded: Tensor, temperature: float) -> Tensor:
    """−mean_i Σ_c q_c log p_c, with q and p the softmax at this temperature of recorded and present outputs."""
    return cross_entropy(outputs / temperature, (recorded / temperature).softmax(1))
