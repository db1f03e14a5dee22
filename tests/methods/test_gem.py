"""GEM: its quadratic program against cvxpy, and gradients that oppose no past task."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

from pdcl.lab.methods.gem import combined, solve


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("margin", "ridge"), [(0.0, 0.0), (0.5, 0.0), (0.5, 1e-3), (1.0, 1e-3)])
def test_solution_is_that_of_a_general_solver(seed: int, margin: float, ridge: float) -> None:
    random = np.random.default_rng(seed)
    past, gradient = random.normal(size=(4, 30)), random.normal(size=30)
    found = solve(past @ past.T, past @ gradient, margin, ridge)
    v = cp.Variable(4)
    objective = 0.5 * cp.sum_squares(past.T @ v) + 0.5 * ridge * cp.sum_squares(v) + (past @ gradient) @ v
    cp.Problem(cp.Minimize(objective), [v >= margin]).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(found, v.value, atol=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_without_margin_the_step_is_the_projection_onto_all_half_spaces(seed: int) -> None:
    random = np.random.default_rng(seed)
    past, gradient = random.normal(size=(4, 30)), random.normal(size=30)
    z = cp.Variable(30)
    cp.Problem(cp.Minimize(cp.sum_squares(z - gradient)), [past @ z >= 0]).solve(solver=cp.CLARABEL)
    found = combined(torch.from_numpy(past), torch.from_numpy(gradient), margin=0.0, ridge=0.0)
    assert bool((torch.from_numpy(past) @ found >= -1e-8).all())
    np.testing.assert_allclose(found, z.value, atol=1e-5)


def test_equal_past_gradients_do_no_harm() -> None:
    past = torch.ones(3, 5)
    found = combined(past, -torch.arange(1.0, 6.0), margin=0.0, ridge=0.0)
    torch.testing.assert_close(past @ found, torch.zeros(3), atol=1e-5, rtol=0)


def test_no_step_opposes_any_past_task(trained, batch) -> None:
    learner = trained("gem", tasks=2, memory=30, margin=0.0, ridge=0.0)
    bound = 0
    for _ in range(20):
        past = learner.past_gradients(2)
        before = [p.detach().clone() for p in learner.model.parameters()]
        learner.step(batch(2))
        moved = [(old - p.detach()).flatten() for old, p in zip(before, learner.model.parameters(), strict=True)]
        products = past @ torch.cat(moved) / learner.lr
        assert bool((products >= -1e-4 * past.norm(dim=1)).all())
        bound += bool((products < 1e-4 * past.norm(dim=1)).any())
    assert bound > 0, "no constraint was ever active"


def test_there_is_a_gradient_for_every_past_task(trained) -> None:
    learner = trained("gem", tasks=2, memory=30)
    rows = learner.past_gradients(2)
    own = learner.held["task"] == 1
    learner.backward(learner.losses(learner.outputs(learner.held["x"][own]), learner.held["y"][own]).mean())
    expected = torch.cat([p.grad.flatten() for p in learner.model.parameters()])
    torch.testing.assert_close(rows[1], expected)
