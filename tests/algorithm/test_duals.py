"""Dual ascent: the update itself, its fixed points, and what its trajectories say."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pdcl.duality import ascend, effective_tolerance, infeasible, nupi

DOUBLE = torch.float64


def w1(epsilon, steps, lr=0.1, dual_lr=0.5, decay=0.0):
    """Alternating steps on min (θ − 2)² s.t. θ² ≤ ε from θ = 2, λ = 0, with the gradient by hand."""
    theta, dual, path = torch.tensor(2.0, dtype=DOUBLE), torch.tensor(0.0, dtype=DOUBLE), []
    for _ in range(steps):
        theta = theta - lr * (2 * (theta - 2) + 2 * dual * theta)
        dual = ascend(dual, theta**2 - epsilon, dual_lr, decay)
        path.append((theta.item(), dual.item()))
    return path


def test_decay_relaxes_a_tolerance_by_itself_times_the_dual():
    assert effective_tolerance(0.25, 2.0, 0.1) == pytest.approx(0.45)
    assert effective_tolerance(0.25, torch.tensor([2.0, 0.0]), 0.1).tolist() == pytest.approx([0.45, 0.25])


@given(
    st.lists(st.tuples(st.floats(0, 1e3), st.floats(-1e3, 1e3)), min_size=1, max_size=6),
    st.floats(0, 10),
    st.floats(0, 0.1),
)
def test_ascent_is_the_projected_step_elementwise_in_any_shape(pairs, lr, decay):
    duals, slacks = torch.tensor(pairs, dtype=DOUBLE).unbind(1)
    stepped = ascend(duals, slacks, lr, decay)
    for after, (dual, slack) in zip(stepped.tolist(), pairs, strict=True):
        assert after == max(0.0, dual + lr * (slack - decay * dual))
    assert ascend(duals[None, :, None], slacks[None, :, None], lr, decay).flatten().tolist() == stepped.tolist()


def test_without_gain_nupi_is_plain_ascent():
    generator = torch.Generator().manual_seed(0)
    plain = integral = torch.zeros(5)
    for _ in range(50):
        slacks = torch.randn(5, generator=generator)
        plain = ascend(plain, slacks, 0.1, 0.01)
        integral, duals = nupi(integral, slacks, 0.1, gain=0.0, decay=0.01)
        assert torch.equal(duals, plain)


def test_nupi_answers_a_jump_at_once_and_forgets_it_when_it_is_over():
    calm, jump = torch.tensor([-0.1]), torch.tensor([2.0])
    integral, duals = nupi(torch.zeros(1), jump, lr=0.02, gain=0.5)
    assert duals.item() == pytest.approx(0.04 + 1.0)
    integral, duals = nupi(integral, calm, lr=0.02, gain=0.5)
    assert integral.item() == pytest.approx(0.038)
    assert duals.item() == 0.0


def history(epsilon, dual_lr):
    path = torch.tensor(w1(epsilon, 300, dual_lr=dual_lr), dtype=DOUBLE)
    return path[:, 1:], path[:, :1] ** 2 - epsilon


def test_a_tolerance_that_no_model_can_keep_is_detected():
    """θ² ≤ −0.1 has no solution: the dual rises for good. θ² ≤ 0.25 and θ² ≤ 5 have one.

    The dual of 0.25 comes from below and never stops rising, by less and less: that is no sign of infeasibility.
    """
    columns = [history(-0.1, 0.02), history(0.25, 0.5), history(5.0, 0.5)]
    duals, slacks = (torch.cat(parts, dim=1) for parts in zip(*columns, strict=True))
    assert (slacks[150:, 1] > 0).all()
    assert infeasible(duals, slacks).tolist() == [True, False, False]


def test_a_dual_that_rose_only_early_is_not_called_infeasible():
    duals = torch.tensor([[1.0], [2.0], [3.0], [4.0], [4.0], [4.0], [4.0], [4.0]])
    assert infeasible(duals, torch.ones(8, 1)).tolist() == [False]
    assert infeasible(duals, torch.ones(8, 1), window=1.0).tolist() == [True]


def test_one_moment_of_room_clears_a_tolerance():
    duals, slacks = torch.arange(8.0)[:, None], torch.ones(8, 1)
    assert infeasible(duals, slacks).tolist() == [True]
    slacks[-1] = 0.0
    assert infeasible(duals, slacks).tolist() == [False]


def test_three_steps_are_too_few_to_call_anything_infeasible():
    assert infeasible(torch.arange(3.0)[:, None], torch.ones(3, 1)).tolist() == [False]
    assert infeasible(torch.arange(4.0)[:, None], torch.ones(4, 1)).tolist() == [True]


def test_the_shortest_window_is_two_steps():
    duals, slacks = torch.tensor([[9.0], [9.0], [1.0], [2.0]]), torch.tensor([[-1.0], [-1.0], [1.0], [1.0]])
    assert infeasible(duals, slacks, window=0.01).tolist() == [True]
    assert infeasible(duals, slacks, window=0.51).tolist() == [False]


@pytest.mark.parametrize("window", [0.0, 1.5])
def test_a_window_is_a_share(window):
    with pytest.raises(ValueError, match=str(window)):
        infeasible(torch.ones(5, 1), torch.ones(5, 1), window)


def test_noisy_slacks_keep_a_satisfied_constraint_afloat():
    """A ghost: mean slack s < 0, noise σ/√b, projection at 0 → λ floats near η_d σ² / (2 b |s|), as for a queue.

    The mean over 2,000 chains of the last of 3,000 steps has a standard error near 3 %; 15 % off is five of them.
    """
    lr, sigma, b, slack = 0.1, 2.0, 4, -0.1
    generator = torch.Generator().manual_seed(0)
    duals = torch.zeros(2000, dtype=DOUBLE)
    for _ in range(3000):
        noise = torch.randn(2000, dtype=DOUBLE, generator=generator) * sigma / b**0.5
        duals = ascend(duals, slack + noise, lr)
    assert duals.mean().item() == pytest.approx(lr * sigma**2 / (2 * b * -slack), rel=0.15)
