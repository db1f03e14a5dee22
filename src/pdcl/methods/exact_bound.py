"""Memory in bytes: statistics, guards and witnesses of an exact learner together, never above its bound."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pdcl.errors import UsageError
from pdcl.learning.events import Warned
from pdcl.past.held_back import Counts
from pdcl.past.sets import HELD_BACK, mergeable
from pdcl.past.statistics import gram_bytes

if TYPE_CHECKING:
    from pdcl.methods.exact import Exact


def check_bound(learner: Exact, outputs: int) -> None:
    """Refuse a bound that can't hold the least there is: one G, and the sums of all classes."""
    width, dtype = learner.width, learner.dtype
    least = gram_bytes(width, dtype) + outputs * width * dtype.itemsize + 16 * outputs
    if learner.bound is not None and least > learner.bound:
        raise UsageError(
            f"memory={learner.memory!r} can't hold one set: with {width - 1} features and {outputs} outputs it takes "
            f"{least:,} bytes; give more memory, or fewer features (features='random:{(width - 1) // 2}')"
        )


def held_back_most(learner: Exact, tasks: int) -> Counts:
    """How many guards and witnesses each of so many tasks may have."""
    limited = learner.tolerances.stated_any
    places = None if learner.bound is None else int(HELD_BACK[limited] * learner.bound)
    return learner.held.most(limited, learner.width, places, tasks)


def stay_within(learner: Exact, tasks: int) -> None:
    """Merge sets, those whose weight was 0 first; drop segments; then hold fewer samples back."""
    bound, sets = learner.bound, learner.sets
    if bound is None:
        return
    each = held_back_most(learner, tasks)
    learner.held.thin(tasks, each)
    known = {} if learner.solution is None else learner.solution.weights
    weights = [known.get(k, 0.0) for k in range(tasks)]
    for task in mergeable(sets, weights):
        if learner.nbytes <= bound:
            return
        sets.merge(task)
        name = learner.tolerances.name(task)
        text = f"memory={learner.memory} is full: the statistics of {name} (weight {weights[task]:.3g}) became part of"
        learner.emit(Warned(tasks - 1, f"{text} the common ones; offsets alone pursue its limit"))
    for name in list(sets.segments):
        if learner.nbytes > bound:
            del sets.segments[name]
            learner.dropped_segments.append(name)
            text = f"memory={learner.memory} is full: {name} has no statistics of its own any more"
            learner.emit(Warned(tasks - 1, text))
    while learner.nbytes > bound and each.guards + each.witnesses:
        each = replace(each, guards=each.guards // 2, witnesses=each.witnesses // 2)
        learner.held.thin(tasks, each)
