"""Averaged gradient episodic memory: a step never raises the mean loss of a replayed batch, to first order.

    g̃ = g − (g·g_r / g_r·g_r) g_r   if g·g_r < 0,   else g

g is the gradient on the current batch, g_r that on stored samples of past tasks.

Chaudhry, Ranzato, Rohrbach, Elhoseiny, "Efficient Lifelong Learning with A-GEM", ICLR 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from pdcl.lab.methods.even_shares import check_filling, check_fixed, share_evenly, share_fixed, task_rows
from pdcl.lab.methods.parameters import flat_gradient, set_gradient
from pdcl.learning.batches import Batch, Step
from pdcl.methods.replay import Rehearsal
from pdcl.streams.task import Spec, Task

FILLINGS = ("task", "fixed", "batch", "reservoir")


@dataclass(eq=False)
class AGEM(Rehearsal):
    """A-GEM: gradients that would raise the replayed loss are projected onto the half-space where they don't.

    filling: memory shared evenly by the tasks so far (task) or by all to come (fixed), one training batch of each
        (batch), or a reservoir (A-GEM-R)
    """

    filling: str = "task"

    # A gradient is edited as a whole, before each update.
    unused: ClassVar[tuple[str, ...]] = ("accumulate",)
    persistent: ClassVar[tuple[str, ...]] = ("samples_seen", "largest")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_filling(self.filling, FILLINGS)

    def prepare(self, spec: Spec) -> None:
        if self.filling == "fixed":
            check_fixed("agem", spec)
        super().prepare(spec)
        self.largest = 0

    def step(self, batch: Batch) -> Step:
        reference = self.reference_gradient(self.portion(batch)) if len(self.held) else None
        losses = self.losses(self.outputs(batch.x), batch.y)
        self.backward(losses)
        if reference is not None:
            self.agree(reference)
        self.update()
        self.largest = max(self.largest, len(batch))
        if self.filling == "reservoir":
            self.held.add_reservoir(self.generator, **self.rows(batch))
        return Step(losses.detach())

    def reference_gradient(self, m: int) -> Tensor:
        """g_r, on a fresh draw of m samples from memory."""
        slots = self.held.draw(m, self.generator)
        self.backward(self.losses(self.outputs(self.held.read("x", slots)), self.held.read("y", slots)))
        return flat_gradient(self.model)

    def agree(self, reference: Tensor) -> None:
        """Replace the gradient by its projection where it opposes the reference."""
        gradient = flat_gradient(self.model)
        if gradient @ reference < 0:
            set_gradient(self.model, projected(gradient, reference))

    def end(self, task: Task) -> None:
        if self.filling == "task":
            share_evenly(self, task)
        elif self.filling == "fixed":
            share_fixed(self, task)
        elif self.filling == "batch":
            chosen = torch.randperm(len(task.data), generator=self.generator)[: self.largest]
            self.held.add_reservoir(self.generator, **task_rows(self, task, chosen))
        super().end(task)


def projected(gradient: Tensor, reference: Tensor) -> Tensor:
    """g − (g·g_r / g_r·g_r) g_r: the nearest vector that doesn't oppose g_r, where g does."""
    return gradient - (gradient @ reference) / (reference @ reference) * reference
