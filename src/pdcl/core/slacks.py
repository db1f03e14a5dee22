"""How far past tasks are from their tolerances: slacks of every constraint, measured as a slack rule says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from pdcl.core.sets import Sets
from pdcl.duality.lagrangian import task_means
from pdcl.duality.slack_rules import SlackRule, smoothing_weights
from pdcl.errors import Diverged

# Values compared with ε, [Q, slots], of stored samples, each for one of the sets it is in: in the unit of that limit.
Read = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Measured:
    """slacks s and their standard errors: [Q, visited]; visited: which constraints; told: s of every task, then of
    every segment, NaN if unknown.

    share: the measured part of all constraints that have a limit.
    """

    slacks: Tensor
    errors: Tensor
    visited: Tensor
    told: Tensor
    share: float


class Gauge:
    """Measures s = value − ε for one task's constraints.

    looks: the slots that stand for each past task (its guards, or what is replayed of it), and for each segment;
    by_sample: each of these slots is a constraint of its own, in the order of slots.
    """

    def __init__(self, rule: SlackRule, looks: Sets, by_sample: bool, generator: Generator) -> None:
        self.rule, self.looks, self.by_sample, self.generator = rule, looks, by_sample, generator
        self.smooth: Tensor | None = None
        self.offered: list[tuple[Tensor, Tensor]] = []
        self.in_order = looks.members.sort().values
        self.looked_at = rule.looks(looks.counts)
        self.whole = bool((self.looked_at == looks.counts).all()) and not rule.from_batches
        self.strata = torch.repeat_interleave(torch.arange(len(looks)), self.looked_at)

    def offer(self, slots: Tensor, values: Tensor) -> None:
        """Values of replayed samples, for a rule that makes slacks of them. values: [Q, slots]."""
        self.offered.append((slots, values))

    def measure(self, limits: Tensor, by_task: Tensor, read: Read) -> Measured:
        """limits: ε of every constraint, [Q, C], NaN where there is none; by_task: ε_k."""
        slots, owners, values = self._batch() if self.rule.from_batches else self._memory(read)
        if not bool(values.isfinite().all()):
            raise Diverged("losses on memory are no longer finite; lower lr or dual_lr")
        means = torch.stack([task_means(row, owners, len(self.looks)) for row in values])
        if self.by_sample:
            where = torch.searchsorted(self.in_order, slots)
            found, errors, told = values - limits[:, where], torch.zeros_like(values), means[0] - by_task
        else:
            found = self._smoothed(means - limits)
            where, errors = torch.arange(limits.shape[1]), self._errors(values, means, owners)
            told = found[0]
        known = ~found[0].isnan()
        limited = int((~limits[0].isnan()).sum())
        return Measured(found[:, known], errors[:, known], where[known], told, int(known.sum()) / max(1, limited))

    def _memory(self, read: Read) -> tuple[Tensor, Tensor, Tensor]:
        """All samples to look at, or a fresh stratified sample of them, in eval mode and unaugmented."""
        looks = self.looks
        if self.whole:
            return looks.members, looks.owners, read(looks.members, looks.owners)
        u = torch.rand(len(self.strata), generator=self.generator, dtype=torch.float64)
        places = looks.offsets[self.strata] + (u * looks.counts[self.strata]).long()
        places = places.unique() if self.by_sample else places
        slots, owners = looks.members[places], looks.owners[places]
        return slots, owners, read(slots, owners)

    def _batch(self) -> tuple[Tensor, Tensor, Tensor]:
        slots = torch.cat([slots for slots, _ in self.offered])
        values = torch.cat([values for _, values in self.offered], 1).double().cpu()
        self.offered = []
        owners, places = self.looks.owners_of(slots)
        return slots[places], owners, values[:, places]

    def _errors(self, values: Tensor, means: Tensor, owners: Tensor) -> Tensor:
        """Standard errors of the means; 1/(2n) is added in squares, so that few equal samples aren't trusted."""
        count = torch.bincount(owners, minlength=len(self.looks)).clamp(min=1)
        squares = torch.stack([task_means(row.square(), owners, len(self.looks)) for row in values])
        return ((squares - means.square()).clamp(min=0) / count + 0.25 / count.square()).sqrt()

    def _smoothed(self, slacks: Tensor) -> Tensor:
        """s̄ ← s̄ + a (s − s̄), where asked for and where a task shows too few samples to trust one look."""
        if self.rule.from_batches or (self.whole and self.rule.smoothing == 1):
            return slacks
        weight = smoothing_weights(self.rule.smoothing, self.looked_at, self.looks.counts)
        self.smooth = slacks if self.smooth is None else self.smooth + weight * (slacks - self.smooth)
        return self.smooth

    def state_dict(self) -> dict[str, Any]:
        return {"smooth": self.smooth, "offered": [list(pair) for pair in self.offered]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.smooth = state["smooth"]
        self.offered = [(slots, values) for slots, values in state["offered"]]
