"""What a measurement looks at, and what it makes of it: some samples of many, each once, without a bias."""

import math

import pytest
import torch

from pdcl.algorithm.algorithm1 import Algorithm1, Duals
from pdcl.algorithm.constraints import Constraints, sample_sets, task_sets, with_segments
from pdcl.algorithm.draws import ByDual
from pdcl.algorithm.dual_rules import Ascent
from pdcl.algorithm.slacks import Survey
from pdcl.errors import Diverged, UsageError

# Slots 1, 4, 7, … hold task 0, the slots behind them task 1; every third slot is nobody's (a guard, a witness).
TASK_OF = torch.tensor([0, 0, 1] * 12)
SLOTS = torch.arange(36)[torch.arange(36) % 3 > 0]
LOSSES = torch.linspace(1, 5, 36, dtype=torch.float64)
LIMITS = torch.tensor([0.5, 2.0], dtype=torch.float64)


def by_sample(limits=LIMITS):
    """Each of 24 replayed samples may have 1.1 times what its task may."""
    tasks = task_sets(TASK_OF, 2, SLOTS)
    sets = sample_sets(tasks)
    each = 1.1 * limits[sets.tasks]
    return Constraints(tasks, sets, tasks, each, torch.zeros(2).bool(), torch.zeros(24), limits, by_sample=True)


def measured(survey, constraints, look):
    """Line 7 as the algorithm runs it."""
    duals = Duals(constraints.limits, torch.zeros_like(constraints.limits), Ascent())
    return Algorithm1(constraints, duals, ByDual(), survey).measure(look)


def surveyed(most, seed=0, constraints=None):
    constraints = by_sample() if constraints is None else constraints
    seen = []

    def look(numbers):
        seen.append(numbers)
        return torch.stack([LOSSES[numbers], torch.zeros(len(numbers))], 1)

    survey = Survey(constraints.measured_on, most, torch.Generator().manual_seed(seed))
    return constraints, measured(survey, constraints, look), seen


def test_without_any_weight_nothing_is_replayed_unless_batch_statistics_need_it():
    constraints = by_sample()
    duals = Duals(constraints.limits, torch.zeros(24, dtype=torch.float64), Ascent())
    algorithm = Algorithm1(constraints, duals, ByDual(), Survey(constraints.measured_on, 9, torch.Generator()))
    generator = torch.Generator().manual_seed(0)
    assert algorithm.draw(5, generator) is None
    algorithm.always_replays = True
    drawn = algorithm.draw(5, generator)
    assert (len(drawn.slots), drawn.weights.tolist()) == (5, [0.0] * 5)
    assert set(drawn.slots.tolist()) <= set(SLOTS.tolist())
    duals.values[:] = 1.0
    algorithm.weigh()
    assert algorithm.draw(5, generator).weights.tolist() == pytest.approx([2 / 5] * 5), "λ of two tasks, 1 each"


def test_of_many_samples_some_are_looked_at_each_once_and_held_to_its_own_limit():
    constraints, found, (seen,) = surveyed(8)
    assert 3 <= len(seen) <= 8
    assert len(seen.unique()) == len(seen)
    slots = constraints.sets.members[found.visited]
    assert torch.equal(slots, seen)
    assert found.slacks.tolist() == (LOSSES[slots] - 1.1 * LIMITS[TASK_OF[slots]]).tolist()
    assert found.share == len(seen) / 24
    means = [LOSSES[seen[TASK_OF[seen] == task]].mean().item() for task in (0, 1)]
    assert found.told.tolist() == pytest.approx([means[0] - 0.5, means[1] - 2.0])


def test_a_sample_that_stands_for_its_task_and_for_a_segment_is_looked_at_once():
    """Segment: slots 4 to 20. Of 24 replayed samples, with 11 of them twice, all or some are drawn."""
    inside = torch.zeros(1, 36, dtype=torch.bool)
    inside[0, 4:21] = True
    sets, limits = with_segments(task_sets(TASK_OF, 2, SLOTS), inside), torch.tensor([0.5, 2.0, 1.0]).double()
    constraints = Constraints(sets, sets, sets, limits, torch.zeros(3).bool(), torch.zeros(3), limits)
    for most in (99, 9):
        _, found, (seen,) = surveyed(most, constraints=constraints)
        assert len(seen) == len(seen.unique()) <= (24 if most == 99 else 9)
        assert (len(seen) == 24) == (most == 99)
        assert found.visited.tolist() == [0, 1, 2]
        if most == 99:
            means = [LOSSES[sets.members[sets.owners == c]].mean().item() for c in range(3)]
            assert (found.slacks + limits).tolist() == pytest.approx(means)


def test_where_all_may_be_looked_at_all_are_and_nothing_is_drawn():
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    survey = Survey(by_sample().measured_on, 24, generator)
    found = measured(survey, by_sample(), lambda numbers: torch.stack([LOSSES[numbers]] * 2, 1))
    assert found.share == 1.0
    assert sorted(found.visited.tolist()) == list(range(24))
    assert torch.equal(generator.get_state(), before)


def test_a_sample_without_a_limit_is_neither_visited_nor_counted():
    without = by_sample(torch.tensor([0.5, torch.nan], dtype=torch.float64))
    constraints, found, (seen,) = surveyed(8, constraints=without)
    limited = seen[TASK_OF[seen] == 0]
    assert torch.equal(constraints.sets.members[found.visited], limited)
    assert found.share == len(limited) / 12
    assert found.told.isnan().tolist() == [False, True]


def test_duals_of_samples_rise_by_their_slack_on_average_however_few_are_looked_at():
    """z-tests of 1,500 surveys of 6 of 24, |z| < 4.5 each: a false alarm in 6·10³ for all."""
    constraints, moved = by_sample(), []
    survey = Survey(constraints.measured_on, 6, torch.Generator().manual_seed(1))
    zero = torch.zeros(24, dtype=torch.float64)
    for _ in range(1500):
        # Where duals could not fall, noise would lift them.
        duals = Duals(constraints.limits, zero + 100, Ascent(lr=0.1))
        algorithm = Algorithm1(constraints, duals, ByDual(), survey)
        algorithm.ascend(algorithm.measure(lambda numbers: torch.stack([LOSSES[numbers]] * 2, 1)))
        moved.append(duals.values - 100)
    found = torch.stack(moved)
    exact = 0.1 * (LOSSES[constraints.sets.members] - constraints.limits)
    z = (found.mean(0) - exact) / (found.std(0) / math.sqrt(1500))
    assert z.abs().max() < 4.5


def test_a_measurement_that_may_look_at_nothing_is_refused():
    with pytest.raises(UsageError, match="slack_samples=0 must be at least 1"):
        Survey(by_sample().measured_on, 0, torch.Generator())


def test_a_smoothed_slack_of_0_1_has_a_dimension_more_and_loads():
    survey = Survey(by_sample().measured_on, 6, torch.Generator())
    survey.load_state_dict({"smooth": torch.tensor([[1.0, 2.0]]), "offered": []})
    assert survey.smooth.tolist() == [1.0, 2.0]
    other = Survey(by_sample().measured_on, 6, torch.Generator())
    other.load_state_dict(survey.state_dict())
    assert other.smooth.tolist() == [1.0, 2.0]


def by_task():
    tasks = task_sets(TASK_OF, 2, SLOTS)
    return Constraints(tasks, tasks, tasks, LIMITS, torch.zeros(2).bool(), torch.zeros(2), LIMITS)


def test_standard_errors_are_those_of_means_with_half_a_sample_added():
    """Losses of n samples with variance v: √(v/n + (1/2n)²), which few equal losses can't bring to 0."""
    losses = LOSSES / 10
    survey = Survey(by_task().measured_on, 24, torch.Generator())
    found = measured(survey, by_task(), lambda numbers: torch.stack([losses[numbers]] * 2, 1))
    for task, error in enumerate(found.errors.tolist()):
        own = losses[SLOTS[TASK_OF[SLOTS] == task]]
        assert error == pytest.approx(math.sqrt(float(own.var(correction=0)) / len(own) + 0.25 / len(own) ** 2))


@pytest.mark.parametrize("lost", [math.nan, math.inf])
def test_one_loss_that_is_no_number_stops_the_run(lost):
    survey = Survey(by_task().measured_on, 24, torch.Generator())

    def look(numbers):
        losses = LOSSES[numbers].clone()
        losses[3] = lost
        return torch.stack([losses, losses], 1)

    with pytest.raises(Diverged, match="no longer finite"):
        measured(survey, by_task(), look)


def test_a_task_of_one_sample_has_a_standard_error_of_a_half_and_one_of_none_no_slack():
    tasks = task_sets(torch.tensor([0, 2, 2]), 3)
    limits = torch.full((3,), 0.5, dtype=torch.float64)
    constraints = Constraints(tasks, tasks, tasks, limits, torch.zeros(3).bool(), torch.zeros(3), limits)
    found = measured(
        Survey(tasks, 9, torch.Generator()), constraints, lambda numbers: torch.full((len(numbers), 2), 2.0)
    )
    assert found.visited.tolist() == [0, 2]
    assert found.errors.tolist() == pytest.approx([0.5, 0.25])
    assert (found.slacks.tolist(), found.share) == ([1.5, 1.5], 2 / 3)
    assert found.told.isnan().tolist() == [False, True, False]
