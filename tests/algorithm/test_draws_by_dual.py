"""Replay draws: E[Σ w_j ℓ(slot_j)] = Σ_k λ_k mean_{B_k} ℓ, and no mass where there is none."""

import math

import pytest
import torch

from pdcl.algorithm.draws import Ends, draw_weightless
from pdcl.duality import cumulate, draw_by_dual, draw_samples_by_dual

DUALS = torch.tensor([0.0, 2.0, 0.5, 3.0, 1.0, 0.1])
COUNTS = torch.tensor([4, 3, 7, 0, 1, 5])
OFFSETS = COUNTS.cumsum(0) - COUNTS
TASKS = torch.arange(6).repeat_interleave(COUNTS)
SAMPLE_DUALS = torch.rand(20, generator=torch.Generator().manual_seed(9)) * (torch.arange(20) % 3 > 0)
SAMPLE_MASSES = SAMPLE_DUALS / COUNTS[TASKS]
LOSSES = torch.rand(20, generator=torch.Generator().manual_seed(8), dtype=torch.float64) * 5

DRAWS = {
    "by dual": lambda m, g: draw_by_dual(cumulate(DUALS, COUNTS), OFFSETS, COUNTS, m, g),
    "samples by dual": lambda m, g: draw_samples_by_dual(cumulate(SAMPLE_MASSES), m, g),
}


def full_sum(name: str) -> float:
    if name == "samples by dual":
        return (SAMPLE_MASSES.double() * LOSSES).sum().item()
    return sum(DUALS[k].item() * LOSSES[k == TASKS].mean().item() for k in range(6) if COUNTS[k])


@pytest.mark.parametrize("m", [1, 3, 4, 9])
@pytest.mark.parametrize("name", DRAWS)
def test_every_draw_is_unbiased_for_any_batch_size(name, m):
    """z-test over 2,000 draws, |z| < 5: false alarms below 1e-6 a case.

    Four tasks are active, so m = 1 to 3 leaves some out.
    """
    generator = torch.Generator().manual_seed(m)
    estimates = []
    for _ in range(2000):
        slots, weights = DRAWS[name](m, generator)
        assert len(slots) == len(weights) == m
        estimates.append((weights.double() * LOSSES[slots]).sum())
    estimates = torch.stack(estimates)
    z = (estimates.mean() - full_sum(name)) / (estimates.std() / math.sqrt(len(estimates)))
    assert abs(z.item()) < 5


@pytest.mark.parametrize("name", DRAWS)
def test_nothing_without_a_dual_is_replayed(name):
    slots, weights = DRAWS[name](3000, torch.Generator().manual_seed(0))
    mass = SAMPLE_MASSES[slots] if name == "samples by dual" else DUALS[TASKS[slots]]
    assert (mass > 0).all()
    assert (weights > 0).all()
    assert len(slots.unique()) == int(((SAMPLE_MASSES if name == "samples by dual" else DUALS[TASKS]) > 0).sum())


def test_by_dual_all_weights_are_equal():
    _, weights = DRAWS["by dual"](8, torch.Generator())
    # The task with λ = 3 has no samples left, so its share of the sum is nothing.
    assert weights.tolist() == pytest.approx([3.6 / 8] * 8)


def test_a_draw_without_weight_shows_every_sample_once_in_a_while():
    """Networks with batch statistics replay them for the statistics alone. A sample in two sets counts once."""
    slots, weights = draw_weightless(torch.tensor([7, 2, 5, 2]), 3000, torch.Generator().manual_seed(0))
    assert (weights == 0).all()
    times = torch.bincount(slots)[[2, 5, 7]]
    assert int(times.sum()) == 3000
    assert (times - 1000).abs().max() < 130, "five standard deviations"


EMPTY = torch.tensor([], dtype=torch.long)


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: draw_by_dual(cumulate(torch.zeros(6), COUNTS), OFFSETS, COUNTS, 5, g),
        lambda g: draw_by_dual(cumulate(torch.tensor([0, 0, 0, 2.0, 0, 0]), COUNTS), OFFSETS, COUNTS, 5, g),
        lambda g: draw_by_dual(cumulate(EMPTY), EMPTY, EMPTY, 5, g),
        lambda g: draw_samples_by_dual(cumulate(torch.zeros(20)), 5, g),
        lambda g: DRAWS["by dual"](0, g),
    ],
)
def test_without_duals_or_samples_there_is_nothing_to_replay(draw):
    slots, weights = draw(torch.Generator())
    assert slots.dtype == torch.long
    assert len(slots) == len(weights) == 0


def test_at_both_edges_of_u_only_items_with_mass_are_chosen():
    edges = torch.tensor([0.0, math.nextafter(1.0, 0.0), 1.0], dtype=torch.float64)
    for masses in ([0, 0, 3, 0, 1, 0, 0], [0, 5e-324, 0], [1e300, 0, 1e-300, 0], [0.1] * 10 + [0]):
        chosen = Ends(cumulate(torch.tensor(masses, dtype=torch.float64))).invert(edges.numpy())
        assert all(masses[i] > 0 for i in chosen.tolist())


def test_a_boundary_between_items_belongs_to_the_next_one_with_mass():
    cumulative = cumulate(torch.tensor([1.0, 0.0, 1.0]))
    assert Ends(cumulative).invert(torch.tensor([0.49, 0.5, 0.51], dtype=torch.float64).numpy()).tolist() == [0, 2, 2]


def test_a_tiny_dual_behind_a_large_one_is_not_lost():
    cumulative = cumulate(torch.tensor([1.0, 1e-9]))
    assert cumulative.dtype == torch.float64
    assert Ends(cumulative).invert(torch.tensor([1 - 1e-10], dtype=torch.float64).numpy()).tolist() == [1]


def test_the_same_seed_draws_the_same():
    for draw in DRAWS.values():
        one, two = draw(9, torch.Generator().manual_seed(4)), draw(9, torch.Generator().manual_seed(4))
        assert torch.equal(one[0], two[0])
        assert torch.equal(one[1], two[1])
