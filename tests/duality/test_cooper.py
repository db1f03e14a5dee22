"""The same problem, step for step, in cooper, an independent implementation of constrained optimisation."""

import cooper
import torch

from pdcl.core.lagrangian import Lagrangian
from pdcl.duality import ascend, task_lagrangian, task_means

DOUBLE = torch.float64
CONSTRAINTS, SAMPLES, WIDTH, STEPS, LR, DUAL_LR = 10, 7, 5, 200, 0.01, 0.05


def setting():
    """Ten tasks of seven samples and a current one, a linear model; some constraints are active and some idle."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(CONSTRAINTS + 1, SAMPLES, WIDTH, generator=generator, dtype=DOUBLE)
    y = torch.randn(CONSTRAINTS + 1, SAMPLES, generator=generator, dtype=DOUBLE)
    tolerances = torch.linspace(0.3, 3.0, CONSTRAINTS, dtype=DOUBLE)
    return x, y, tolerances, torch.arange(CONSTRAINTS).repeat_interleave(SAMPLES)


def by_cooper():
    x, y, tolerances, _ = setting()
    theta = torch.zeros(WIDTH, dtype=DOUBLE, requires_grad=True)

    class Problem(cooper.ConstrainedMinimizationProblem):
        def __init__(self):
            super().__init__()
            multiplier = cooper.multipliers.DenseMultiplier(num_constraints=CONSTRAINTS, dtype=DOUBLE)
            self.past = cooper.Constraint(cooper.ConstraintType.INEQUALITY, multiplier=multiplier)

        def compute_cmp_state(self):
            risks = ((x @ theta - y) ** 2).mean(dim=1)
            state = cooper.ConstraintState(violation=risks[1:] - tolerances)
            return cooper.CMPState(loss=risks[0], observed_constraints={self.past: state})

    problem = Problem()
    optimizer = cooper.optim.SimultaneousOptimizer(
        cmp=problem,
        primal_optimizers=torch.optim.SGD([theta], lr=LR),
        dual_optimizers=torch.optim.SGD(problem.dual_parameters(), lr=DUAL_LR, maximize=True),
    )
    for _ in range(STEPS):
        optimizer.roll()
    return theta.detach(), problem.past.multiplier.weight.detach()


def test_functions_agree_with_cooper_to_1e_12():
    x, y, tolerances, tasks = setting()
    theta, duals = torch.zeros(WIDTH, dtype=DOUBLE), torch.zeros(CONSTRAINTS, dtype=DOUBLE)
    for _ in range(STEPS):
        losses = (x @ theta.requires_grad_() - y) ** 2
        past = losses[1:].flatten()
        (gradient,) = torch.autograd.grad(task_lagrangian(losses[0], past, tasks, duals, tolerances), theta)
        duals = ascend(duals, task_means(past.detach(), tasks, CONSTRAINTS) - tolerances, DUAL_LR)
        theta = theta.detach() - LR * gradient
    theta_cooper, duals_cooper = by_cooper()
    assert (duals_cooper > 0).sum() >= 3
    assert (duals_cooper == 0).sum() >= 3
    torch.testing.assert_close(theta, theta_cooper, rtol=0, atol=1e-12)
    torch.testing.assert_close(duals, duals_cooper, rtol=0, atol=1e-12)


def test_the_loop_free_core_agrees_with_cooper_to_1e_12():
    x, y, tolerances, tasks = setting()
    theta = torch.zeros(WIDTH, dtype=DOUBLE, requires_grad=True)
    ids = torch.cat([torch.full((SAMPLES,), -1), tasks])
    lagrangian = Lagrangian({-1: 0.1, **dict(enumerate(tolerances.tolist()))}, dual_lr=DUAL_LR)
    optimizer = torch.optim.SGD([theta], lr=LR)
    for _ in range(STEPS):
        optimizer.zero_grad()
        losses = ((x @ theta - y) ** 2).flatten()
        lagrangian.loss(losses, ids).backward()
        lagrangian.ascend(losses, ids)
        optimizer.step()
    theta_cooper, duals_cooper = by_cooper()
    torch.testing.assert_close(theta.detach(), theta_cooper, rtol=0, atol=1e-12)
    torch.testing.assert_close(lagrangian.duals, duals_cooper, rtol=0, atol=1e-12)
