"""Descent on our Lagrangian and dual ascent solve P_t and S_t: worked examples, and convex solvers as oracles."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import Tensor

from pdcl.duality import ascend, price, sample_lagrangian, task_lagrangian, task_means, value_bound

DOUBLE = torch.float64


def tensor(values) -> Tensor:
    return torch.tensor(values, dtype=DOUBLE)


@dataclass
class Problem:
    """Mean losses of a linear model: task 0 is the objective, tasks 1… are constraints."""

    x: list[Tensor]
    y: list[Tensor]
    epsilon: Tensor
    loss: str = "squared"
    ridge: float = 0.0

    def losses(self, theta, x, y):
        scores = x @ theta
        fit = (scores - y) ** 2 if self.loss == "squared" else torch.nn.functional.softplus(-y * scores)
        return fit + self.ridge * (theta**2).sum()

    def solve(self, steps, lr, dual_lr, decay=0.0):
        """Full-batch alternating steps from zero; returns θ, λ, P."""
        past_x, past_y = torch.cat(self.x[1:]), torch.cat(self.y[1:])
        tasks = torch.cat([torch.full((len(y),), k) for k, y in enumerate(self.y[1:])])
        theta, duals = torch.zeros(self.x[0].shape[1], dtype=DOUBLE), torch.zeros_like(self.epsilon)
        past = self.losses(theta.requires_grad_(), past_x, past_y)
        for _ in range(steps):
            current = self.losses(theta, self.x[0], self.y[0])
            lagrangian = task_lagrangian(current, past, tasks, duals, self.epsilon)
            (gradient,) = torch.autograd.grad(lagrangian, theta)
            theta = (theta.detach() - lr * gradient).requires_grad_()
            past = self.losses(theta, past_x, past_y)
            measured = task_means(past.detach(), tasks, len(duals))
            duals = ascend(duals, measured - self.epsilon, dual_lr, decay)
        return theta.detach(), duals, self.losses(theta, self.x[0], self.y[0]).mean().detach()

    def oracle(self, gamma=0.0):
        """θ*, λ*, P by an interior-point method."""
        theta = cp.Variable(self.x[0].shape[1])

        def mean(x, y):
            scores = x.numpy() @ theta
            fit = (
                cp.sum_squares(scores - y.numpy())
                if self.loss == "squared"
                else cp.sum(cp.logistic(cp.multiply(-y.numpy(), scores)))
            )
            return fit / len(y) + self.ridge * cp.sum_squares(theta)

        terms = [mean(x, y) for x, y in zip(self.x, self.y, strict=True)]
        constraints = [term <= bound for term, bound in zip(terms[1:], (self.epsilon + gamma).tolist(), strict=True)]
        problem = cp.Problem(cp.Minimize(terms[0]), constraints)
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-7, tol_gap_rel=1e-7, tol_feas=1e-7)
        assert problem.status == "optimal"
        return theta.value, np.array([float(np.squeeze(c.dual_value)) for c in constraints]), problem.value


def w2(y2=(3.0, 1.0), epsilon=(3.0, 2.0)) -> Problem:
    x = [[[1, 0], [0, 1], [1, 1], [1, -1]], [[1, 2], [2, 1], [0, 1]], [[1, -1], [2, 0]]]
    y = [[3, 1, 4, 2], [1, 0, 2], list(y2)]
    return Problem([tensor(v) for v in x], [tensor(v) for v in y], tensor(epsilon))


def test_w2_reaches_the_solution_to_eight_digits():
    theta, duals, value = w2().solve(20_000, 0.01, 0.05)
    assert theta.tolist() == pytest.approx([1.08088673, -0.29114447], abs=6e-9)
    assert duals.tolist() == pytest.approx([0.79957522, 1.65569363], abs=6e-9)
    assert value.item() == pytest.approx(4.01253732, abs=6e-9)


def test_w2_inactive_variant_leaves_the_idle_dual_at_exactly_zero():
    _, duals, value = w2(y2=(0.0, 1.0), epsilon=(1.5, 0.5)).solve(1000, 0.05, 0.25)
    assert duals[0].item() == pytest.approx(1.766935, abs=1e-6)
    assert duals[1].item() == 0.0
    assert value.item() == pytest.approx(5.00958659, abs=6e-9)


@pytest.mark.parametrize(
    ("gamma", "change"),
    [
        ((0.1, 0.0), -0.070417),
        ((-0.1, 0.0), 0.090649),
        ((0.0, 0.1), -0.154084),
        ((0.0, -0.1), 0.179023),
        ((0.5, 0.5), -0.861455),
    ],
)
def test_w2_other_tolerances_change_the_value_as_computed_and_never_below_the_price(gamma, change):
    duals, value = tensor((0.79957522, 1.65569363)), 4.01253732
    moved = w2(epsilon=(3 + gamma[0], 2 + gamma[1]))
    _, _, reached = moved.solve(1000, 0.05, 0.25)
    assert reached.item() - value == pytest.approx(change, abs=1e-6)
    assert reached >= value_bound(value, duals, tensor(gamma)) - 1e-7


def random_problem(seed: int, loss: str) -> Problem:
    """Random, convex, strictly feasible: tolerances lie between what a reference model has and what zero effort has."""
    generator = torch.Generator().manual_seed(seed)
    count, d = 2 + seed % 3, 3
    x = [torch.randn(8, d, generator=generator, dtype=DOUBLE) for _ in range(count + 1)]
    teachers = [torch.randn(d, generator=generator, dtype=DOUBLE) for _ in x]
    y = [a @ w + 0.1 * torch.randn(8, generator=generator, dtype=DOUBLE) for a, w in zip(x, teachers, strict=True)]
    y = y if loss == "squared" else [v.sign() for v in y]
    problem = Problem(x, y, torch.zeros(count, dtype=DOUBLE), loss, ridge=0.1)
    reference = sum(teachers[1:]) / count
    own = torch.linalg.lstsq(x[0], y[0]).solution
    at_reference, at_own = (
        [problem.losses(w, a, b).mean() for a, b in zip(x[1:], y[1:], strict=True)] for w in (reference, own)
    )
    problem.epsilon = torch.stack([r + 0.3 * (o - r).clamp(min=0.1) for r, o in zip(at_reference, at_own, strict=True)])
    return problem


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("seed", range(4))
def test_random_convex_problems_reach_the_oracles_duals(seed, loss):
    problem = random_problem(seed, loss)
    theta_star, duals_star, value_star = problem.oracle()
    theta, duals, value = problem.solve(1000, 0.1, 0.5)
    assert theta.tolist() == pytest.approx(theta_star.tolist(), abs=1e-4)
    assert duals.tolist() == pytest.approx(duals_star.tolist(), abs=1e-4)
    assert value.item() == pytest.approx(value_star, abs=1e-5)


def test_the_random_problems_have_active_and_idle_constraints():
    duals = np.concatenate(
        [random_problem(seed, loss).oracle()[1] for seed in range(4) for loss in ("squared", "logistic")]
    )
    assert (duals > 0.01).sum() >= 8
    assert (duals < 1e-6).sum() >= 3


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_duals_price_tolerances(loss):
    """P(ε + γ) ≥ P(ε) − ⟨λ, γ⟩ on a grid of γ, and (P(ε + h) − P(ε − h)) / 2h ≈ −λ: the first alone would pass
    for some wrong λ, e.g. for λ = 0 with γ > 0 left out."""
    problem = random_problem(2, loss)
    duals = problem.solve(1000, 0.1, 0.5)[1]
    value = problem.oracle()[2]
    for direction in np.vstack(
        [np.eye(len(duals)), -np.eye(len(duals)), np.ones(len(duals)), [1, -1] + [0] * (len(duals) - 2)]
    ):
        for size in (0.003, 0.03):
            gamma = tensor(direction * size)
            assert problem.oracle(gamma)[2] >= value_bound(value, duals, gamma).item() - 1e-6
    h = 1e-3
    for k in range(len(duals)):
        gamma = h * torch.eye(len(duals), dtype=DOUBLE)[k]
        slope = (problem.oracle(gamma)[2] - problem.oracle(-gamma)[2]) / (2 * h)
        assert slope == pytest.approx(-duals[k].item(), abs=2e-3)
        assert price(duals, gamma)[k] == pytest.approx(-slope * h, abs=2e-6)


def test_w3_exactly_the_support_vectors_carry_duals():
    """min ½‖w‖² s.t. 1 − y_i (w·x_i + b) ≤ 0, as a sample-level problem with ε = 0 and one task per sample."""
    x = tensor([[1, 1], [2, 2], [1, 3], [-1, -1], [-2, -2], [-3, -1]])
    y = tensor([1, 1, 1, -1, -1, -1])
    w, duals, tasks = torch.zeros(3, dtype=DOUBLE), torch.zeros(6, dtype=DOUBLE), torch.arange(6)
    for _ in range(1500):
        w.requires_grad_()
        losses = 1 - y * (x @ w[:2] + w[2])
        objective = (w[:2] ** 2).sum()[None] / 2
        (gradient,) = torch.autograd.grad(
            sample_lagrangian(objective, losses, tasks, duals, torch.zeros(6, dtype=DOUBLE), 6), w
        )
        w = w.detach() - 0.1 * gradient
        duals = ascend(duals, 1 - y * (x @ w[:2] + w[2]), 0.1)
    assert w.tolist() == pytest.approx([0.5, 0.5, 0.0], abs=1e-8)
    assert duals.tolist() == pytest.approx([0.25, 0, 0, 0.25, 0, 0], abs=1e-8)
    assert duals[[1, 2, 4, 5]].tolist() == [0.0] * 4


def test_sample_level_duals_of_one_task_match_their_oracle():
    """S_t with (1/n) Σ λ_i (ℓ_i − ε): the solver's multiplier of ℓ_i ≤ ε is λ_i / n, the sample-level price."""
    generator = torch.Generator().manual_seed(3)
    x0, x1 = (torch.randn(10, 2, generator=generator, dtype=DOUBLE) for _ in range(2))
    y0, y1 = x0 @ tensor([2.0, 0.0]), x1 @ tensor([0.0, 1.0])
    epsilon, tasks = torch.full((10,), 1.0, dtype=DOUBLE), torch.zeros(10, dtype=torch.long)
    theta, duals = torch.zeros(2, dtype=DOUBLE), torch.zeros(10, dtype=DOUBLE)
    for _ in range(1500):
        theta.requires_grad_()
        value = sample_lagrangian((x0 @ theta - y0) ** 2, (x1 @ theta - y1) ** 2, tasks, duals, epsilon, 1)
        (gradient,) = torch.autograd.grad(value, theta)
        theta = theta.detach() - 0.05 * gradient
        duals = ascend(duals, (x1 @ theta - y1) ** 2 - epsilon, 0.5)
    variable = cp.Variable(2)
    constraints = [cp.square(a @ variable - b) <= 1.0 for a, b in zip(x1.numpy(), y1.numpy(), strict=True)]
    cp.Problem(cp.Minimize(cp.sum_squares(x0.numpy() @ variable - y0.numpy()) / 10), constraints).solve(cp.CLARABEL)
    multipliers = [float(c.dual_value) for c in constraints]
    assert max(multipliers) > 0.05
    assert theta.tolist() == pytest.approx(variable.value.tolist(), abs=1e-5)
    assert (duals / 10).tolist() == pytest.approx(multipliers, abs=1e-4)
