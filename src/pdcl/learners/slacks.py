"""How far past tasks are from their tolerances: slacks measured on memory, on replayed batches, or smoothed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pdcl.duality.lagrangian import task_means
from pdcl.errors import Diverged

if TYPE_CHECKING:
    from pdcl.learners.pdcl import PDCL

SMOOTHING = 0.3
ENOUGH = 16


class Slacks:
    """Measures `s = value − ε` of every past task and, at the sample level, of the samples looked at."""

    def __init__(self, learner: PDCL) -> None:
        self.learner = learner
        self.smooth: Tensor | None = None
        self.offered: list[tuple[Tensor, Tensor]] = []

    def lay_out(self) -> None:
        """A new task begins: decide how many samples of each past task a measurement looks at."""
        learner = self.learner
        self.smooth = None
        self.offered = []
        stored = len(learner.held)
        self.whole = stored <= learner.slack_samples
        wanted = (learner.counts * learner.slack_samples / max(stored, 1)).round().long().clamp(min=1)
        wanted = torch.minimum(wanted, learner.counts)
        self.looked_at = learner.counts if self.whole else wanted
        self.strata = torch.repeat_interleave(torch.arange(learner.past), self.looked_at)

    def offer(self, slots: Tensor, values: Tensor) -> None:
        """Replayed values, kept where they are what slacks are made of."""
        if self.learner.slack == "batch":
            self.offered.append((slots, values))

    def __call__(self) -> tuple[Tensor, Tensor | None, Tensor]:
        """Slacks [quantities, constraints looked at], which constraints those are (None: all), slacks by task."""
        learner = self.learner
        slots, values = self._batch() if learner.slack == "batch" else self._memory()
        if not bool(values.isfinite().all()):
            raise Diverged(f"losses on memory are no longer finite (lr={learner.lr}); lower lr or dual_lr")
        tasks = learner.task_of[slots]
        means = torch.stack([task_means(row, tasks, learner.past) for row in values])
        if learner.level == "sample":
            visited = None if self.whole and learner.slack != "batch" else slots
            limits = learner.duals.tolerances if visited is None else learner.duals.tolerances[:, visited]
            return values - limits, visited, means[0] - torch.tensor(learner.tolerances, dtype=torch.float64)
        slacks = self._smoothed(means - learner.duals.tolerances)
        seen = (~slacks[0].isnan()).nonzero().flatten()
        if len(seen) < learner.past:
            return slacks[:, seen], seen, slacks[0]
        return slacks, None, slacks[0]

    def _memory(self) -> tuple[Tensor, Tensor]:
        """All stored samples, or a fresh stratified sample of them, in eval mode and unaugmented."""
        learner = self.learner
        slots = torch.arange(len(learner.held))
        if not self.whole:
            u = torch.rand(len(self.strata), generator=learner.generator, dtype=torch.float64)
            slots = learner.offsets[self.strata] + (u * learner.counts[self.strata]).long()
            slots = slots.unique() if learner.level == "sample" else slots
        x = learner.held["x"] if self.whole else learner.held["x"][slots]
        return slots, self.measured(learner.evaluated(x), slots)

    @torch.no_grad()
    def measured(self, outputs: Tensor, slots: Tensor) -> Tensor:
        """What tolerances speak of, quantities × samples: the error instead of the loss if they are in error rate."""
        learner = self.learner
        rows = learner.constrained(outputs, slots)
        if "loss" in learner.quantities:
            rows[0] = self.of_tolerance(outputs, learner.held["y"][slots])
        return rows.double().cpu()

    def of_tolerance(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss or the error of each sample, as the tolerance's unit says."""
        goal = self.learner.goal
        return (goal.error if self.learner.limit.unit == "error" else goal.loss)(outputs, targets)

    def _batch(self) -> tuple[Tensor, Tensor]:
        slots = torch.cat([slots for slots, _ in self.offered])
        values = torch.cat([values for _, values in self.offered], 1).double().cpu()
        self.offered = []
        return slots, values

    def _smoothed(self, slacks: Tensor) -> Tensor:
        """An exponential mean, where asked for and where a task shows too few samples to trust one look."""
        learner = self.learner
        if learner.slack == "batch" or (learner.slack == "memory" and self.whole):
            return slacks
        weight = (self.looked_at / ENOUGH).clamp(max=1).expand_as(slacks).clone()
        if learner.slack == "ema":
            weight = weight.clamp(max=SMOOTHING)
        weight[:, self.looked_at >= learner.counts] = SMOOTHING if learner.slack == "ema" else 1.0
        self.smooth = slacks if self.smooth is None else self.smooth + weight * (slacks - self.smooth)
        return self.smooth

    def state(self) -> dict[str, Any]:
        return {"smooth": self.smooth, "offered": [list(pair) for pair in self.offered]}

    def restore(self, state: dict[str, Any]) -> None:
        self.smooth = state["smooth"]
        self.offered = [(slots, values) for slots, values in state["offered"]]
