"""Random convex problems against an interior-point method: θ*, λ* and P by cvxpy and clarabel."""

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from pdcl.algorithm.prices import sample_prices, value_bound
from pdcl.objective import Objective, no_error_rate, squared_error

DOUBLE = torch.float64
RIDGE, WIDTH, SIZE = 0.1, 3, 8


def logistic(outputs, y):
    return softplus(-y.flatten() * outputs.flatten())


class Fit(torch.nn.Module):
    """w·x, and the ridge that every loss carries."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(WIDTH, dtype=DOUBLE))

    def forward(self, x):
        return torch.stack([x @ self.w, (RIDGE * self.w.square().sum()).expand(len(x))], 1)


def ridged(loss):
    """The loss of the first output, plus the second."""

    def of(outputs, y):
        return loss(outputs[:, :1], y) + outputs[:, 1]

    return Objective("ridged", of, lambda out, y: -of(out, y), no_error_rate)


LOSSES = {"squared": squared_error, "logistic": logistic}


@cache
def instance(seed, loss, level="task"):
    """Strictly feasible: tolerances lie between what a reference model has and what the current task's own has.

    At the sample level, the worst sample of the reference model has some room.
    """
    generator = torch.Generator().manual_seed(seed)
    count = 2 + seed % 3
    x = [torch.randn(SIZE, WIDTH, generator=generator, dtype=DOUBLE) for _ in range(count + 1)]
    teachers = [torch.randn(WIDTH, generator=generator, dtype=DOUBLE) for _ in x]
    y = [a @ w + 0.1 * torch.randn(SIZE, generator=generator, dtype=DOUBLE) for a, w in zip(x, teachers, strict=True)]
    y = y if loss == "squared" else [v.sign() for v in y]
    own = torch.linalg.lstsq(x[0], y[0]).solution

    def risk(w, k):
        losses = LOSSES[loss]((x[k] @ w)[:, None], y[k][:, None]) + RIDGE * w.square().sum()
        return (losses.mean() if level == "task" else losses.max()).item()

    tolerances = []
    for k in range(1, count + 1):
        easy, hard = risk(sum(teachers[1:]) / count, k), risk(own, k)
        tolerances.append(easy + 0.3 * max(hard - easy, 0.1))
    return x, y, tolerances


def oracle(x, y, tolerances, loss, level="task"):
    """θ*, λ*, P by an interior-point method."""
    theta = cp.Variable(WIDTH)

    def losses(k):
        scores = x[k].numpy() @ theta
        fit = cp.square(scores - y[k].numpy()) if loss == "squared" else cp.logistic(cp.multiply(-y[k].numpy(), scores))
        return fit + RIDGE * cp.sum_squares(theta)

    if level == "task":
        constraints = [cp.sum(losses(k + 1)) / SIZE <= bound for k, bound in enumerate(tolerances)]
    else:
        constraints = [losses(k + 1) <= 1.1 * bound for k, bound in enumerate(tolerances)]
    problem = cp.Problem(cp.Minimize(cp.sum(losses(0)) / SIZE), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-7, tol_gap_rel=1e-7, tol_feas=1e-7)
    assert problem.status == "optimal"
    return theta.value, np.concatenate([np.atleast_1d(c.dual_value) for c in constraints]), problem.value


@pytest.fixture
def solve(problem):
    """Of an instance, by the core (even seeds) or the learner (odd ones)."""

    def run(seed, loss, **options):
        x, y, tolerances = instance(seed, loss, options.get("level", "task"))
        past = list(zip(x[1:], y[1:], strict=True))
        rates = {"lr": 0.1, "dual_lr": 0.5, "steps": 600, **options.pop("rates", {})}
        made = problem(past, (x[0], y[0]), [*tolerances, 9.0], goal=ridged(LOSSES[loss]), network=Fit, **rates)
        return made.solve("learner" if seed % 2 else "core", **options)

    return run


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("seed", range(4))
def test_random_convex_problems_reach_the_oracles_duals(solve, seed, loss):
    theta, duals, _ = oracle(*instance(seed, loss), loss)
    found = solve(seed, loss)
    assert found.theta.tolist() == pytest.approx(theta.tolist(), abs=1e-4)
    assert found.dual.tolist() == pytest.approx(duals.tolist(), abs=1e-4)


def test_the_random_problems_have_active_and_idle_constraints():
    cases = [(seed, loss) for seed in range(4) for loss in LOSSES]
    duals = np.concatenate([oracle(*instance(*case), case[1])[1] for case in cases])
    assert (duals > 0.01).sum() >= 8
    assert (duals < 1e-6).sum() >= 3


@pytest.mark.parametrize("seed", [0, 1])
def test_sample_duals_are_the_oracles_multipliers_times_the_size_of_the_task(solve, seed):
    """(1/n_k) Σ λ_i (ℓ_i − ε): the solver's multiplier of ℓ_i ≤ ε is λ_i / n_k, the sample-level price."""
    loss = "squared"
    theta, multipliers, _ = oracle(*instance(seed, loss, "sample"), loss, "sample")
    found = solve(seed, loss, level="sample", rates={"lr": 0.05, "dual_lr": 2.0, "steps": 1500})
    tasks = torch.arange(len(multipliers)) // SIZE
    assert max(multipliers) > 0.05
    assert found.theta.tolist() == pytest.approx(theta.tolist(), abs=1e-4)
    assert sample_prices(found.dual, tasks).tolist() == pytest.approx(multipliers.tolist(), abs=1e-3)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_duals_price_tolerances(solve, loss):
    """P(ε + γ) ≥ P(ε) − ⟨λ, γ⟩ for some γ, and (P(ε + h) − P(ε − h)) / 2h ≈ −λ."""
    x, y, tolerances = instance(2, loss)
    duals = solve(2, loss).dual

    def value(gamma):
        return oracle(x, y, (torch.tensor(tolerances) + gamma).tolist(), loss)[2]

    base, eye = value(torch.zeros(len(duals))), torch.eye(len(duals))
    for gamma in (0.03 * torch.ones(len(duals)), -0.003 * torch.ones(len(duals)), 0.03 * (eye[0] - eye[1])):
        assert value(gamma) >= value_bound(base, duals, gamma).item() - 1e-6
    for k, dual in enumerate(duals.tolist()):
        slope = (value(1e-3 * eye[k]) - value(-1e-3 * eye[k])) / 2e-3
        assert slope == pytest.approx(-dual, abs=2e-3)
