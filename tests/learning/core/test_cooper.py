"""The same problem, step for step, in cooper, an independent implementation of constrained optimisation."""

from functools import cache

import cooper
import pytest
import torch

import pdcl

CONSTRAINTS, SAMPLES, WIDTH, STEPS, LR, DUAL_LR = 10, 7, 5, 200, 0.01, 0.05
GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(CONSTRAINTS + 1, SAMPLES, WIDTH, generator=GENERATOR, dtype=torch.float64)
Y = torch.randn(CONSTRAINTS + 1, SAMPLES, generator=GENERATOR, dtype=torch.float64)
TOLERANCES = torch.linspace(0.3, 3.0, CONSTRAINTS, dtype=torch.float64)


@cache
def by_cooper(level):
    """The paths of θ and λ. Per sample, the Lagrangian has λ_i / n_k and the dual step s_i, hence two violations."""
    theta = torch.zeros(WIDTH, requires_grad=True)
    size = CONSTRAINTS if level == "task" else CONSTRAINTS * SAMPLES

    class Problem(cooper.ConstrainedMinimizationProblem):
        def __init__(self):
            super().__init__()
            multiplier = cooper.multipliers.DenseMultiplier(num_constraints=size, dtype=torch.float64)
            self.past = cooper.Constraint(cooper.ConstraintType.INEQUALITY, multiplier=multiplier)

        def compute_cmp_state(self):
            losses = (X @ theta - Y) ** 2
            if level == "task":
                state = cooper.ConstraintState(violation=losses[1:].mean(1) - TOLERANCES)
            else:
                slacks = (losses[1:] - 1.1 * TOLERANCES[:, None]).flatten()
                state = cooper.ConstraintState(violation=slacks / SAMPLES, strict_violation=slacks)
            return cooper.CMPState(loss=losses[0].mean(), observed_constraints={self.past: state})

    problem = Problem()
    optimiser = cooper.optim.AlternatingPrimalDualOptimizer(
        cmp=problem,
        primal_optimizers=torch.optim.SGD([theta], lr=LR),
        dual_optimizers=torch.optim.SGD(problem.dual_parameters(), lr=DUAL_LR, maximize=True),
    )
    thetas, duals = [], []
    for _ in range(STEPS):
        optimiser.roll()
        thetas.append(theta.detach().clone())
        duals.append(problem.past.multiplier.weight.detach().clone())
    return torch.stack(thetas), torch.stack(duals)


def by_lagrangian(level):
    """The loop that a user would write around `pdcl.Lagrangian`."""
    theta = torch.zeros(WIDTH, requires_grad=True)
    optimiser = torch.optim.SGD([theta], lr=LR)
    tasks = torch.cat([torch.full((SAMPLES,), k - 1) for k in range(CONSTRAINTS + 1)])
    ids, groups, tolerances = tasks, None, TOLERANCES.tolist()
    if level == "sample":
        ids, groups = torch.where(tasks < 0, -1, torch.arange(-SAMPLES, len(tasks) - SAMPLES)), tasks.clamp(min=0)
        tolerances = [1.1 * epsilon for epsilon in tolerances]
    lagrangian = pdcl.Lagrangian([*tolerances, 0.1], dual_lr=DUAL_LR, level=level)
    thetas, duals = [], []
    for _ in range(STEPS):
        optimiser.zero_grad()
        lagrangian.loss(((X @ theta - Y) ** 2).flatten(), ids, groups=groups).backward()
        optimiser.step()
        lagrangian.ascend(((X @ theta - Y) ** 2).flatten(), ids, groups)
        thetas.append(theta.detach().clone())
        duals.append(lagrangian.duals.clone())
    return torch.stack(thetas), torch.stack(duals)


@pytest.mark.parametrize("level", ["task", "sample"])
def test_a_loop_around_the_lagrangian_agrees_with_cooper_to_1e_12(level):
    for ours, theirs in zip(by_lagrangian(level), by_cooper(level), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("level", ["task", "sample"])
@pytest.mark.parametrize("by", ["core", "learner"])
def test_every_step_agrees_with_cooper_to_1e_12(problem, level, by):
    past = [(X[k], Y[k]) for k in range(1, CONSTRAINTS + 1)]
    start = [0.0] * WIDTH
    ours = problem(past, (X[0], Y[0]), [*TOLERANCES.tolist(), 0.1], start, LR, DUAL_LR, STEPS).solve(by, level=level)
    thetas, duals = by_cooper(level)
    assert (duals[-1] > 0).sum() >= 3
    assert (duals[-1] == 0).sum() >= 3
    torch.testing.assert_close(ours.thetas, thetas, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.duals, duals, rtol=0, atol=1e-12)
