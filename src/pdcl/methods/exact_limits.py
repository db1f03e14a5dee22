"""Limits of an exact learner: compiled for one solve, set anew after it, told and judged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdcl.algorithm.guard_search import Guards
from pdcl.judging.table import Promises
from pdcl.judging.witnesses import Newest, after_task
from pdcl.learning.events import DualsMoved, Infeasible, PromisesJudged, ToleranceSet, Warned
from pdcl.learning.report import Report, Trace
from pdcl.limits.tolerance import Relative, Rise, Tolerance
from pdcl.methods.exact_solving import Missed, Past, Stated, solved
from pdcl.past.held_back import GUARD
from pdcl.past.quadratics import exact_loss
from pdcl.past.refill import Source
from pdcl.past.segments import CODES
from pdcl.past.statistics import Moments

if TYPE_CHECKING:
    from pdcl.methods.exact import Exact


def known_past(learner: Exact) -> Past:
    """What the head is solved from: statistics, and guards."""
    assert learner.spec is not None
    held, spec = learner.held, learner.spec
    slots = held.slots(GUARD)
    y = learner.numbers(held.memory.read("y", slots))
    none = torch.zeros(0, len(slots), dtype=torch.bool)
    features = held.features(GUARD).double()
    guards = Guards(features, y if y.dim() == 1 else y.double(), held.memory.read("task", slots), none, spec.kind)
    parts = [each for each in learner.sets.parts if each.samples]
    owners, free = _owners(parts, spec.outputs), not learner.tolerances.stated_any
    # Squared losses of LDA's scores mean nothing, also those that later limits compare with.
    head = "ridge" if learner.tolerances.in_loss else learner.head
    return Past(parts, spec.outputs, guards, owners, head, learner.rho, free)


def _owners(parts: list[Moments], outputs: int) -> Tensor:
    """The task that an output's offset belongs to: the only one that has it, else none (−1)."""
    found = torch.full((outputs, 2), -1)
    for moments in parts:
        for row, task in zip(moments.counts, moments.tasks, strict=True):
            has = moments.columns[row > 0]
            found[has, 1] += 1
            found[has, 0] = task
    return torch.where(found[:, 1] == 0, found[:, 0], -1)


def stated_limits(learner: Exact, newest: int) -> list[Stated]:
    """What holds while the head is solved after task `newest`: limits of past tasks, of segments, of the new task."""
    tolerances, held = learner.tolerances, learner.held
    slots = held.slots(GUARD)
    owner, then = held.memory.read("task", slots), held.memory.read("wrong", slots).double()
    found = []
    for task in range(newest):
        limit, value = tolerances.of(task), tolerances.values[task]
        if limit is not None and not math.isnan(value):
            members = owner == task
            reference = _masked(then, members) if isinstance(limit, Rise | Relative) else None
            own = learner.sets.own.get(task)
            found.append(Stated(tolerances.name(task), task, limit.unit, value, members, own, reference))
    if (goal := tolerances.goal_of_new()) is not None:
        own = learner.sets.own.get(newest)
        found.append(Stated("the new task", newest, goal.unit, goal.value, owner == newest, own))
    return found + _segments(learner, newest, slots, owner, then)


def _segments(learner: Exact, newest: int, slots: Tensor, owner: Tensor, then: Tensor) -> list[Stated]:
    held, found = learner.held, []
    if not held.segments:
        return []
    masks = held.segments.masks(held.memory.read(CODES, slots))
    for c, (name, limit) in enumerate(zip(held.segments.names, held.segments.limits.values(), strict=True)):
        members = masks[c] & (owner < newest)
        moments = learner.sets.segments.get(name)
        if limit.unit == "error" and bool(members.any()):
            value = limit.of(0, float(then[members].mean()))
            reference = _masked(then, members) if isinstance(limit, Rise | Relative) else None
            found.append(Stated(name, newest + 1 + c, "error", value, members, moments, reference))
        elif limit.unit == "loss" and moments is not None and newest:
            value = limit.of(0, learner.segment_losses.get(name, math.nan))
            if not math.isnan(value):
                found.append(Stated(name, newest + 1 + c, "loss", value, members, moments))
    return found


def _masked(then: Tensor, members: Tensor) -> Tensor:
    return torch.where(members, then, torch.nan)


def refer(learner: Exact, task: int) -> None:
    """What a task has now becomes what it is compared with: on guards and witnesses, and exactly where it has a set."""
    held = learner.held
    if len(held.memory):
        held.refer(task, learner.raw_scores(held.memory.read("x")))
    own, slots = learner.sets.own.get(task), (held.memory["task"] == task) if len(held.memory) else torch.zeros(0)
    if own is not None:
        learner.losses_then[task] = _exact(learner, own)
    elif bool(slots.any()):
        learner.losses_then[task] = float(held.memory["reference"][slots].double().mean())


def compare_by_ridge(learner: Exact) -> None:
    """Limits in loss were stated after a head of LDA: what they compare with is measured anew, with a ridge head."""
    learner.use(solved(known_past(learner), []))
    for task in range(len(learner.tolerances)):
        refer(learner, task)
        limit = learner.tolerances.of(task)
        if limit is not None and limit.unit == "loss":
            learner.tolerances.values[task] = limit.of(task, learner.losses_then[task])


def settle(learner: Exact, index: int, trained: Source) -> Promises | None:
    """After a solve: references of the new task, limits anew, events, and the table of promises."""
    held, tolerances = learner.held, learner.tolerances
    reached = held.reached(trained, learner.raw_scores)
    learner.losses_then[index:], learner.errors_then[index:] = [reached.loss], [reached.error]
    refer(learner, index)
    for name, moments in learner.sets.segments.items():
        learner.segment_losses.setdefault(name, _exact(learner, moments))
    values = values_then(learner)
    changes = tolerances.set(values, reached.error if _in_error(tolerances.of(index)) else values[-1])
    _tell(learner, index)
    for new in changes:
        learner.emit(
            ToleranceSet(index, new.task, new.old, new.new, new.unit, new.why, new.reached, new.reached_on_all)
        )
    if not tolerances.stated_any:
        return None
    sizes = learner.registry.task_samples[:index]
    newest = Newest(reached, sizes, float(index), learner.spec is not None and learner.spec.tasks is None)
    promises = after_task(held, tolerances, learner.registry, newest, learner.raw_scores)
    learner.emit(PromisesJudged(index, promises.as_json()))
    return promises


def values_then(learner: Exact) -> list[float]:
    """What every task had when it was learned, in the unit of its limit; on its own data where nothing is held back."""
    held_back, tolerances = learner.held.had(len(learner.losses_then)), learner.tolerances
    errors = [
        other if math.isnan(error) else error for error, other in zip(held_back, learner.errors_then, strict=True)
    ]
    pairs = zip(errors, learner.losses_then, strict=True)
    return [error if _in_error(tolerances.of(k)) else loss for k, (error, loss) in enumerate(pairs)]


def _in_error(limit: Tolerance | None) -> bool:
    return limit is not None and limit.unit == "error"


def _exact(learner: Exact, moments: Moments) -> float:
    assert learner.spec is not None
    assert learner.solution is not None
    classes = learner.spec.kind == "classification"
    return exact_loss(moments, learner.spec.outputs, classes).value(learner.solution.W)


def _tell(learner: Exact, index: int) -> None:
    solution = learner.solution
    assert solution is not None
    if learner.tolerances.stated_any and index:
        duals = [learner.duals.get(k, 0.0) for k in range(index)]
        limits = learner.tolerances.now(index)
        learner.emit(DualsMoved(index, 1, duals, _slacks(learner), limits, 0.0))
    for each in solution.missed:
        if not math.isnan(each.reached):
            learner.emit(_event(index, each))
        if each.why != "out of reach on its guards":
            learner.emit(Warned(index, f"the limit of {each.stated.name} was dropped: {each.why}"))


def _slacks(learner: Exact) -> list[float]:
    """By how much each past task is over its limit, 0 where it isn't."""
    missed = () if learner.solution is None else learner.solution.missed
    over = {each.stated.number: each.reached - each.stated.limit for each in missed}
    return [over.get(k, 0.0) for k in range(max(0, len(learner.tolerances) - 1))]


def _event(index: int, each: Missed) -> Infeasible | Warned:
    stated = each.stated
    if stated.number < index:
        return Infeasible(
            index, stated.number, each.dual, each.reached - stated.limit, stated.limit, each.reached, True
        )
    return Warned(index, f"{stated.name} is out of reach: {each.reached:.3g} where its limit is {stated.limit:.3g}")


def described(learner: Exact) -> Report:
    """Duals, limits and units as values."""
    if learner.spec is None:
        return Report()
    tolerances = learner.tolerances
    units = [tolerances.unit(k) for k in range(len(tolerances))]
    duals = learner.final_duals()
    no_price = "limits in error rate are pursued by guards: duals are weights or offsets, not prices"
    return Report(
        has_tolerances=tolerances.stated_any,
        duals=duals,
        tolerances=list(tolerances.values),
        units=units,
        trace=Trace(
            [duals[:-1]] if duals[:-1] else [],
            [_slacks(learner)],
            tolerances.now(max(0, len(units) - 1)),
            [],
            units[:-1],
        ),
        solved=True,
        no_price=no_price if tolerances.in_error and tolerances.stated_any else None,
    )
