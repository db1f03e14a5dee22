"""Relations between problems that must carry over to their solutions, held against the loop-free core."""

import pytest
import torch

from pdcl.core.lagrangian import Lagrangian

DOUBLE = torch.float64
GENERATOR = torch.Generator().manual_seed(5)
X = list(torch.randn(4, 6, 3, generator=GENERATOR, dtype=DOUBLE))
Y = list(torch.randn(4, 6, generator=GENERATOR, dtype=DOUBLE))
NAMES = [-1, 0, 1, 2]
TOLERANCES = {-1: 0.1, 0: 0.8, 1: 1.0, 2: 1.5}


def train(x, y, ids, tolerances, groups=None, scale=1.0, lr=0.05, dual_lr=0.2):
    """Alternating steps on a linear model, block by block. Returns the paths of θ and of λ."""
    lagrangian = Lagrangian(tolerances, dual_lr=dual_lr, level="task" if groups is None else "sample")
    theta, thetas, duals = torch.zeros(3, dtype=DOUBLE), [], []
    for _ in range(150):
        theta.requires_grad_()
        (gradient,) = torch.autograd.grad(lagrangian.loss(losses(x, y, theta, scale), ids, groups=groups), theta)
        theta = theta.detach() - lr * gradient
        lagrangian.ascend(losses(x, y, theta, scale), ids, groups)
        thetas.append(theta)
        duals.append(lagrangian.duals.clone())
    return torch.stack(thetas), torch.stack(duals)


def losses(x, y, theta, scale):
    return torch.cat([scale * (a @ theta - b) ** 2 for a, b in zip(x, y, strict=True)])


def ids_of(names, y=Y):
    return torch.cat([torch.full((len(b),), name) for name, b in zip(names, y, strict=True)])


def close(a, b, atol=1e-12):
    torch.testing.assert_close(a, b, rtol=0, atol=atol)


def test_the_setting_has_active_constraints():
    assert (train(X, Y, ids_of(NAMES), TOLERANCES)[1][-1] > 0.1).sum() >= 2


def test_a_constraint_with_a_huge_tolerance_leaves_the_path_bit_identical():
    thetas, duals = train(X, Y, ids_of(NAMES), {**TOLERANCES, 2: 1e9})
    without, fewer = train(X[:3], Y[:3], ids_of(NAMES[:3], Y[:3]), TOLERANCES)
    assert torch.equal(thetas, without)
    assert torch.equal(duals[:, :2], fewer)
    assert (duals[:, 2] == 0).all()


def test_permuting_constraints_permutes_duals():
    thetas, duals = train(X, Y, ids_of(NAMES), TOLERANCES)
    renamed = {-1: -1, 0: 11, 1: 4, 2: 9}
    there, permuted = train(X, Y, ids_of(renamed.values()), {renamed[k]: v for k, v in TOLERANCES.items()})
    close(there, thetas)
    close(permuted, duals[:, [1, 2, 0]])


def test_duplicating_every_sample_of_a_task_changes_nothing():
    x, y = ([*blocks[:3], torch.cat([blocks[3]] * 2)] for blocks in (X, Y))
    for once, twice in zip(
        train(X, Y, ids_of(NAMES), TOLERANCES), train(x, y, ids_of(NAMES, y), TOLERANCES), strict=True
    ):
        close(once, twice)


def test_duplicating_every_sample_of_a_partition_changes_nothing_at_the_sample_level():
    """A duplicate is a constraint of its own: its dual goes the same way, and 1/n_k halves the weight of both."""
    x, y = ([*blocks, blocks[3]] for blocks in (X, Y))
    ids = torch.cat([torch.full((6,), -1), torch.arange(24)])
    groups = ids_of([0, 0, 1, 2, 2], y)
    thetas, duals = train(X, Y, ids[:24], 0.9, groups[:24])
    there, more = train(x, y, ids, 0.9, groups)
    close(there, thetas)
    close(more, torch.cat([duals, duals[:, 12:]], dim=1))
    assert (duals[-1, 12:] > 0).any()


@pytest.mark.parametrize("scale", [0.1, 7.0])
def test_scaling_losses_and_tolerances_together_leaves_the_solution(scale):
    """θ* and λ* stay. With both rates divided by the scale even every step of θ does, and λ's with it."""
    thetas, duals = train(X, Y, ids_of(NAMES), TOLERANCES)
    scaled = {name: scale * epsilon for name, epsilon in TOLERANCES.items()}
    there, same = train(X, Y, ids_of(NAMES), scaled, scale=scale, lr=0.05 / scale, dual_lr=0.2 / scale)
    close(there, thetas, 1e-11)
    close(same, duals, 1e-11)


def test_one_sample_per_task_makes_both_levels_the_same_problem():
    x, y = ([block[:1] for block in blocks] for blocks in (X, Y))
    ids = torch.tensor(NAMES)
    for task, sample in zip(train(x, y, ids, TOLERANCES), train(x, y, ids, TOLERANCES, groups=ids), strict=True):
        close(task, sample)


def test_normalising_divides_the_loss_by_one_plus_the_duals():
    ids = ids_of(NAMES)
    values = losses(X, Y, torch.ones(3, dtype=DOUBLE), 1.0)
    plain, scaled = Lagrangian(0.1, dual_lr=0.5), Lagrangian(0.1, dual_lr=0.5, normalise=True)
    for lagrangian in (plain, scaled):
        lagrangian.ascend(values, ids)
    assert plain.duals.sum() > 0
    close(scaled.loss(values, ids) * (1 + plain.duals.sum()), plain.loss(values, ids))
