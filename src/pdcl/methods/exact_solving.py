"""Solve for the head that keeps the stated limits: statistics, limits and guards in, W and duals out.

The sums choose ρ (`chosen_rho`). Where no limit is ever stated guards have only the temperature to choose, so they are
learned too: the network predicts by a head that was solved anew with them in.

Limits in loss are solved exactly (`closed_form`); limits in error rate by guards (`guard_search`), on top of the duals
of the first kind. Sets with fewer than 100 guards are reported, not steered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from pdcl.algorithm.closed_form import Problem, Quadratic, ridge, solve, weighted
from pdcl.algorithm.guard_search import UNSEEN, Candidate, Guards, Search, Weights, margins, of_own_classes
from pdcl.algorithm.heads import chosen_rho, temperature
from pdcl.past.held_features import NEEDED_GUARDS
from pdcl.past.quadratics import balanced_loss, exact_loss
from pdcl.past.statistics import Moments, Running, added

# With fewer guards than this, scores keep the usual factor; more than so many, any of them, hardly change it.
CHOSEN_FROM, ENOUGH = 30, 3000
# The largest dual of a limit in loss: at ten times the weight of another task the others begin to be given up.
DEAREST = 10.0
# Scores of ridge lie about 1 apart: softmax of the bare ones is far too unsure.
LARGEST_SHIFT = 30.0
USUAL_FACTOR = {"ridge": 10.0, "lda": 1.0}


@dataclass(frozen=True)
class Stated:
    """One limit while a task is learned. number: of the task; segments are counted behind the newest. members: which
    guards measure it, [N]. moments: its own statistics, None where they were merged. then: of each guard at the
    reference, where the limit compares with it."""

    name: str
    number: int
    unit: str
    limit: float
    members: Tensor
    moments: Moments | None
    then: Tensor | None = None


@dataclass(frozen=True)
class Missed:
    """A limit that is not kept, and why."""

    stated: Stated
    dual: float
    reached: float
    why: str


@dataclass(frozen=True)
class Solved:
    """W with offsets in its last row; what it was chosen by. factor: of scores, for probabilities. weights: λ of each
    limit, by which its sums count. shifts: λ of each that an offset keeps. whole: W with guards learned too, where they
    judge nothing; the network predicts by it."""

    W: Tensor
    head: str
    rho: float
    factor: float
    weights: dict[int, float] = field(default_factory=dict)
    shifts: dict[int, float] = field(default_factory=dict)
    offsets: Tensor | None = None
    lever: str = "none"
    missed: tuple[Missed, ...] = ()
    residual: float = 0.0
    whole: Tensor | None = None

    @property
    def duals(self) -> dict[int, float]:
        """λ of each limit, by its number."""
        return self.weights | self.shifts


@dataclass(frozen=True)
class Past:
    """What is known: sets with every sample once, the outputs, guards, and the task whose scores an output's offset
    belongs to. free_guards: no limit is stated, so guards may be learned once they have chosen."""

    parts: Sequence[Moments]
    outputs: int
    guards: Guards
    owners: Tensor
    head: str | None = None
    rho: float | None = None
    free_guards: bool = False

    @property
    def seen(self) -> Tensor:
        return self.counts > 0

    @property
    def counts(self) -> Tensor:
        return output_counts(self.parts, self.outputs)

    def blank(self) -> Quadratic:
        width = self.parts[0].width
        shapes = ((width, width), (width, self.outputs))
        A, B = (torch.zeros(*shape, dtype=torch.float64) for shape in shapes)
        return Quadratic(A, B, 0.0)

    def loss_of(self, stated: Stated) -> Quadratic:
        """L_c of a set with statistics of its own."""
        assert stated.moments is not None
        return exact_loss(stated.moments, self.outputs, self.guards.classes)


def output_counts(parts: Sequence[Moments], outputs: int) -> Tensor:
    """Samples of each output, [outputs]."""
    found = torch.zeros(outputs, dtype=torch.long)
    for each in parts:
        found[each.columns] += each.counts.sum(0)
    return found


def solved(past: Past, limits: Sequence[Stated]) -> Solved:
    """The head after a task."""
    guards, in_loss = past.guards, [each for each in limits if each.unit == "loss"]
    objective = balanced_loss(past.parts, past.outputs, guards.classes)
    rho = past.rho or chosen_rho(objective, sum(each.samples for each in past.parts))
    head = past.head or ("lda" if guards.classes else "ridge")
    weights = Weights(objective, [], rho, head, past.counts)
    found = Solved(weights.solve([]), head, rho, 1.0)
    if in_loss:
        found, weights = _loss_limits(past, weights, in_loss)
    steered = [each for each in limits if each.unit == "error" and int(each.members.sum()) >= NEEDED_GUARDS]
    if steered:
        found = _error_limits(past, weights, steered, found, not in_loss)
    found = replace(found, factor=_factor(past, found.W, found.head))
    if not past.free_guards or not len(guards.tasks):
        return found
    everything = [with_guards(past)]
    objective, counts = balanced_loss(everything, past.outputs, guards.classes), output_counts(everything, past.outputs)
    return replace(found, whole=replace(weights, objective=objective, counts=counts).solve([]))


def with_guards(past: Past) -> Moments:
    """The sums of all samples, guards too, as one set."""
    guards = past.guards
    sums = Running(guards.features.shape[1], past.outputs, exact=True)
    sums.include(guards.features, guards.targets)
    tasks, rows = guards.tasks.unique(return_inverse=True)
    counts = torch.zeros(len(tasks), past.outputs, dtype=torch.long)
    columns = guards.targets if guards.classes else torch.arange(past.outputs)[:, None]
    counts.index_put_((rows, columns), torch.ones((), dtype=torch.long), accumulate=True)
    own = sums.moments(0)
    return added([*past.parts, replace(own, tasks=tuple(tasks.tolist()), counts=counts[:, own.columns])])


def _loss_limits(past: Past, weights: Weights, limits: Sequence[Stated]) -> tuple[Solved, Weights]:
    """The exact optimum under limits in loss; the objective with their duals in it, for limits in error."""
    owned = [each for each in limits if each.moments is not None]
    losses = [past.loss_of(each) for each in owned]
    problem = Problem(
        weights.objective, ridge(weights.rho, weights.objective.A), losses, [each.limit for each in owned]
    )
    found = solve(problem, DEAREST)
    why = "no head keeps these limits together" if found.certified else "its price is above the cap"
    missed = [
        Missed(each, found.duals[c], each.limit + found.slacks[c], why)
        for c, each in enumerate(owned)
        if c in found.dropped
    ]
    missed += [Missed(each, 0.0, torch.nan, "its statistics were merged") for each in limits if each.moments is None]
    duals = {each.number: dual for each, dual in zip(owned, found.duals, strict=True)}
    priced = weighted([(1.0, weights.objective), *zip(found.duals, losses, strict=True)])
    solution = Solved(
        found.W, "ridge", weights.rho, 1.0, duals, lever="weights", missed=tuple(missed), residual=found.residual
    )
    # The penalty stays that of the problem, though the sums weigh more with their duals.
    rho = weights.rho * float(weights.objective.A.diagonal()[:-1].mean() / priced.A.diagonal()[:-1].mean())
    return solution, Weights(priced, [], rho, "ridge", weights.counts)


def _error_limits(past: Past, weights: Weights, limits: Sequence[Stated], before: Solved, offsets: bool) -> Solved:
    members = torch.stack([each.members for each in limits])
    guards = Guards(past.guards.features, past.guards.targets, past.guards.tasks, members, past.guards.kind)
    blank = torch.full((len(guards.tasks),), torch.nan, dtype=torch.float64)
    then = torch.stack([blank if each.then is None else each.then.double() for each in limits])
    scores = past_scores(past, before.W)
    bounds = margins(torch.tensor([each.limit for each in limits]).double(), guards, guards.wrong(scores), then)
    owners = past.owners if offsets else torch.full_like(past.owners, -1)
    own, _ = of_own_classes(guards, owners)
    weighable = [each.moments is not None and not alone for each, alone in zip(limits, own.tolist(), strict=True)]
    nothing = past.blank()
    losses = [past.loss_of(each) if use else nothing for each, use in zip(limits, weighable, strict=True)]
    constrained = Weights(
        weights.objective, losses if any(weighable) else [], weights.rho, weights.head, weights.counts
    )
    best = Search(constrained, guards, bounds, owners).run()
    W = best.W.clone()
    W[-1] += best.offsets
    duals = dict(zip((each.number for each in limits), best.duals or [0.0] * len(limits), strict=True))
    alone = [each for each, all_there_is in zip(limits, own.tolist(), strict=True) if all_there_is]
    found = Solved(
        W, weights.head, before.rho, 1.0, before.weights | duals, _shifts(past, best, weights.head, alone),
        best.offsets, best.lever, residual=before.residual,
    )  # fmt: skip
    over = [
        Missed(each, found.duals[each.number], error, "out of reach on its guards")
        for each, error in zip(limits, best.errors.tolist(), strict=True)
        if error > each.limit
    ]
    return replace(found, missed=(*before.missed, *over))


def _shifts(past: Past, best: Candidate, head: str, alone: Sequence[Stated]) -> dict[int, float]:
    """λ = e^offset − 1 of each limit whose classes are its own, for offsets of log p: scores times their factor."""
    if not bool(best.offsets.any()):
        return {}
    by_output = (_factor(past, best.W, head) * best.offsets).clamp(max=LARGEST_SHIFT).expm1()
    return {each.number: float(by_output[past.guards.targets[each.members][0]]) for each in alone}


def objective(past: Past, W: Tensor, rho: float) -> float:
    """P: the balanced loss with its penalty, which limits in loss constrain."""
    found = balanced_loss(past.parts, past.outputs, past.guards.classes)
    penalty = ridge(rho, found.A)
    return found.value(W) + float((penalty[:, None] * W.square()).sum())


def past_scores(past: Past, W: Tensor) -> Tensor:
    """Scores of guards; outputs without samples are below all others."""
    found = past.guards.features @ W
    return found.masked_fill(~past.seen, UNSEEN) if past.guards.classes else found


def _factor(past: Past, W: Tensor, head: str) -> float:
    """What makes scores log-probabilities."""
    guards, seen = past.guards, past.seen
    # A class can lose its last training sample, to `forget`, while its guards are still there.
    known = seen[guards.targets].nonzero().flatten() if guards.classes else torch.zeros(0)
    if len(known) >= CHOSEN_FROM:
        known = known[torch.randperm(len(known), generator=torch.Generator().manual_seed(0))[:ENOUGH]]
        own = (seen.long().cumsum(0) - 1)[guards.targets[known]]
        return temperature((guards.features[known] @ W)[:, seen], own)
    return 1.0 if guards.kind == "regression" else USUAL_FACTOR[head]
