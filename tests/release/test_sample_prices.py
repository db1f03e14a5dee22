"""Corollary 1 against an exact solver: λ_i / n_k is the multiplier of ℓ_i ≤ ε_i, and −dP/dε_i by re-solving.

Logistic regression on three domains, one dual per stored sample. The learner sees each task as one batch and takes
all of memory in every step, so that chance plays no part.
"""

from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import pdcl
from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule

N = 10
# ε_i is 1.1 times the tolerance of a task.
TOLERANCE = 0.9 / 1.1
LIMIT = 1.1 * TOLERANCE


@cache
def domains():
    """Two classes of points in the plane, whose border turns from task to task; within a task they can be separated."""
    generator = np.random.default_rng(2)
    tasks = []
    for angle in (-0.4, 0.3, 1.7):
        border = np.array([np.cos(angle), np.sin(angle)])
        x = generator.normal(0, 1.2, (N, 2))
        y = (x @ border > 0).astype(int)
        tasks.append((x.astype(np.float32), y, x[:4].astype(np.float32), np.array([0, 1, 0, 1])))
    return tasks


def exact(changes=None):
    """P, and the multipliers of ℓ_i ≤ ε_i of all past samples by id; changes: of ε_i, by id."""
    w, b = cp.Variable(2), cp.Variable()
    losses = []
    for x, y, *_ in domains():
        losses.append(cp.logistic(-cp.multiply(2.0 * y - 1, x.astype(float) @ w + b)))
    limits = np.full(2 * N, LIMIT)
    for i, change in (changes or {}).items():
        limits[i] += change
    past = cp.hstack(losses[:2]) <= limits
    problem = cp.Problem(cp.Minimize(cp.sum(losses[2]) / N), [past])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert problem.status == "optimal"
    return problem.value, past.dual_value


@pytest.fixture(scope="module")
def found():
    """What the learner says after all three domains, and its memory."""
    stream = pdcl.from_tasks(domains())
    learner = pdcl.PDCL(
        "linear", memory=3 * N, tolerance=pdcl.Fixed(TOLERANCE), level="sample", optimizer="sgd", keep_optimizer=False,
        lr=0.3, base=0.0, drift=0.0, guard=0, witness=0, dual_lr=1.0, replay=2 * N, primal_steps=2, normalise=False,
        slack_samples=1000, estimator="whole", partition="uniform", device="cpu",
    )  # fmt: skip
    learner.prepare(stream.spec)
    for task in stream.tasks:
        Loop(learner, stream, Schedule(epochs=1500 if task.index == 2 else 50, batch=N)).learn(task)
    return pdcl.prices_by_sample(learner, stream)


def test_sample_prices_are_the_exact_multipliers(found):
    multipliers = exact()[1]
    assert sum(multipliers > 0.02) >= 2, "several samples bind, or the test would show little"
    assert sorted(row.id for row in found) == list(range(2 * N))
    assert [row.price for row in found] == pytest.approx([multipliers[row.id] for row in found], abs=2e-3)


def test_re_solving_with_one_samples_tolerance_moved_changes_the_value_by_its_price(found):
    step = 1e-3
    for row in found.rows[:4]:
        up, down = (exact({row.id: sign * step})[0] for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(-row.price, abs=4e-3)


def test_no_re_solve_lies_below_the_price_line(found):
    value = exact()[0]
    for row in found.rows[:4]:
        for change in (-0.05, 0.05, 0.3):
            gain = exact({row.id: change})[0] - value
            assert gain >= -row.price * change - 2e-3 * abs(change)


def test_prices_come_highest_first_and_add_up(found):
    values = [row.price for row in found]
    assert values == sorted(values, reverse=True)
    assert all(row.samples == N and row.price == row.dual / N for row in found)
    assert found.share_of_highest(1.0) == pytest.approx(1.0)
    assert found.share_of_highest(0.1) == pytest.approx(sum(values[:2]) / sum(values))


OPTIONS = {"memory": 60, "epochs": 1, "batch": 20, "dual_steps": 20, "tolerance": 0.05, "base": 0.0, "drift": 0.0}


def test_a_record_and_a_learner_tell_the_same_sample_prices(tmp_path, capsys):
    result = pdcl.run("synthetic", "pdcl-s", out=tmp_path, guard=0, witness=0, **OPTIONS)
    told = pdcl.prices_by_sample(result.path)
    assert told.rows == pdcl.prices_by_sample(result.learner, pdcl.stream("synthetic")).rows
    assert {row.samples for row in told} <= {*result.partitions[-2]}
    assert main(["prices", str(result.path), "--samples", "3"]) == 0
    shown = capsys.readouterr().out
    assert f"{told[0].price:.3g}" in shown
    assert f"{told[0].id} " in shown
    assert "The highest tenth" in shown


def test_a_run_with_duals_of_tasks_has_no_sample_prices(tmp_path, capsys):
    result = pdcl.run("synthetic", "pdcl", out=tmp_path, guard=0, witness=0, **OPTIONS)
    with pytest.raises(UsageError, match="pdcl-s"):
        pdcl.prices_by_sample(result)
    assert main(["prices", str(result.path), "--samples", "3"]) == 1
    assert "--samples has no effect" in capsys.readouterr().err
    assert main(["prices", str(result.path)]) == 0
    assert "on the current task" in capsys.readouterr().out
