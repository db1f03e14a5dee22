"""Line 7 of Algorithm 1: slacks s = L − ε of every constraint, on all samples that measure it or on some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from pdcl.algorithm.constraints import Constraints, Sets
from pdcl.errors import Diverged, UsageError

# With fewer measured samples of a task than this, its slack is smoothed over several measurements.
ENOUGH = 16


@dataclass(frozen=True)
class Measured:
    """slacks s and their standard errors: [visited]; visited: which constraints; told: s of every task, then
    of every segment, for reports, NaN if unknown. share: the measured part of all constraints that have a limit."""

    slacks: Tensor
    errors: Tensor
    visited: Tensor
    told: Tensor
    share: float


def looked_at(counts: Tensor, most: int) -> Tensor:
    """How many samples of each set one measurement looks at: all, if at most `most` in all, else about so many."""
    stored = int(counts.sum())
    if stored <= most:
        return counts
    wanted = (counts * most / max(stored, 1)).round().long().clamp(min=1)
    return torch.minimum(wanted, counts)


def smoothing_weights(looked_at: Tensor, counts: Tensor) -> Tensor:
    """a: how far each smoothed slack moves to the new one; less than 1 if only a few samples of a task are measured.

    >>> smoothing_weights(torch.tensor([4, 4, 40]), torch.tensor([4, 9, 90]))
    tensor([1.0000, 0.2500, 1.0000])
    """
    trust = (looked_at / ENOUGH).clamp(max=1)
    trust[looked_at >= counts] = 1.0
    return trust


class Survey:
    """Which samples each measurement looks at, and what it remembers from one to the next.

    measured_on: the samples of each past task, then of each segment. most: how many one measurement takes at most.
    """

    def __init__(self, measured_on: Sets, most: int, generator: Generator) -> None:
        if most < 1:
            raise UsageError(f"slack_samples={most} must be at least 1")
        self.measured_on, self.generator = measured_on, generator
        self.smooth: Tensor | None = None
        self.looked_at = looked_at(measured_on.counts, most)
        self.whole = bool((self.looked_at == measured_on.counts).all())
        self.has_segments = bool((measured_on.tasks < 0).any())
        self.strata = torch.repeat_interleave(torch.arange(len(measured_on)), self.looked_at)

    def sample(self, by_sample: bool) -> tuple[Tensor, Tensor]:
        """All samples to look at, or a fresh stratified sample of them, and the task or segment each stands for."""
        measured_on = self.measured_on
        if self.whole:
            return measured_on.members, measured_on.owners
        u = torch.rand(len(self.strata), generator=self.generator, dtype=torch.float64)
        places = measured_on.offsets[self.strata] + (u * measured_on.counts[self.strata]).long()
        places = places.unique() if by_sample else places
        return measured_on.members[places], measured_on.owners[places]

    def once(self, numbers: Tensor) -> tuple[Tensor, Tensor | None]:
        """Each of these samples once, and where each stands among them; None: they are so already.

        A sample is a member of its task and of each of its segments: its loss is computed once.
        """
        if not self.has_segments:
            return numbers, None
        return self.measured_on.distinct if self.whole else numbers.unique(return_inverse=True)

    def slacks(self, constraints: Constraints, numbers: Tensor, owners: Tensor, seen: Tensor) -> Measured:
        """seen: loss and error of each of these samples, [n, 2]; an error is compared where the limit is a rate."""
        rates = constraints.in_error[owners] if constraints.any_in_error else None
        values = (seen[:, 0] if rates is None else torch.where(rates, seen[:, 1], seen[:, 0])).double()
        if not bool(values.isfinite().all()):
            raise Diverged("losses on memory are no longer finite; lower lr or dual_lr")
        counts = self.measured_on.counts
        counts = counts if self.whole else torch.bincount(owners, minlength=len(counts))
        means = values.new_zeros(len(counts)).index_add(0, owners, values) / counts
        if constraints.by_sample:
            where = torch.searchsorted(constraints.sets.members, numbers)
            found, errors = values - constraints.limits[where], torch.zeros_like(values)
            told = means - constraints.task_limits
        else:
            found = told = self._smoothed(means - constraints.limits)
            where, errors = torch.arange(len(found)), self._errors(values, means, owners, counts)
        known = ~found.isnan()
        measured, limited = int(known.sum()), max(1, constraints.limited)
        if measured == len(found):
            return Measured(found, errors, where, told, measured / limited)
        return Measured(found[known], errors[known], where[known], told, measured / limited)

    def _errors(self, values: Tensor, means: Tensor, owners: Tensor, counts: Tensor) -> Tensor:
        """Standard errors of the means; 1/(2n) is added in squares, so that few equal samples aren't trusted."""
        squares = values.new_zeros(len(counts)).index_add(0, owners, values.square()) / counts
        n = counts.clamp(min=1)
        return ((squares - means.square()).clamp(min=0) / n + 0.25 / n.square()).sqrt()

    def _smoothed(self, slacks: Tensor) -> Tensor:
        """s̄ ← s̄ + a (s − s̄), with a < 1 for tasks of which only a few samples are measured."""
        if self.whole:
            return slacks
        weight = smoothing_weights(self.looked_at, self.measured_on.counts)
        self.smooth = slacks if self.smooth is None else self.smooth + weight * (slacks - self.smooth)
        return self.smooth

    def state_dict(self) -> dict[str, Any]:
        return {"smooth": self.smooth}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state. One saved before 0.2 has a first dimension more, of size 1."""
        smooth = state["smooth"]
        self.smooth = smooth[0] if smooth is not None and smooth.dim() == 2 else smooth
