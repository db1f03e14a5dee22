"""Limits in error rate: weights of sets (or offsets of scores) that keep them on guards, which no statistic has.

An error rate is no function that one can descend, so W solves the weighted squared loss, and duals answer what guards
say (a proxy Lagrangian; Cotter et al., "Two-player Games for Efficient Non-convex Constrained Optimization", 2019):

    λ_c ← [λ_c + ½/(1 + s/10) · clip((e_c − m_c) / 2 points, ±1)]₊         at most three strict limits
    min over log(1 + λ) of the excess of a smooth error, by L-BFGS          from four strict limits on

m_c is the limit less a margin of half a standard error. Before either, an offset of each task's scores is tried: it
needs no solve. Where that leaves excess, or lets the mean error rise, weights are tried, and offsets on top of the best
of them. The end is the candidate with the least excess + rise of the mean error; equal weights are one, so an
unreachable limit destroys nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from pdcl.algorithm.closed_form import Factor, Quadratic, ridge, weighted
from pdcl.algorithm.heads import HEADS

SOLVES, CAP = 40, 64.0
STEP, TWO_POINTS = 0.5, 0.02
FEW_STRICT = 3
MARGIN = 0.5
# Excess and rise of the mean error together that no further lever is tried for: a fifth of a point.
CHEAP = 0.002
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
        """The best candidate: equal weights, offsets, then weights, then both."""
        equal = self.consider(self.weights.solve(self.none), self.none)
        if not equal.excess:
            return equal
        has_offsets = self.guards.classes and int((self.owners >= 0).sum()) > 0
        if has_offsets:
            self._offsets(equal)
        if self.weights.constraints and self.price(self.best) > CHEAP:
            strict = int((equal.errors > self.limits).sum())
            if strict <= FEW_STRICT or not self.guards.classes or self.weights.head != "ridge":
                self._additive()
            else:
                self._surrogate()
            if has_offsets and self.best.excess and self.best.lever == "weights":
                self._offsets(self.best)
        return self.best

    @property
    def none(self) -> list[float]:
        return [0.0] * len(self.weights.constraints)

    @property
    def best(self) -> Candidate:
        return min(self.tried, key=self.price)

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

    def _offsets(self, start: Candidate) -> None:
        """A constant added to the scores of each task's own classes: no solve, no bytes."""
        lever = "offsets" if start.lever == "none" else "weights and offsets"
        scores = self.scores(start.W)
        unit = 0.25 * float(scores[:, self.weights.seen].std())
        tasks = int(self.owners.max()) + 1
        own = torch.zeros(len(self.limits), tasks, dtype=torch.float64)
        for c, members in enumerate(self.guards.sets):
            tasks_of = self.owners[self.guards.targets[members]]
            own[c] = torch.bincount(tasks_of[tasks_of >= 0], minlength=tasks)[:tasks].double()
        own = own / own.sum(1, keepdim=True).clamp(min=1)
        offset, errors = torch.zeros(tasks, dtype=torch.float64), start.errors
        for step in range(SOLVES):
            offset = (offset + unit * (self._pressure(errors, step) @ own)).clamp(min=0)
            by_output = torch.where(self.owners >= 0, offset[self.owners.clamp(min=0)], 0.0)
            found = self.consider(start.W, start.duals, by_output, lever)
            if not found.excess:
                return
            errors = found.errors

    def _additive(self) -> None:
        duals, errors = torch.zeros(len(self.limits), dtype=torch.float64), self.tried[0].errors
        for step in range(SOLVES):
            duals = (duals + self._pressure(errors, step)).clamp(0, CAP)
            found = self.consider(self.weights.solve(duals.tolist()), duals.tolist(), None, "weights")
            if not found.excess:
                return
            errors = found.errors

    def _surrogate(self) -> None:
        from scipy.optimize import minimize

        smooth = Smooth(self)
        bounds = [(0.0, float(np.log(1 + CAP)))] * len(self.limits)
        with suppress(Kept):
            minimize(smooth, np.zeros(len(self.limits)), jac=True, method="L-BFGS-B", bounds=bounds)


class Kept(Exception):
    """The search may end: all limits are kept, or it has made all its solves."""


class Smooth:
    """Excess of a sigmoid of guards' margins, and its gradient in log(1 + λ) by one back-substitution for all sets."""

    def __init__(self, search: Search) -> None:
        self.search, self.solves, self.width = search, 0, 0.0

    def __call__(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        search, guards, weights = self.search, self.search.guards, self.search.weights
        duals = torch.expm1(torch.tensor(logs))
        total = weighted([(1.0, weights.objective), *zip(duals.tolist(), weights.constraints, strict=True)])
        factor = Factor(total.A, ridge(weights.rho, total.A))
        W = factor.solve(total.B)
        found = search.consider(W, duals.tolist(), None, "weights")
        self.solves += 1
        if not found.excess or self.solves >= SOLVES:
            raise Kept
        scores = search.scores(W)
        own = scores.gather(1, guards.targets[:, None])
        other, rival = scores.scatter(1, guards.targets[:, None], UNSEEN).max(1, keepdim=True)
        margin = (own - other).flatten()
        self.width = self.width or max(1e-9, 0.2 * float(margin.abs().median()))
        soft = torch.sigmoid(-margin / self.width)
        over = guards.errors(soft) - search.limits
        sets = guards.sets.double() / guards.sets.sum(1, keepdim=True).clamp(min=1)
        value = 100 * over.clamp(min=0).square().sum() + 0.05 * soft.mean() + 1e-4 * torch.tensor(logs).square().sum()
        slope = (200 * over.clamp(min=0)) @ sets + 0.05 / len(soft)
        change = -(slope * soft * (1 - soft) / self.width)[:, None]
        by_score = torch.zeros_like(scores).scatter_add_(1, guards.targets[:, None], change)
        by_score.scatter_add_(1, rival, -change)
        adjoint = factor.solve(guards.features.T @ by_score)
        gradient = [-float((adjoint * each.residual(W)).sum()) for each in weights.constraints]
        return float(value), np.asarray(gradient) * np.exp(logs) + 2e-4 * logs


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


def chosen_head(
    weights: Weights, guards: Guards, heads: Sequence[str], rhos: Sequence[float]
) -> tuple[Weights, Tensor]:
    """Head and ρ with the least mean error on guards; of equals the first head. Every second of `rhos` with each head,
    then the best one's neighbours: an error that is flat on one side would end a search that only goes on while it
    helps. Of those within half a standard error of the best, the one nearest the middle: few guards say little."""
    middle = len(rhos) // 2
    known: dict[tuple[int, int], Choice] = {}

    def look(head: int, place: int) -> None:
        if (head, place) not in known and 0 <= place < len(rhos):
            tried = replace(weights, head=heads[head], rho=rhos[place])
            W = tried.solve([0.0] * len(weights.constraints))
            scores = guards.features @ W
            wrong = guards.wrong(scores.masked_fill(~weights.seen, UNSEEN) if guards.classes else scores)
            known[head, place] = Choice(guards.mean_error(wrong), float(wrong.std()) / len(wrong) ** 0.5, tried, W)

    for head in range(len(heads)):
        for place in range(middle % 2, len(rhos), 2):
            look(head, place)
    head, place = min(known, key=lambda at: (known[at].error, at[0], abs(at[1] - middle)))
    look(head, place - 1)
    look(head, place + 1)
    own = {at[1]: choice for at, choice in known.items() if at[0] == head}
    least = min(own.values(), key=lambda choice: choice.error)
    good = [at for at, choice in own.items() if choice.error <= least.error + MARGIN * least.spread]
    found = own[min(good, key=lambda at: abs(at - middle))]
    return found.weights, found.W


@dataclass(frozen=True)
class Choice:
    """A head at one ρ: its mean error on guards, and the standard error of that."""

    error: float
    spread: float
    weights: Weights
    W: Tensor
