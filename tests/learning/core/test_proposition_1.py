"""Proposition 1 on convex problems: with optima no further than δ apart, some θ is within (T−1)/T · Mδ of every m_k.

Linear predictors, |x| ≤ 1 and a loss of slope at most M = 1 in the prediction, so that losses are 1-Lipschitz in θ.
Every task has one best predictor: δ is the largest distance between two of them.
"""

import itertools

import cvxpy as cp
import numpy as np
import pytest

import pdcl.duality

WIDTH, SIZE = 3, 40


def solved(goal, limits=()):
    problem = cp.Problem(cp.Minimize(goal), list(limits))
    problem.solve(solver=cp.CLARABEL)
    return problem


def tasks(seed, count):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x = rng.normal(size=(SIZE, WIDTH))
        x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
        yield x, x @ rng.normal(size=WIDTH) + 0.3 * rng.normal(size=SIZE)


def risk(theta, x, y):
    """Huber's loss has slope 2M; halved, 1."""
    return cp.sum(cp.huber(x @ theta - y, 1.0)) / (2 * len(y))


@pytest.mark.parametrize(("seed", "count"), list(itertools.product(range(4), (2, 3, 5))))
def test_some_predictor_is_within_the_bound_on_all_tasks(seed, count):
    theta, data = cp.Variable(WIDTH), list(tasks(seed, count))
    best = [(solved(risk(theta, *task)).value, theta.value.copy()) for task in data]
    delta = max(np.linalg.norm(a - b) for (_, a), (_, b) in itertools.combinations(best, 2))
    bound = (count - 1) / count * delta
    rise = cp.Variable()
    least = solved(rise, [risk(theta, *task) <= m + rise for task, (m, _) in zip(data, best, strict=True)]).value
    assert 1e-4 < least <= bound, "no θ is best for all, and one is within the bound"
    middle = np.mean([each for _, each in best], axis=0)
    for task, (m, _) in zip(data, best, strict=True):
        assert risk(middle, *task).value <= m + bound + 1e-6, "the proof's own witness: the mean of the optima"


def test_of_two_tasks_the_bound_is_met_exactly_and_pdcl_knows_what_lies_below_it():
    """L_1 = |θ|, L_2 = |θ − δ|: M = 1, m_k = 0, and no θ has both below δ / 2."""
    delta, theta, rise = 0.8, cp.Variable(), cp.Variable()
    least = solved(rise, [cp.abs(theta) <= rise, cp.abs(theta - delta) <= rise]).value
    assert least == pytest.approx(delta / 2, abs=1e-6)
    for limit, feasible in ((1.1 * delta / 2, True), (0.9 * delta / 2, False)):
        assert (solved(cp.abs(theta - delta), [cp.abs(theta) <= limit]).value <= limit + 1e-6) == feasible


def test_the_lagrangian_at_the_solution_is_the_optimal_value():
    """Strong duality: L̂(θ*, λ*) = P; and its slope in λ is the slack."""
    import torch

    data = list(tasks(7, 3))
    theta, rise = cp.Variable(WIDTH), cp.Variable()
    room = solved(rise, [risk(theta, *task) <= rise for task in data[1:]]).value + 0.01
    limits = [risk(theta, *task) <= room for task in data[1:]]
    problem = solved(risk(theta, *data[0]), limits)
    losses = [torch.tensor(cp.huber(x @ theta.value - y, 1.0).value / 2) for x, y in data]
    duals = torch.tensor([float(each.dual_value) for each in limits], requires_grad=True)
    assert duals.max() > 0.1
    epsilon = torch.tensor([float(room) for _ in limits])
    tasks_of = torch.arange(2).repeat_interleave(SIZE)
    value = pdcl.duality.lagrangian(losses[0], torch.cat(losses[1:]), tasks_of, duals, epsilon)
    assert float(value) == pytest.approx(problem.value, abs=1e-5)
    value.backward()
    slacks = torch.stack([each.mean() for each in losses[1:]]) - epsilon
    assert duals.grad.tolist() == pytest.approx(slacks.tolist(), abs=1e-6)
