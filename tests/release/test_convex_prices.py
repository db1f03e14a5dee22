"""Prices on a convex stream, against an exact solver: logistic regression on three domains, in float64 by cvxpy.

The learner sees each task as one batch and replays so many stored samples that chance plays no part worth mentioning,
so its duals are to be the multipliers of `min L_2 s.t. L_0 ≤ ε_0, L_1 ≤ ε_1`.
"""

import copy

import cvxpy as cp
import numpy as np
import pytest

import pdcl
from pdcl.lab.studies.whatif import Job, curve, solve
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule

TOLERANCES = (0.6, 0.5)
GAMMA = 0.04
N = 40


def domains():
    """Two classes of points in the plane, whose border turns from task to task."""
    generator = np.random.default_rng(5)
    tasks = []
    for angle in (-0.6, 0.6, 2.6):
        border = np.array([np.cos(angle), np.sin(angle)])
        x = generator.normal(0, 1.2, (N, 2))
        y = (x @ border + generator.normal(0, 0.7, N) > 0).astype(int)
        tasks.append((x.astype(np.float32), y, x[:4].astype(np.float32), np.array([0, 1, 0, 1])))
    return tasks


def exact(tolerances):
    """P, and the multipliers of both constraints."""
    w, b = cp.Variable(2), cp.Variable()
    losses = []
    for x, y, *_ in domains():
        sign = 2.0 * y - 1
        losses.append(cp.sum(cp.logistic(-cp.multiply(sign, x.astype(float) @ w + b))) / N)
    limits = [losses[k] <= tolerances[k] for k in range(2)]
    problem = cp.Problem(cp.Minimize(losses[2]), limits)
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == "optimal"
    return problem.value, [float(limit.dual_value) for limit in limits]


@pytest.fixture(scope="module")
def start():
    """A learner that has learned the first two domains and remembers all of them."""
    stream = pdcl.from_tasks(domains())
    learner = pdcl.PDCL(
        "linear", memory=2 * N + 20, tolerance=pdcl.Fixed(0.5), optimizer="sgd", keep_optimizer=False, lr=0.5, base=0.0,
        drift=0.0, witness=0, dual_lr=0.5, replay=400, primal_steps=2,
        estimator="whole", partition="uniform", balance=False, device="cpu",
    )  # fmt: skip
    learner.prepare(stream.spec)
    for task in stream.tasks[:2]:
        Loop(learner, stream, Schedule(epochs=50, batch=N)).learn(task)
    assert learner.held.counts(2) == [N, N]
    learner.core.tolerances.values[:] = TOLERANCES
    return learner, stream


@pytest.fixture(scope="module")
def curves(start):
    """What-if curves of both past tasks; the solution at γ = 0 is one and the same."""
    found = []
    for task in range(2):
        table = {change: [solved(start, task, change)] for change in (0.0, -GAMMA, GAMMA, 3 * GAMMA)}
        found.append(curve(task, str(task), TOLERANCES[task], table))
    return found


def solved(start, task, change):
    job = Job("", {}, current=2, task=task, change=change, repeat=0, longer=1)
    return solve(copy.deepcopy(start[0]), start[1], Schedule(epochs=800, batch=N), job)


def shifted(task, change):
    return [limit + change * (k == task) for k, limit in enumerate(TOLERANCES)]


@pytest.mark.parametrize("task", [0, 1])
def test_duals_are_the_exact_multipliers_within_two_per_cent(curves, task):
    value, multipliers = exact(TOLERANCES)
    assert multipliers[task] > 0.5, "the constraint binds, or the test would show little"
    assert curves[task].dual == pytest.approx(multipliers[task], rel=0.02)
    assert curves[task].value == pytest.approx(value, rel=0.005)


@pytest.mark.parametrize("task", [0, 1])
def test_the_central_difference_of_re_solved_values_is_the_price_within_five_per_cent(curves, task):
    gains = {point.change: point.gain for point in curves[task].points}
    slope = (gains[GAMMA] - gains[-GAMMA]) / (2 * GAMMA)
    assert slope == pytest.approx(-curves[task].dual, rel=0.05)


@pytest.mark.parametrize("task", [0, 1])
def test_no_solution_lies_below_the_price_line(curves, task):
    """P(ε + γ) ≥ P(ε) − λγ on a grid: of what the learner finds, and of what the solver finds with the learner's λ."""
    assert curves[task].share_above == 1.0
    assert curves[task].held
    value, _ = exact(TOLERANCES)
    for change in np.linspace(-0.04, 0.16, 11):
        gain = exact(shifted(task, change))[0] - value
        assert gain >= -curves[task].dual * change - 0.02 * abs(curves[task].dual * change) - 1e-6
