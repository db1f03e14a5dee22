"""The reservoir's law. Random claims use a fixed seed; each states how often a sound sampler would fail."""

from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from pdcl.past import reservoir as module
from pdcl.past.reservoir import Reservoir, reservoir_writes


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def held_after(batches, capacity: int, generator: torch.Generator) -> torch.Tensor:
    """The numbers of the samples in each slot (−1: none) after offering these batches."""
    held, reservoir = torch.full((capacity,), -1), Reservoir()
    for batch in batches:
        before = reservoir.seen
        kept = reservoir.offer(batch, capacity, generator)
        if kept is not None:
            held[kept[1]] = before + kept[0]
    return held


@pytest.mark.parametrize("block", [1, 4, 1024])
def test_every_sample_is_held_with_the_same_probability(block, monkeypatch):
    """20 samples in uneven batches into 5 slots, whatever is decided at once.

    Q = Σ (O_i − Rπ)² / (Rπ(1−π) N/(N−1)) is χ² with 19 degrees: false alarms 1e-4 a case. Drawing from {0, …, i − 1}
    instead of {0, …, i} would lift Q by about 170.
    """
    monkeypatch.setattr(module, "BLOCK", block)
    runs, generator, counts = 3000, seeded(), torch.zeros(20)
    for _ in range(runs):
        counts[held_after((3, 7, 1, 9), 5, generator)] += 1
    share = counts / runs
    assert share.mean() == pytest.approx(0.25)
    q = float(runs * ((share - 0.25) ** 2).sum() / (0.25 * 0.75 * 20 / 19))
    assert chi2.ppf(5e-5, 19) < q < chi2.isf(5e-5, 19)


@given(st.lists(st.integers(0, 12), max_size=8), st.integers(1, 12), st.integers(0, 99))
def test_batches_leave_behind_what_one_by_one_would(batches, capacity, seed):
    """Decisions come in order from one block, so the batches' borders can't matter."""
    with patch.object(module, "BLOCK", 200):
        found = held_after(batches, capacity, seeded(seed)).tolist()
        numbers, slots = reservoir_writes(0, 200, capacity, seeded(seed))
    expected = [-1] * capacity
    for number, slot in zip(numbers.tolist(), slots.tolist(), strict=True):
        if number < sum(batches):
            expected[slot] = number
    assert found == expected


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 12), st.integers(0, 99))
def test_decisions_are_those_of_algorithm_r(seen, count, capacity, seed):
    numbers, slots = reservoir_writes(seen, count, capacity, seeded(seed))
    expected = []
    for number, u in enumerate(torch.rand(count, dtype=torch.float64, generator=seeded(seed)).tolist(), seen):
        slot = number if number < capacity else int(u * (number + 1))
        expected += [(number, slot)] if slot < capacity else []
    assert list(zip(numbers.tolist(), slots.tolist(), strict=True)) == expected


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(0, 2**20))
def test_passing_by_what_is_not_kept_changes_nothing(batches, seed):
    one, other, draws, same = Reservoir(), Reservoir(), seeded(seed), seeded(seed)
    with patch.object(module, "BLOCK", 16):
        for batch in batches:
            kept = one.offer(batch, 3, draws)
            if other.pass_by(batch):
                assert kept is None
            else:
                again = other.offer(batch, 3, same)
                assert (kept is None) == (again is None)
                assert kept is None or all(map(torch.equal, kept, again))
            assert one.state_dict() == other.state_dict()


def test_what_is_decided_is_passed_by_to_its_last_sample():
    reservoir = Reservoir()
    reservoir.offer(1, 0, seeded())
    assert reservoir.pass_by(module.BLOCK - 1)
    assert not reservoir.pass_by(1)
