"""Sets of slots and estimates over them: exact weights, and overlapping sets."""

import math

import pytest
import torch

from pdcl.algorithm.constraints import Sets, sample_sets, task_means, task_sets
from pdcl.algorithm.draws import Pool
from pdcl.algorithm.rules import rule

VALUES = torch.tensor([1.0, 10.0, 100.0, 1000.0, 10000.0])


def overlapping():
    """Slots 0–4; sets {4, 1}, {1, 2, 3}, {} and {0} with masses 3, 6, 5 and 2."""
    members, counts = torch.tensor([4, 1, 1, 2, 3, 0]), torch.tensor([2, 3, 0, 1])
    return Pool(torch.tensor([3.0, 6.0, 5.0, 2.0], dtype=torch.float64), members, counts.cumsum(0) - counts, counts)


EXACT = 3 * (10000 + 10) / 2 + 6 * (10 + 100 + 1000) / 3 + 2 * 1


def test_the_whole_memory_gives_the_sum_itself():
    slots, weights = rule("estimator", "whole").draw(overlapping(), 1, torch.Generator())
    assert slots.tolist() == [4, 1, 1, 2, 3, 0]
    assert weights.tolist() == pytest.approx([1.5, 1.5, 2, 2, 2, 2])
    assert (weights * VALUES[slots]).sum().item() == pytest.approx(EXACT)


@pytest.mark.parametrize("m", [1, 2, 7])
def test_draws_over_overlapping_sets_are_unbiased(m):
    """z-test of 1,500 draws, |z| < 4.5: a false alarm in 10⁵."""
    pool, estimator, generator = overlapping(), rule("estimator", "dual"), torch.Generator().manual_seed(m)
    found = []
    for _ in range(1500):
        slots, weights = estimator.draw(pool, m, generator)
        found.append((weights * VALUES[slots]).sum())
    sample = torch.stack(found)
    assert abs(sample.mean() - EXACT) < 4.5 * sample.std() / math.sqrt(len(sample))


@pytest.mark.parametrize("members", [[3], []])
def test_nothing_is_drawn_where_nothing_is_asked_for_or_what_weighs_is_empty(members):
    """Sets {…} and {} with masses 0 and 5: only the empty one weighs."""
    counts = torch.tensor([len(members), 0])
    pool = Pool(torch.tensor([0.0, 5.0]), torch.tensor(members).long(), counts.cumsum(0) - counts, counts)
    for which, m in ((pool, 4), (overlapping(), 0)):
        slots, weights = rule("estimator", "dual").draw(which, m, torch.Generator())
        assert slots.dtype == torch.long
        assert len(slots) == len(weights) == 0


def test_draws_by_dual_weigh_all_the_same():
    for pool in (overlapping(), Pool(torch.tensor([3.0, 8.0]), torch.tensor([1, 0]), torch.arange(2), torch.ones(2))):
        slots, weights = rule("estimator", "dual").draw(pool, 8, torch.Generator().manual_seed(0))
        assert len(slots) == 8
        assert weights.tolist() == pytest.approx([11 / 8] * 8)
    assert overlapping().ends.total == 11.0
    assert not overlapping().singles
    assert pool.singles


def test_nothing_stored_is_no_mass():
    empty = torch.zeros(0, dtype=torch.long)
    pool = Pool(torch.zeros(0), empty, empty, empty)
    assert pool.ends.total == 0.0
    assert len(rule("estimator", "whole").draw(pool, 3, torch.Generator())[0]) == 0


def test_task_sets_hold_the_slots_of_each_task_in_order():
    sets = task_sets(torch.tensor([1, 0, 1, 3]), 4)
    assert sets.members.tolist() == [1, 0, 2, 3]
    assert sets.counts.tolist() == [1, 2, 0, 1]
    assert sets.offsets.tolist() == [0, 1, 3, 3]
    assert sets.owners.tolist() == [0, 1, 1, 3]
    assert sets.tasks.tolist() == [0, 1, 2, 3]
    assert sets.divisors.tolist() == [1, 1, 1, 1]
    assert len(sets) == 4
    means = task_means(torch.tensor([5.0, 1.0, 3.0, 7.0]), sets.owners, 4)
    assert means[[0, 1, 3]].tolist() == [5.0, 2.0, 7.0]
    assert means[2].isnan()


def test_sample_sets_hold_one_slot_each_and_share_the_weight_of_their_task():
    sets = sample_sets(task_sets(torch.tensor([1, 0, 1]), 2))
    assert sets.members.tolist() == [0, 1, 2]
    assert sets.counts.tolist() == [1, 1, 1]
    assert sets.tasks.tolist() == [1, 0, 1]
    assert sets.divisors.tolist() == [2, 1, 2]
    assert isinstance(sets, Sets)


@pytest.fixture
def any_type():
    yield
    torch.set_default_dtype(torch.float32)


def test_draws_do_not_depend_on_the_default_type_of_floats(any_type):
    """Single precision would reach only 2²⁴ places, and round some of them to one too many."""
    found = []
    for kind in (torch.float32, torch.float64):
        torch.set_default_dtype(kind)
        slots, weights = rule("estimator", "dual").draw(overlapping(), 200, torch.Generator().manual_seed(4))
        found.append(slots)
        assert weights.dtype == kind
    assert torch.equal(*found)


def test_without_duals_every_sample_weighs_alike():
    assert rule("selection", "uniform").weights(torch.tensor([3.0, 0.0])).tolist() == [1.0, 1.0]


def test_tasks_of_which_nothing_is_stored_have_an_empty_set():
    sets = task_sets(torch.tensor([0]), 3)
    assert sets.counts.tolist() == [1, 0, 0]
    assert sets.offsets.tolist() == [0, 1, 1]
