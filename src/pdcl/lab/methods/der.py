"""Dark experience replay: besides labels, memory keeps the outputs that the network gave when it saw a sample.

    L = ℓ(f(x), y) + α ‖f(x′) − z′‖² / K

(x′, z′) is drawn from a reservoir; z′ are the outputs of the time when x′ was stored; K is the number of outputs; each
term is a mean over its batch. The paper's network has all outputs from the start, so z′ has one for every class to
come; where a network grows, a new output is recorded as it is when it comes.

Buzzega, Boschini, Porrello, Abati, Calderara, "Dark Experience for General Continual Learning", NeurIPS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from pdcl.errors import UsageError
from pdcl.learning.batches import EVALUATION_BATCH, Batch, Step, batches, in_blocks
from pdcl.methods.replay import Rehearsal
from pdcl.streams.task import Spec, Task
from pdcl.trees import Tree, cat, length


@dataclass(eq=False)
class DER(Rehearsal):
    """DER: replayed outputs are held to those stored with the samples.

    alpha: α, the weight of the distance to stored outputs
    """

    alpha: float = 0.5

    persistent: ClassVar[tuple[str, ...]] = ("samples_seen",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha < 0:
            raise UsageError(f"alpha={self.alpha} must not be negative")

    def prepare(self, spec: Spec) -> None:
        if spec.kind == "tokens":
            raise UsageError("'der' and 'derpp' store outputs of one size, and those of tokens have none; use er")
        super().prepare(spec)

    def row_bytes(self, x: Tree, y: Tree) -> int:
        assert self.spec is not None
        return super().row_bytes(x, y) + 4 * self.spec.outputs

    def step(self, batch: Batch) -> Step:
        draws = self.draws(self.portion(batch)) if len(self.held) else []
        now, *then = self.forward_each([batch.x, *(self.held.read("x", slots) for slots in draws)])
        losses = self.losses(now, batch.y)
        self.descend(losses.mean() + self.rehearsed(draws, then) if draws else losses.mean())
        self.held.add_reservoir(self.generator, **self.rows(batch, outputs=now.detach()))
        return Step(losses.detach())

    def absorb(self, task: Task) -> None:
        self.begin(task, 1)
        order = in_blocks(torch.randperm(len(task.data), generator=self.generator), task.data)
        for batch in batches(task.data, task.index, EVALUATION_BATCH, order, self.place):
            self.held.add_reservoir(self.generator, **self.rows(batch, outputs=self.evaluated(batch.x)))
        self.end(task)

    def draws(self, m: int) -> list[Tensor]:
        """Slots of every draw of m samples from memory that the loss needs."""
        return [self.held.draw(m, self.generator)]

    def rehearsed(self, draws: list[Tensor], outputs: list[Tensor]) -> Tensor:
        """α ‖f(x′) − z′‖² / K, a mean over the draw."""
        return self.alpha * mse_loss(outputs[0], self.held.read("outputs", draws[0]))

    def forward_each(self, inputs: list[Tree]) -> list[Tensor]:
        """Outputs of several batches: one pass over all, unless that would mix their batch statistics."""
        if self.batch_statistics:
            return [self.outputs(x) for x in inputs]
        return list(self.outputs(cat(inputs)).split([length(x) for x in inputs]))
