"""Limits in error rate: offsets of scores, or weights of sets, that keep them on guards, which no statistic has.

An error rate is no function that one can descend, so duals answer what guards say (a proxy Lagrangian; Cotter et al.,
"Two-player Games for Efficient Non-convex Constrained Optimization", 2019). What a dual acts on depends on the set:

- its classes are its own: where p(k | x) is known, Σ_c (1 + λ_c) e_c is least for argmax_k log p(k | x) + log(1 + λ_c)
  with c the set of k. So an offset of its classes' scores *is* the dual. It needs no solve and no statistics;
- it shares its classes with others (a domain, a segment): its weight λ_c in what W is solved from.

    offset, λ_c ← [· + ½/(1 + s/10) · clip((e_c − m_c) / 2 points, ±1)]₊

m_c is the limit less a margin of half a standard error. Offsets are then shrunk to what is needed. The end is the
candidate with the least excess + rise of the mean error, of equals the smallest offsets and duals; equal weights are
one, so an unreachable limit destroys nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from pdcl.algorithm.closed_form import Quadratic, weighted
from pdcl.algorithm.heads import HEADS

SOLVES, CAP = 40, 64.0
HALVINGS = 7
STEP, TWO_POINTS = 0.5, 0.02
MARGIN = 0.5
UNSEEN = -1e30


@dataclass(frozen=True)
class Guards:
    """features: N × m, float64. targets: classes, [N]; labels, N × outputs in {−1, 1} (0: not known); or numbers.
    tasks: [N]. sets: which guards measure each limit, C × N. kind: of the targets, as a stream's."""

    features: Tensor
    targets: Tensor
    tasks: Tensor
    sets: Tensor
    kind: str = "classification"

    @property
    def classes(self) -> bool:
        return self.kind == "classification"

    def wrong(self, scores: Tensor) -> Tensor:
        """The error of each guard; of numbers the squared one."""
        if self.classes:
            return (scores.argmax(1) != self.targets).double()
        if self.kind == "regression":
            return (scores - self.targets).square().mean(1)
        known = self.targets != 0
        missed = ((scores > 0) != (self.targets > 0)) & known
        return missed.double().sum(1) / known.sum(1).clamp(min=1)

    def errors(self, wrong: Tensor) -> Tensor:
        """e_c of every limited set."""
        sets = self.sets.double()
        return (sets @ wrong) / sets.sum(1).clamp(min=1)

    def mean_error(self, wrong: Tensor) -> float:
        """The mean over tasks."""
        counts = torch.bincount(self.tasks).double()
        sums = torch.zeros(len(counts), dtype=torch.float64).index_add_(0, self.tasks, wrong)
        return float((sums / counts.clamp(min=1))[counts > 0].mean())


@dataclass(frozen=True)
class Weights:
    """Everything that W is solved from: the objective, L_c of limited sets, ρ, the head; samples of each output."""

    objective: Quadratic
    constraints: Sequence[Quadratic]
    rho: float
    head: str
    counts: Tensor

    @property
    def seen(self) -> Tensor:
        """Which outputs have samples."""
        return self.counts > 0

    def solve(self, duals: Sequence[float]) -> Tensor:
        chosen = [(dual, each) for dual, each in zip(duals, self.constraints, strict=True) if dual]
        return HEADS[self.head](weighted([(1.0, self.objective), *chosen]), self.rho, self.counts)


@dataclass(frozen=True)
class Candidate:
    """W, the duals that gave it, offsets by output; what guards say of it."""

    W: Tensor
    duals: list[float]
    offsets: Tensor
    errors: Tensor
    excess: float
    mean_error: float
    lever: str = "none"


@dataclass
class Search:
    """limits: of each set, less its margin. owners: the task whose offset an output has, −1 for none, [outputs]."""

    weights: Weights
    guards: Guards
    limits: Tensor
    owners: Tensor
    tried: list[Candidate] = field(default_factory=list)

    def run(self) -> Candidate:
        """The best candidate: equal weights; weights of sets that share their classes; offsets on top."""
        none = [0.0] * len(self.weights.constraints)
        start = self.consider(self.weights.solve(none), none)
        own, shares = of_own_classes(self.guards, self.owners)
        if self.weights.constraints and bool((~own & (start.errors > self.limits)).any()):
            self._weigh((~own).double())
        if self.best.excess and bool(shares.any()):
            self._shift(self.best, shares)
        return self.best

    @property
    def best(self) -> Candidate:
        return min(self.tried, key=lambda each: (self.price(each), float(each.offsets.sum()), sum(each.duals)))

    def price(self, each: Candidate) -> float:
        """Excess + rise of the mean error over equal weights."""
        return each.excess + max(0.0, each.mean_error - self.tried[0].mean_error)

    def consider(self, W: Tensor, duals: list[float], offsets: Tensor | None = None, lever: str = "none") -> Candidate:
        offsets = torch.zeros(W.shape[1], dtype=torch.float64) if offsets is None else offsets
        wrong = self.guards.wrong(self.scores(W) + offsets)
        errors = self.guards.errors(wrong)
        excess = float((errors - self.limits).clamp(min=0).sum())
        found = Candidate(W, duals, offsets, errors, excess, self.guards.mean_error(wrong), lever)
        self.tried.append(found)
        return found

    def scores(self, W: Tensor) -> Tensor:
        found = self.guards.features @ W
        return found.masked_fill(~self.weights.seen, UNSEEN) if self.guards.classes else found

    def _pressure(self, errors: Tensor, step: int) -> Tensor:
        return STEP / (1 + step / 10) * ((errors - self.limits) / TWO_POINTS).clamp(-1, 1)

    def _weigh(self, shared: Tensor) -> None:
        """λ of sets that share their classes, a solve a step."""
        duals, errors = torch.zeros(len(self.limits), dtype=torch.float64), self.tried[0].errors
        for step in range(SOLVES):
            duals = (duals + shared * self._pressure(errors, step)).clamp(0, CAP)
            found = self.consider(self.weights.solve(duals.tolist()), duals.tolist(), None, "weights")
            if not bool((shared * (found.errors - self.limits) > 0).any()):
                return
            errors = found.errors

    def _shift(self, start: Candidate, shares: Tensor) -> None:
        """An offset of the scores of each task's own classes, shrunk to the least that does the same."""
        lever = "offsets" if start.lever == "none" else "weights and offsets"
        unit = 0.25 * float(self.scores(start.W)[:, self.weights.seen].std())
        offset, errors = torch.zeros(shares.shape[1], dtype=torch.float64), start.errors

        def tried(part: float) -> Candidate:
            by_output = torch.where(self.owners >= 0, part * offset[self.owners.clamp(min=0)], 0.0)
            return self.consider(start.W, start.duals, by_output, lever)

        for step in range(SOLVES):
            offset = (offset + unit * (self._pressure(errors, step) @ shares)).clamp(min=0)
            found = tried(1.0)
            errors = found.errors
            if not found.excess:
                break
        least, enough = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (least + enough) / 2
            least, enough = (least, middle) if tried(middle).excess <= found.excess else (middle, enough)


def of_own_classes(guards: Guards, owners: Tensor) -> tuple[Tensor, Tensor]:
    """Which limited sets are all there is of their classes, so that an offset is their dual, [C]; and which part of
    each set's guards is of classes that only one task has, by task, C × tasks."""
    tasks = max(0, int(owners.max()) + 1) if guards.classes and len(owners) else 0
    own = torch.zeros(len(guards.sets), dtype=torch.bool)
    shares = torch.zeros(len(guards.sets), tasks, dtype=torch.float64)
    if tasks:
        owner = owners[guards.targets]
        for c, members in enumerate(guards.sets):
            found = torch.bincount(owner[members & (owner >= 0)], minlength=tasks)
            shares[c] = found / max(1, int(members.sum()))
            own[c] = torch.equal(members, owner == int(found.argmax()))
    return own, shares


def margins(limits: Tensor, guards: Guards, wrong: Tensor, then: Tensor | None) -> Tensor:
    """Limits less half a standard error. then: the error of each guard at the reference; NaN where limits are absolute,
    C × N or None. Paired outcomes have the smaller error: that of the change."""
    found = []
    for c, limit in enumerate(limits.tolist()):
        members = guards.sets[c]
        count = max(1, int(members.sum()))
        change = None if then is None else wrong[members] - then[c, members]
        if change is None or bool(change.isnan().any()):
            rate = min(max(limit, 0.002), 0.998)
            spread = (rate * (1 - rate)) ** 0.5
        else:
            spread = float(change.std(correction=0))
        found.append(max(0.0, limit - MARGIN * spread / count**0.5))
    return torch.tensor(found, dtype=torch.float64)
