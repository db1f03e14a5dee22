"""Sets of slots and estimates over them: exact weights, overlapping sets, and constraints on loss and drift."""

import math

import pytest
import torch

from pdcl.algorithm.constraints import Sets, sample_sets, task_sets
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


def test_a_uniform_draw_weighs_a_slot_by_all_of_its_sets():
    slots, weights = rule("estimator", "uniform").draw(overlapping(), 50, torch.Generator().manual_seed(0))
    assert set(slots.tolist()) == {0, 1, 2, 3, 4}
    each = torch.tensor([2.0, 3.5, 2.0, 2.0, 1.5])
    assert weights.tolist() == pytest.approx((5 * each[slots] / 50).tolist())


def test_a_uniform_draw_knows_slots_that_are_in_no_set():
    """Slot 0 and 1 are nobody's: three of five slots may be drawn, with weight 3 μ / (n m)."""
    members, counts = torch.tensor([2, 3, 4]), torch.tensor([3])
    pool = Pool(torch.tensor([6.0]), members, torch.tensor([0]), counts)
    slots, weights = rule("estimator", "uniform").draw(pool, 30, torch.Generator().manual_seed(0))
    assert set(slots.tolist()) == {2, 3, 4}
    assert weights.tolist() == pytest.approx([3 * 2.0 / 30] * 30)


@pytest.mark.parametrize("name", ["dual", "uniform", "stratified"])
@pytest.mark.parametrize("m", [1, 2, 7])
def test_draws_over_overlapping_sets_are_unbiased(name, m):
    """z-test of 1,500 draws, |z| < 4.5: a false alarm in 10⁵."""
    pool, estimator, generator = overlapping(), rule("estimator", name), torch.Generator().manual_seed(m)
    found = []
    for _ in range(1500):
        slots, weights = estimator.draw(pool, m, generator)
        found.append((weights * VALUES[slots]).sum())
    sample = torch.stack(found)
    assert abs(sample.mean() - EXACT) < 4.5 * sample.std() / math.sqrt(len(sample))


def test_draws_by_dual_weigh_all_the_same():
    for pool in (overlapping(), Pool(torch.tensor([3.0, 8.0]), torch.tensor([1, 0]), torch.arange(2), torch.ones(2))):
        slots, weights = rule("estimator", "dual").draw(pool, 8, torch.Generator().manual_seed(0))
        assert len(slots) == 8
        assert weights.tolist() == pytest.approx([11 / 8] * 8)
    assert overlapping().total == 11.0
    assert not overlapping().singles
    assert pool.singles


def test_nothing_stored_is_no_mass():
    empty = torch.zeros(0, dtype=torch.long)
    pool = Pool(torch.zeros(0), empty, empty, empty)
    assert pool.total == 0.0
    assert pool.slot_masses.tolist() == []


def test_task_sets_hold_the_slots_of_each_task_in_order():
    sets = task_sets(torch.tensor([1, 0, 1, 3]), 4)
    assert sets.members.tolist() == [1, 0, 2, 3]
    assert sets.counts.tolist() == [1, 2, 0, 1]
    assert sets.offsets.tolist() == [0, 1, 3, 3]
    assert sets.owners.tolist() == [0, 1, 1, 3]
    assert sets.tasks.tolist() == [0, 1, 2, 3]
    assert sets.divisors.tolist() == [1, 1, 1, 1]
    assert len(sets) == 4
    means = sets.means(torch.tensor([[5.0, 1.0, 3.0, 7.0]]))
    assert means[0, [0, 1, 3]].tolist() == [5.0, 2.0, 7.0]
    assert means[0, 2].isnan()


def test_sample_sets_hold_one_slot_each_and_share_the_weight_of_their_task():
    sets = sample_sets(task_sets(torch.tensor([1, 0, 1]), 2))
    assert sets.members.tolist() == [0, 1, 2]
    assert sets.counts.tolist() == [1, 1, 1]
    assert sets.tasks.tolist() == [1, 0, 1]
    assert sets.divisors.tolist() == [2, 1, 2]
    assert isinstance(sets, Sets)


@pytest.fixture
def drifting(problem):
    """Two past tasks of two samples; θ moved from 1 to 3 since their outputs were recorded."""

    def make(level, **options):
        past = [([[1.0], [2.0]], [0.0, 0.0]), ([[3.0], [4.0]], [0.0, 0.0])]
        learner, stream = problem(past, ([[1.0]], [1.0]), 0.5, (1.0,), dual_lr=0.1).prepared(level=level, **options)
        with torch.no_grad():
            learner.model.weight.fill_(3.0)
        learner.begin(stream.tasks[-1], 1)
        learner.core.observe(torch.tensor([0]), torch.tensor([1.0]), 1, None)
        moved = learner.core.measure(learner.evaluated)
        return learner, moved

    return make


def test_loss_and_drift_each_have_a_dual_and_a_weight(drifting):
    """Losses (3x)², drifts (2x)²: means 22.5 and 112.5, 10 and 50; ε .5 and .1."""
    learner, moved = drifting("task", constrain="both")
    expected = [[2.2, 11.2], [0.99, 4.99]]
    assert learner.core.duals.values.tolist() == [pytest.approx(row) for row in expected]
    assert moved.duals == pytest.approx([3.19, 16.19])
    assert moved.slacks == pytest.approx([22.0, 112.0])
    drawn = learner.core.draw(5)
    tasks = learner.held["task"][drawn.slots]
    for row, duals in enumerate(expected):
        assert drawn.weights[row].tolist() == pytest.approx((torch.tensor(duals)[tasks] / 2).tolist())


def test_per_sample_loss_and_drift_have_a_dual_each(drifting):
    learner, _ = drifting("sample", constrain="both:drift_tolerance=.2")
    x = learner.held["x"].flatten()
    loss, drift = 0.1 * (9 * x**2 - 0.55), 0.1 * (4 * x**2 - 0.22)
    assert learner.core.duals.values[0].tolist() == pytest.approx(loss.tolist())
    assert learner.core.duals.values[1].tolist() == pytest.approx(drift.tolist())
    drawn = learner.core.draw(5)
    assert drawn.weights[0].tolist() == pytest.approx((loss / 2)[drawn.slots].tolist())
    assert drawn.weights[1].tolist() == pytest.approx((drift / 2)[drawn.slots].tolist())


def test_drift_alone_is_held_to_its_own_tolerance(drifting):
    learner, _ = drifting("task", constrain="drift:drift_tolerance=2")
    assert learner.core.duals.values.tolist() == [pytest.approx([0.8, 4.8])]


def test_drift_beside_the_loss_is_differentiated_but_not_measured(drifting):
    """The dual answers the loss; the term that is descended has .5 × the drift beside it."""
    learner, moved = drifting("task", drift=0.5)
    assert moved.duals == pytest.approx([2.2, 11.2])
    slots = torch.arange(4)
    x = learner.held["x"].flatten()
    found = learner.core.constrained(learner.outputs(learner.held["x"]), slots)
    assert found.tolist() == [pytest.approx((9 * x**2 + 0.5 * 4 * x**2).tolist())]


def test_terms_are_the_current_losses_then_every_quantity_of_the_replayed(drifting):
    learner, _ = drifting("task", constrain="both")
    core = learner.core
    drawn = core.draw(1)
    outputs = learner.outputs(torch.cat([torch.tensor([[1.0]]), learner.held.read("x", drawn.slots)]))
    x = learner.held["x"].flatten()[drawn.slots]
    terms = core.terms(outputs, torch.tensor([[1.0]]), drawn)
    assert terms.tolist() == pytest.approx([4.0, *(9 * x**2).tolist(), *(4 * x**2).tolist()])
    weights = core.weights(1, drawn)
    assert weights.tolist() == pytest.approx([1.0, *drawn.weights.flatten().tolist()])
    assert core.weights(1, None) is None
    core.normalise = True
    assert core.weights(1, drawn).tolist() == pytest.approx((weights / (1 + 3.19 + 16.19)).tolist())


def test_draws_do_not_depend_on_the_default_type_of_floats():
    """Single precision would reach only 2²⁴ places, and round some of them to one too many."""
    for name in ("dual", "uniform", "stratified"):
        found = []
        for kind in (torch.float32, torch.float64):
            torch.set_default_dtype(kind)
            slots, weights = rule("estimator", name).draw(overlapping(), 200, torch.Generator().manual_seed(4))
            found.append(slots)
            assert weights.dtype == kind
        assert torch.equal(*found)


def test_without_duals_every_sample_weighs_alike():
    assert rule("selection", "uniform").weights(torch.tensor([3.0, 0.0])).tolist() == [1.0, 1.0]


def test_tasks_of_which_nothing_is_stored_have_an_empty_set():
    sets = task_sets(torch.tensor([0]), 3)
    assert sets.counts.tolist() == [1, 0, 0]
    assert sets.offsets.tolist() == [0, 1, 1]
