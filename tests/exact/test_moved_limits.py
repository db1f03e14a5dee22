"""Limits that change after they were stated: for one task, by rebasing, for segments in loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.errors import UsageError
from pdcl.methods.exact_limits import known_past

Drawn = Callable[..., tuple[Any, Any]]
pytestmark = pytest.mark.filterwarnings("ignore::pdcl.LearningWarning", "ignore::pdcl.LimitBroken")


def squared_loss(learner: Any, x: Any, y: Any) -> float:
    wanted = np.eye(len(learner.labels))[[list(learner.labels).index(k) for k in y]]
    return float(((learner.raw_scores(torch.as_tensor(x)).numpy() - wanted) ** 2).sum(1).mean())


@pytest.mark.parametrize("unit", ["loss", "error"])
def test_a_rebased_limit_compares_with_what_the_task_has_now(unit: str, drawn: Drawn) -> None:
    held = {"guard": 0, "witness": 0} if unit == "loss" else {}
    learner: Any = pdcl.learner("exact", features="raw", tolerance="3x" if unit == "loss" else "+9pt", **held)
    parts = [drawn([2 * k, 2 * k + 1], 600, k) for k in range(3)]
    for k, part in enumerate(parts):
        learner.learn(*part, name=str(k))
    before = learner.tolerances.values[0]
    learner.rebase("0")
    told = learner.lineage.entries[-1]["result"]
    if unit == "loss":
        now = squared_loss(learner, *parts[0])
        wanted = 3 * now
    else:
        guards = known_past(learner).guards
        wrong = (guards.features @ learner.solution.W).argmax(1) != guards.targets
        now = float(wrong[guards.tasks == 0].double().mean())
        wanted = now + 0.09
    assert told["unit"] == unit
    assert told["old"] == before
    assert told["now"] == pytest.approx(now, rel=1e-3)
    assert told["new"] == learner.tolerances.values[0] == pytest.approx(wanted, rel=1e-3)
    assert told["then"] < now


@pytest.mark.parametrize(("tolerance", "said"), [(None, "it has no limit"), ("5%", "compares with nothing")])
def test_a_limit_that_compares_with_nothing_is_not_rebased(tolerance: Any, said: str, drawn: Drawn) -> None:
    learner: Any = pdcl.learner("exact", features="raw", tolerance=tolerance)
    learner.learn(*drawn([0, 1], 200, 0), name="first")
    with pytest.raises(UsageError, match=rf"rebase\('first'\) has no effect: .*{said}"):
        learner.rebase("first")


def test_one_task_may_have_a_limit_of_its_own(drawn: Drawn) -> None:
    learner: Any = pdcl.learner("exact", features="raw")
    for k in range(3):
        learner.learn(*drawn([2 * k, 2 * k + 1], 600, k), name=str(k), tolerance="1.2x" if k == 1 else None)
    assert [learner.tolerances.of(k) is None for k in range(3)] == [True, False, True]
    assert learner.sets.own.keys() == {1}
    assert learner.duals[1] > 0


def test_a_segment_in_loss_is_kept_on_all_its_samples(drawn: Drawn) -> None:
    """Gold customers, all of one task: their squared loss after it is what they had; it may not be above twice that."""
    parts = [drawn([2 * k, 2 * k + 1], 400, k) for k in range(3)]
    plans = [np.array(["gold", "free"] * 400), np.array(["free"] * 800)]
    learners = []
    for tolerance in ({"plan=gold": "2x"}, None):
        learner: Any = pdcl.learner("exact", features="raw", head="ridge", tolerance=tolerance, guard=0, witness=0)
        for k, part in enumerate(parts):
            learner.learn(*part, name=str(k), columns={"plan": plans[min(k, 1)]})
        learners.append(learner)
    limited, free = learners
    x, y = (each[plans[0] == "gold"] for each in parts[0])
    limit = 2 * limited.segment_losses["plan=gold"]
    assert squared_loss(limited, x, y) == pytest.approx(limit, rel=1e-3)
    assert squared_loss(free, x, y) > 1.1 * limit
    assert limited.solution.residual <= 1e-8
