"""What is told after a solve, beside what it must be by hand: on guards, and on all samples that came."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.learning.events import DualsMoved, Infeasible, PromisesJudged, ToleranceSet, Warned
from pdcl.methods.exact_limits import known_past

Drawn = Callable[..., tuple[Any, Any]]


def _told(drawn: Drawn, tolerance: Any, tasks: int = 2, **options: Any) -> tuple[Any, list[Any]]:
    """A learner of tasks of two classes, 1,200 samples each, and all events, which say which task is learned."""
    heard: list[Any] = []
    learner: Any = pdcl.learner("exact", tolerance=tolerance, **{"features": "random:80", **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in range(tasks):
            before = len(heard)
            learner.learn(*drawn([2 * task, 2 * task + 1], 600, task), name=str(task), listener=heard.append)
            assert {each.task for each in heard[before:] if hasattr(each, "task")} <= {task}
    return learner, heard


def _of(heard: list[Any], kind: type, task: int) -> list[Any]:
    return [each for each in heard if isinstance(each, kind) and each.task == task]


def guard_error(learner: Any, task: int) -> float:
    guards = known_past(learner).guards
    mine = guards.tasks == task
    scores = guards.features[mine] @ learner.solution.W
    return float((scores.argmax(1) != guards.targets[mine]).double().mean())


def test_an_error_that_is_out_of_reach_is_told_as_guards_have_it(drawn: Drawn) -> None:
    learner, heard = _told(drawn, {"0": "1%", "*": "70%"}, 3)
    reached = guard_error(learner, 0)
    assert reached > 0.02
    (moved,) = _of(heard, DualsMoved, 2)
    assert (moved.step, moved.duals, moved.current) == (1, learner.final_duals()[:2], 0.0)
    assert moved.slacks == pytest.approx([reached - 0.01, 0.0])
    assert moved.tolerances == pytest.approx([0.01, 0.7])
    (missed,) = _of(heard, Infeasible, 2)
    assert (missed.constrained, missed.dual, missed.solved) == (0, learner.final_duals()[0], True)
    assert (missed.tolerance, missed.reached, missed.slack) == pytest.approx((0.01, reached, reached - 0.01))
    assert not [each for each in _of(heard, Warned, 2) if "dropped" in each.message]


def test_a_loss_that_is_out_of_reach_is_told_as_all_samples_have_it(drawn: Drawn) -> None:
    learner, heard = _told(drawn, {"0": 0.0001}, guard=0, witness=0)
    x, y = drawn([0, 1], 600, 0)
    losses = (learner.raw_scores(torch.as_tensor(x)).numpy() - np.eye(4)[y]) ** 2
    (missed,) = _of(heard, Infeasible, 1)
    assert missed.reached == pytest.approx(float(losses.sum(1).mean()), rel=1e-4)
    assert missed.slack == pytest.approx(missed.reached - 0.0001)
    assert [each.message for each in _of(heard, Warned, 1)] == [
        "the limit of 0 was dropped: no head keeps these limits together"
    ]
    assert learner.report().trace.slacks == [[missed.slack]]


@pytest.mark.parametrize(("tolerance", "unit"), [("1.5x", "loss"), ("+3pt", "error")])
def test_a_new_task_gets_its_limit_from_what_it_had(tolerance: str, unit: str, drawn: Drawn) -> None:
    learner, heard = _told(drawn, tolerance, 1)
    x, y = drawn([0, 1], 600, 0)
    own = learner.sets.own[0]
    assert (own.samples, learner.samples_seen) == (1200 - len(learner.held.memory), 1200)
    if unit == "loss":
        kept = ~np.isin(np.arange(1200), learner.held.memory["id"].numpy())
        scores = learner.raw_scores(torch.as_tensor(x[kept])).numpy()
        then = float(((scores - np.eye(2)[y[kept]]) ** 2).sum(1).mean())
        wanted = 1.5 * then
    else:
        then = guard_error(learner, 0)
        wanted = then + 0.03
    assert learner.tolerances.values[0] == pytest.approx(wanted, rel=1e-4)
    report = learner.report()
    assert (report.units, report.has_tolerances, report.solved) == ([unit], True, True)
    assert (report.no_price is None) == (unit == "loss")
    assert [each.unit for each in _of(heard, ToleranceSet, 0)] in ([unit], [])


def test_a_loose_limit_in_error_leaves_a_limit_in_loss_as_it_is(drawn: Drawn) -> None:
    both, _ = _told(drawn, {"0": "1.3x", "1": "99%"}, 3)
    alone, _ = _told(drawn, {"0": "1.3x", "1": 99.0}, 3)
    assert alone.duals[0] > 0.01
    assert both.duals[0] == pytest.approx(alone.duals[0], rel=1e-6)
    np.testing.assert_allclose(both.solution.W, alone.solution.W, atol=1e-8)


def test_a_limit_whose_sums_were_merged_is_dropped_and_named(drawn: Drawn) -> None:
    learner, heard = _told(drawn, 0.5, 5, features="raw", memory="900B", guard=0, witness=0)
    full = [each for each in heard if isinstance(each, Warned) and "became part of" in each.message]
    assert learner.nbytes <= 900
    assert {each.task for each in full} <= set(range(5)) - {0}
    merged = {each.message.split("statistics of ")[1].split(" ")[0] for each in full}
    assert {str(task) for task in range(5)} - merged == {str(task) for task in learner.sets.own}
    dropped = [each.message for each in _of(heard, Warned, 4) if "its statistics were merged" in each.message]
    assert len(dropped) == len(set(merged) - {"4"}) > 0
    assert not any(math.isnan(each.reached) for each in heard if isinstance(each, Infeasible))


def test_the_table_of_promises_is_told_with_each_task(drawn: Drawn) -> None:
    learner, heard = _told(drawn, {"0": "30%"}, 3)
    (told,) = _of(heard, PromisesJudged, 2)
    assert told.promises == learner.promises.as_json()
    assert not [each for each in _told(drawn, None, 2)[1] if isinstance(each, PromisesJudged)]
