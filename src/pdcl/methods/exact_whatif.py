"""What other limits would give: an exact learner solves anew, in moments, where a trained one would have to train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pdcl.methods.exact_limits import known_past, stated_limits
from pdcl.methods.exact_solving import Past, Stated, objective, past_scores, solved

if TYPE_CHECKING:
    from pdcl.methods.exact import Exact

# Places of a slider: points more or less for a limit in error, factors of one in loss.
POINTS = (-0.05, -0.03, -0.02, -0.01, 0.0, 0.01, 0.02, 0.05, 0.1)
FACTORS = (0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5)
MOST_SLIDERS = 12


def what_more_room_gains(learner: Exact, task: int, more: float) -> float | None:
    """Solve with one limit as it is and loosened, at the same head and ρ."""
    limit = learner.tolerances.of(task)
    if learner.solution is None or limit is None or task >= len(learner.tolerances) - 1:
        return None
    past, limits = _asked(learner)
    if limit.unit == "error" and not len(past.guards.tasks):
        return None
    values = []
    for room in (0.0, more):
        W = solved(past, _moved(limits, task, {each.number: each.limit + room for each in limits}[task])).W
        in_loss = limit.unit == "loss"
        values.append(objective(past, W, learner.solution.rho) if in_loss else float(_errors(past, W).nanmean()))
    return values[0] - values[1]


def sliders(learner: Exact) -> list[dict[str, Any]]:
    """Of each limited past task: limits that it might have, and the error of every task on guards under each of them,
    with all other limits as they are. The dearest limits first, where there are many."""
    if learner.solution is None or not learner.tolerances.stated_any:
        return []
    past, limits = _asked(learner)
    if not len(past.guards.tasks):
        return []
    tasks = [each for each in limits if each.number < len(learner.tolerances) - 1]
    dearest = sorted(tasks, key=lambda each: -learner.duals.get(each.number, 0.0))[:MOST_SLIDERS]
    names = learner.tolerances.names
    return [_slider(past, limits, each) | {"tasks": names} for each in sorted(dearest, key=lambda each: each.number)]


def _slider(past: Past, limits: Sequence[Stated], moved: Stated) -> dict[str, Any]:
    in_error = moved.unit == "error"
    places = [moved.limit + each for each in POINTS] if in_error else [moved.limit * each for each in FACTORS]
    places = [each for each in places if 0 <= each < 1] if in_error else places
    errors = [_errors(past, solved(past, _moved(limits, moved.number, limit)).W).tolist() for limit in places]
    return {"name": moved.name, "unit": moved.unit, "limit": moved.limit, "limits": places, "errors": errors}


def _asked(learner: Exact) -> tuple[Past, list[Stated]]:
    """The past at the head and ρ that were chosen, and the limits that hold now."""
    assert learner.solution is not None
    past = replace(known_past(learner), head=learner.solution.head, rho=learner.solution.rho)
    return past, stated_limits(learner, len(learner.tolerances) - 1)


def _moved(limits: Sequence[Stated], number: int, value: float) -> list[Stated]:
    return [replace(each, limit=value) if each.number == number else each for each in limits]


def _errors(past: Past, W: Tensor) -> Tensor:
    """The error of each task on its guards, NaN where it has none, [tasks]."""
    wrong, tasks = past.guards.wrong(past_scores(past, W)), past.guards.tasks
    counts = torch.bincount(tasks).double()
    return torch.zeros(len(counts), dtype=torch.float64).index_add_(0, tasks, wrong) / counts
