"""Relations between problems that must carry over to their solutions, held against what trains."""

import pytest
import torch

GENERATOR = torch.Generator().manual_seed(5)
X = list(torch.randn(4, 6, 3, generator=GENERATOR, dtype=torch.float64))
Y = list(torch.randn(4, 6, generator=GENERATOR, dtype=torch.float64))
TOLERANCES = [0.8, 1.0, 1.5]
BOTH = pytest.mark.parametrize("by", ["core", "learner"])
LEVELS = pytest.mark.parametrize("level", ["task", "sample"])
START = (0.0, 0.0, 0.0)


@pytest.fixture
def made(problem):
    """Three constraints and a current task (block 0); 100 steps."""

    def make(blocks=((X[1], Y[1]), (X[2], Y[2]), (X[3], Y[3])), tolerances=TOLERANCES, now=(X[0], Y[0]), **more):
        options = {"lr": 0.05, "dual_lr": 0.2, "steps": 100, **more}
        return problem(list(blocks), now, [*tolerances, 0.1], START, **options)

    return make


def close(a, b, atol=1e-12):
    torch.testing.assert_close(a, b, rtol=0, atol=atol)


@LEVELS
def test_the_setting_has_active_constraints(made, level):
    assert (made().by_core(level=level).dual > 0.1).sum() >= 2


@BOTH
@LEVELS
@pytest.mark.parametrize("estimator", ["whole", "dual"])
def test_a_constraint_with_a_huge_tolerance_has_no_say_to_the_bit(made, by, level, estimator):
    """Whatever its samples are, the path is the same; and with all samples replayed, that of a problem without it."""
    found = made(tolerances=[0.8, 1.0, 1e9]).solve(by, level=level, estimator=estimator)
    other = made([(X[1], Y[1]), (X[2], Y[2]), (9 - X[3], 9 * Y[3])], [0.8, 1.0, 1e9])
    there = other.solve(by, level=level, estimator=estimator)
    assert torch.equal(found.thetas, there.thetas)
    assert torch.equal(found.duals, there.duals)
    if estimator == "whole":
        fewer = made([(X[1], Y[1]), (X[2], Y[2])], [0.8, 1.0]).solve(by, level=level)
        close(found.thetas, fewer.thetas)
        close(found.duals[:, : fewer.duals.shape[1]], fewer.duals)
    assert (found.duals.unflatten(1, (3, -1))[:, 2] == 0).all()


@BOTH
@LEVELS
def test_permuting_constraints_permutes_duals(made, by, level):
    order = [2, 0, 1]
    found = made().solve(by, level=level)
    other = made([(X[k + 1], Y[k + 1]) for k in order], [TOLERANCES[k] for k in order]).solve(by, level=level)
    close(other.thetas, found.thetas)
    blocks = found.duals.unflatten(1, (3, -1))[:, order].flatten(1)
    close(other.duals, blocks)
    assert not torch.equal(blocks[-1], found.dual)


@BOTH
def test_duplicating_every_sample_of_a_task_changes_nothing(made, by):
    twice = [(X[1], Y[1]), (X[2], Y[2]), (torch.cat([X[3]] * 2), torch.cat([Y[3]] * 2))]
    once, other = made().solve(by), made(twice).solve(by)
    close(once.thetas, other.thetas)
    close(once.duals, other.duals)


@BOTH
def test_duplicating_every_sample_of_a_task_changes_nothing_at_the_sample_level(made, by):
    """A duplicate is a constraint of its own: its dual goes the same way, and 1/n_k halves the weight of both."""
    twice = [(X[1], Y[1]), (X[2], Y[2]), (torch.cat([X[3]] * 2), torch.cat([Y[3]] * 2))]
    once, other = made().solve(by, level="sample"), made(twice).solve(by, level="sample")
    close(once.thetas, other.thetas)
    close(other.duals, torch.cat([once.duals, once.duals[:, 12:]], dim=1))
    assert (once.dual[12:] > 0).any()


@BOTH
@LEVELS
@pytest.mark.parametrize("scale", [0.1, 7.0])
def test_scaling_losses_and_tolerances_together_leaves_the_path(made, by, level, scale):
    """θ* and λ* stay. With both rates divided by the scale even every step of θ does, and λ's with it."""
    found = made().solve(by, level=level)
    tolerances = [scale * epsilon for epsilon in TOLERANCES]
    scaled = made(tolerances=tolerances, scale=scale, lr=0.05 / scale, dual_lr=0.2 / scale).solve(by, level=level)
    close(scaled.thetas, found.thetas, 1e-11)
    close(scaled.duals, found.duals, 1e-11)


@BOTH
def test_one_sample_per_task_makes_both_levels_the_same_problem(made, by):
    """But for the 1.1 that a sample may have over its task."""
    blocks = [(x[:1], y[:1]) for x, y in zip(X[1:], Y[1:], strict=True)]
    sample = made(blocks, [epsilon / 1.1 for epsilon in TOLERANCES]).solve(by, level="sample")
    task = made(blocks).solve(by)
    close(task.thetas, sample.thetas)
    close(task.duals, sample.duals)


@BOTH
def test_the_learner_and_a_loop_of_ones_own_take_the_same_path(made, by):
    """Another order of summation, the same numbers."""
    one, other = made().solve(by), made().by_core()
    close(one.thetas, other.thetas)
    close(one.duals, other.duals)
