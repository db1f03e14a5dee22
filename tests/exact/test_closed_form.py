"""The solver against other people's: cvxpy on small problems, finite differences on real data."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import Tensor

from pdcl.algorithm.closed_form import Factor, Problem, Quadratic, ascend, is_infeasible, ridge, solve


def _loss(x: Tensor, y: Tensor) -> Quadratic:
    return Quadratic(x.T @ x / len(x), x.T @ y / len(x), float(y.square().sum()) / len(x))


def _problem(seed: int, tasks: int = 3, limit: float | None = None) -> tuple[Problem, list[tuple[Tensor, Tensor]]]:
    """Tasks whose best heads differ. Limits of all but the last: little more than they have without it."""
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for _ in range(tasks):
        x = torch.randn(40, 5, generator=generator, dtype=torch.float64)
        x[:, -1] = 1
        y = x @ torch.randn(5, 2, generator=generator, dtype=torch.float64)
        parts.append((x, y + 0.3 * torch.randn(40, 2, generator=generator, dtype=torch.float64)))
    losses = [_loss(*part) for part in parts]
    objective = Quadratic(sum(each.A for each in losses), sum(each.B for each in losses), sum(e.q for e in losses))
    past = torch.linalg.solve(sum(e.A for e in losses[:-1]), sum(e.B for e in losses[:-1]))
    limits = [1.3 * each.value(past) if limit is None else limit for each in losses[:-1]]
    return Problem(objective, ridge(1e-2, objective.A), losses[: tasks - 1], limits), parts


def _by_cvxpy(
    problem: Problem, parts: list[tuple[Tensor, Tensor]], kept: list[int] | None = None
) -> tuple[float, Any, list[float]]:
    """kept: which limits are asked for; all of them where it isn't said."""
    W = cp.Variable((5, 2))
    each = [cp.sum_squares(x.numpy() @ W - y.numpy()) / len(x) for x, y in parts]
    penalty = float(problem.penalty[0]) * cp.sum_squares(W[:4])
    limits = [each[c] <= problem.limits[c] for c in (range(len(problem.limits)) if kept is None else kept)]
    asked = cp.Problem(cp.Minimize(sum(each) + penalty), limits)
    asked.solve(solver=cp.CLARABEL)
    duals = [] if W.value is None else [float(np.ravel(limit.dual_value)[0]) for limit in limits]
    return float(asked.value), W.value, duals


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_and_its_duals_are_those_of_cvxpy(seed: int) -> None:
    problem, parts = _problem(seed)
    found = solve(problem)
    value, W, duals = _by_cvxpy(problem, parts)
    assert max(duals) > 0.01, "no limit binds: the test shows nothing"
    assert found.residual <= 1e-8
    assert problem.primal(found.W) == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found.W.numpy(), W, atol=1e-4)
    np.testing.assert_allclose(found.duals, duals, atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_kkt_conditions_hold(seed: int) -> None:
    problem, _ = _problem(seed)
    found = solve(problem)
    slacks, duals = torch.tensor(found.slacks), torch.tensor(found.duals)
    gradient = problem.objective.residual(found.W) + problem.penalty[:, None] * found.W
    for dual, constraint in zip(found.duals, problem.constraints, strict=True):
        gradient = gradient + dual * constraint.residual(found.W)
    assert float(gradient.abs().max()) <= 1e-8
    assert float(slacks.max()) <= 1e-8
    assert float(duals.min()) >= 0
    assert float((slacks * duals).abs().max()) <= 1e-8


def test_limits_that_no_head_keeps_together_are_certified_dropped_and_named() -> None:
    problem, _ = _problem(0, limit=0.4)
    least = [constraint.value(torch.linalg.solve(constraint.A, constraint.B)) for constraint in problem.constraints]
    assert max(least) < 0.4, "each limit alone must be within reach"
    found = solve(problem)
    assert found.certified
    assert len(found.dropped) == 1
    kept = 1 - found.dropped[0]
    assert found.slacks[kept] <= 1e-8
    assert float(found.W.abs().max()) < 10


def test_a_feasible_problem_is_not_certified_infeasible() -> None:
    problem, _ = _problem(1)
    assert not is_infeasible(problem, torch.tensor([0.5, 0.5], dtype=torch.float64))
    assert not is_infeasible(problem, torch.tensor([0.1, 0.9], dtype=torch.float64))
    assert solve(problem).dropped == []


def test_prices_are_derivatives_on_real_data(digits: tuple[Any, Any]) -> None:
    """dP/dε = −λ, on digits: five tasks, a limit on each of the first two."""
    x = torch.tensor(digits[0]).double()
    x, y = torch.cat([x, torch.ones(len(x), 1)], 1), torch.tensor(digits[1])
    wanted = torch.nn.functional.one_hot(y, 10).double()
    losses = [_loss(x[y // 2 == k], wanted[y // 2 == k]) for k in range(5)]
    objective = Quadratic(sum(e.A for e in losses), sum(e.B for e in losses), sum(e.q for e in losses))
    penalty = ridge(1e-3, objective.A)
    free = ascend(Problem(objective, penalty, [], []), 1.0).W
    limits = [0.8 * losses[k].value(free) for k in range(2)]
    found = solve(Problem(objective, penalty, losses[:2], limits))
    assert min(found.duals) > 0.1
    step = 1e-5
    for c in range(2):
        values = []
        for sign in (-1, 1):
            moved = [limit + sign * step * (k == c) for k, limit in enumerate(limits)]
            problem = Problem(objective, penalty, losses[:2], moved)
            values.append(problem.primal(solve(problem).W))
        assert (values[1] - values[0]) / (2 * step) == pytest.approx(-found.duals[c], rel=1e-4)


def test_what_a_flat_direction_gets_follows_the_scale_of_the_matrix() -> None:
    """A singular matrix in other units: the solution is the same to the bit, as all that is added is relative."""
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    A, B, nothing = x.T @ x, x.T @ torch.ones(3, 1, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
    assert torch.linalg.cholesky_ex(A).info, "it must be singular to the last digit"
    usual = Factor(A, nothing).solve(B)
    np.testing.assert_allclose(x @ usual, np.ones((3, 1)), atol=1e-3)
    for scale in (2.0**-40, 2.0**40):
        assert torch.equal(Factor(scale * A, nothing).solve(scale * B), usual)
    assert not Factor(0 * A, nothing).solve(0 * B).any()


@pytest.mark.parametrize(("seed", "tasks", "share"), [(1, 5, 0.9), (2, 5, 0.75), (1, 8, 0.75), (9, 8, 0.75)])
def test_of_many_limits_those_are_kept_that_can_be_and_the_head_is_that_of_cvxpy(
    seed: int, tasks: int, share: float
) -> None:
    """Full Newton steps overshoot here, and some limits go."""
    problem, parts = _problem(seed, tasks)
    limits = [share / 1.3 * limit for limit in problem.limits]
    strict = Problem(problem.objective, problem.penalty, problem.constraints, limits)
    found = solve(strict)
    assert found.certified
    assert _by_cvxpy(strict, parts, [*range(tasks - 1)])[0] == np.inf, "no head keeps all of them"
    kept = [c for c in range(tasks - 1) if c not in found.dropped]
    assert found.dropped
    assert kept
    assert [found.duals[c] for c in found.dropped] == [0.0] * len(found.dropped)
    value, W, duals = _by_cvxpy(strict, parts, kept)
    assert strict.primal(found.W) == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found.W.numpy(), W, atol=1e-4)
    np.testing.assert_allclose([found.duals[c] for c in kept], duals, atol=1e-3 * max(1.0, *duals))
    assert max(found.slacks[c] for c in kept) <= 1e-8


def test_without_limits_or_prices_nothing_is_certified() -> None:
    problem, _ = _problem(0)
    assert not is_infeasible(problem, torch.zeros(2, dtype=torch.float64))
    assert not is_infeasible(problem.without({0, 1})[0], torch.zeros(0, dtype=torch.float64))
