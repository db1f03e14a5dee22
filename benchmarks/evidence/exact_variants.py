"""Rivals of moving duals, on the same statistics: weights alone, duals that are frozen, weights by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

import pdcl
from pdcl.algorithm.closed_form import weighted
from pdcl.algorithm.guard_search import Guards, Search, Weights, margins
from pdcl.methods.exact import Exact
from pdcl.methods.exact_limits import known_past, stated_limits
from pdcl.methods.exact_solving import Solved, Stated, solved
from pdcl.past.held_features import NEEDED_GUARDS
from pdcl.past.quadratics import balanced_loss

BY_HAND = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


@pdcl.register("exact-weights", summary="exact without offsets: weights of sets alone", family="features")
@dataclass(eq=False)
class WeightsAlone(Exact):
    """No class is a task's own, so that weights are all that a limit can move."""

    def use(self, found: Solved) -> None:
        past = known_past(self)
        past = replace(past, owners=torch.full_like(past.owners, -1))
        super().use(solved(past, stated_limits(self, len(self.tolerances.names) - 1)))


@dataclass
class HeldSearch(Search):
    """A search beside offsets that stay as they are. held: [outputs]."""

    held: Tensor = field(default_factory=lambda: torch.zeros(0))

    def scores(self, W: Tensor) -> Tensor:
        return super().scores(W) + self.held


@pdcl.register("exact-frozen", summary="exact, duals and offsets held once they are found", family="features")
@dataclass(eq=False)
class FrozenDuals(Exact):
    """The dual and the offset of a limit are found when it first applies, and held over all later tasks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.held_duals: dict[int, float] = {}
        self.held_offsets: dict[int, float] = {}
        self.ending = False

    def end(self, task: Any) -> None:
        self.ending = True
        super().end(task)

    def use(self, found: Solved) -> None:
        if self.ending:
            self.ending = False
            found = self._with_held(found)
        super().use(found)

    def _with_held(self, found: Solved) -> Solved:
        past = known_past(self)
        limits = [each for each in stated_limits(self, len(self.tolerances.names) - 1) if steered(each)]
        fresh = [each for each in limits if each.number not in self.held_duals]
        priced = [(self.held_duals[each.number], past.loss_of(each)) for each in limits if each not in fresh]
        objective = weighted([(1.0, balanced_loss(past.parts, past.outputs, True)), *priced])
        held = torch.zeros(past.outputs, dtype=torch.float64)
        for task, offset in self.held_offsets.items():
            held[past.owners == task] = offset
        weights = Weights(objective, [past.loss_of(each) for each in fresh], found.rho, found.head, past.counts)
        W = weights.solve([0.0] * len(fresh))
        if fresh:
            owners = torch.where(
                torch.isin(past.owners, torch.tensor([each.number for each in fresh])), past.owners, -1
            )
            guards, bounds = guards_of(past.guards, fresh, W)
            best = HeldSearch(weights, guards, bounds, owners, held=held).run()
            W, held = best.W, held + best.offsets
            for each, dual in zip(fresh, best.duals or [0.0] * len(fresh), strict=True):
                self.held_duals[each.number] = dual
                mine = best.offsets[past.owners == each.number]
                self.held_offsets[each.number] = float(mine.max()) if len(mine) else 0.0
        W = W.clone()
        W[-1] += held
        return replace(found, W=W)


def steered(each: Stated) -> bool:
    return int(each.members.sum()) >= NEEDED_GUARDS


def guards_of(guards: Guards, limits: list[Stated], W: Tensor) -> tuple[Guards, Tensor]:
    """Guards by limit, and the limits less their margins."""
    members = torch.stack([each.members for each in limits])
    found = Guards(guards.features, guards.targets, guards.tasks, members, guards.kind)
    blank = torch.full((len(guards.tasks),), torch.nan, dtype=torch.float64)
    then = torch.stack([blank if each.then is None else each.then.double() for each in limits])
    stated = torch.tensor([each.limit for each in limits]).double()
    return found, margins(stated, found, found.wrong(guards.features @ W), then)


def by_hand(learner: Exact, strict: list[int], tests: list[tuple[Tensor, Tensor]]) -> list[dict[str, Any]]:
    """One weight for all strict tasks, nine of them: excess on guards, and the test error of every task."""
    past, index = known_past(learner), len(learner.tolerances.names) - 1
    limits = [each for each in stated_limits(learner, index) if steered(each)]
    solution = learner.solution
    assert solution is not None
    objective = balanced_loss(past.parts, past.outputs, True)
    weights = Weights(objective, [past.loss_of(each) for each in limits], solution.rho, solution.head, past.counts)
    found = []
    for weight in BY_HAND:
        W = weights.solve([weight if each.number in strict else 0.0 for each in limits])
        guards, bounds = guards_of(past.guards, limits, W)
        excess = (guards.errors(guards.wrong(past.guards.features @ W)) - bounds).clamp(min=0).sum()
        errors = [float(((learner.represent(x).double() @ W).argmax(1) != y).double().mean()) for x, y in tests]
        found.append({"weight": weight, "on_guards": float(excess), "errors": errors})
    return found
