"""One dual step, number by number: losses that no primal step changes make every dual a sum by hand."""

import pytest
import torch

from pdcl.algorithm.algorithm1 import Duals
from pdcl.algorithm.dual_rules import Ascent, DualRule
from pdcl.errors import Diverged
from pdcl.learning.events import DualsMoved

BOTH = pytest.mark.parametrize("by", ["core", "learner"])


@BOTH
def test_a_tasks_dual_rises_by_its_mean_slack(constant, by):
    found = constant([[1.0, 3.0], [0.1]], [5.0], tolerance=0.5, dual_lr=0.1, steps=2).solve(by)
    assert found.duals.tolist() == [pytest.approx([0.15, 0.0]), pytest.approx([0.3, 0.0])]


@BOTH
def test_a_sample_may_have_a_tenth_more_than_its_task(constant, by):
    """λ_i = η_d (ℓ_i − 1.1 ε)."""
    found = constant([[1.0, 3.0], [0.52]], [5.0], tolerance=0.5, dual_lr=0.1).solve(by, level="sample")
    assert found.dual.tolist() == pytest.approx([0.045, 0.245, 0.0])


def test_duals_start_where_they_are_told_to(constant):
    found = constant([[1.0]], [5.0], tolerance=0.5, dual_lr=0.1).by_learner(start=0.7)
    assert found.dual.tolist() == pytest.approx([0.75])
    each = constant([[1.0, 0.0]], [5.0], tolerance=0.5, dual_lr=0.1).by_learner(start=0.7, level="sample")
    assert each.dual.tolist() == pytest.approx([0.745, 0.645])


def test_a_gain_answers_the_slack_itself_and_leaves_no_trace(constant):
    """I = η_d Σ s, λ = [I + K_p s]₊."""
    found = constant([[1.5]], [5.0], tolerance=0.5, dual_lr=0.1, steps=2).by_learner(gain=2.0)
    assert found.duals.flatten().tolist() == pytest.approx([0.1 + 2.0, 0.2 + 2.0])


@pytest.mark.parametrize("level", ["task", "sample"])
def test_warm_duals_go_on_where_the_task_before_left_them(constant, level):
    """Two tasks of one dual step each; the artificial dual becomes that of the task it stood for."""
    made = constant([[1.0]], [3.0], dual_lr=0.1)
    ends = {}
    for warm in (True, False):
        selection = "dual" if level == "sample" else "uniform"
        learner, stream = made.prepared(warm=warm, level=level, selection=selection, memory=3)
        for _ in range(2):
            learner.begin(stream.tasks[1], 1)
            learner.core.observe(torch.tensor([0]), torch.tensor([3.0]), 1)
            learner.core.measure(learner.evaluated)
            learner.core.end("new", stream.tasks[1].data, learner.evaluated, 9)
        ends[warm] = learner.final_duals()
    # A sample brings the shadow dual that it was chosen by: rescored, that is its slack.
    first, second = (0.0, 0.3) if level == "task" else (1.0, 3.0)
    assert ends[True] == pytest.approx([first + 0.2, second + 0.3, 0.3])
    assert ends[False] == pytest.approx([0.1, 0.3, 0.3])


def test_where_only_some_samples_are_measured_the_others_rest_and_these_go_farther(constant):
    """If a fraction q of the constraints is measured, the step is η_d / q: here λ_i = η_d s / q, or 0."""
    made = constant([[2.0] * 40], [5.0], dual_lr=0.1)
    found = made.by_learner(level="sample", slack_samples=10)
    moved = found.dual > 0
    q = moved.sum().item() / 40
    assert 0 < q <= 0.25
    assert found.dual[moved].tolist() == pytest.approx([0.1 * 2.0 / q] * int(moved.sum()))
    assert found.dual.mean().item() == pytest.approx(0.2)


def test_a_task_is_measured_whole_however_few_samples_of_it_are_looked_at(constant):
    """At the task level every constraint is measured at each look, so steps have the usual length."""
    found = constant([[2.0] * 40, [3.0] * 20], [5.0], dual_lr=0.1).by_learner(slack_samples=6)
    assert found.dual.tolist() == pytest.approx([0.2, 0.3])


def test_looks_are_spread_over_tasks_by_what_is_stored_of_each(constant):
    learner, stream = constant([[2.0] * 40, [3.0] * 20, [1.0]], [5.0]).prepared(slack_samples=12)
    learner.begin(stream.tasks[-1], 1)
    seen = []
    learner.core.algorithm.measure(lambda slots: seen.append(slots) or torch.ones(len(slots), 2))
    assert learner.core.task_of[seen[0]].tolist() == [0] * 8 + [1] * 4 + [2]


def test_few_looks_at_a_task_are_smoothed_in_proportion(constant):
    """With 8 of 40 samples looked at, a new slack counts 8/16; a task seen whole counts fully."""
    learner, stream = constant([[2.0] * 40, [2.0]], [5.0], dual_lr=0.1).prepared(slack_samples=8)
    learner.begin(stream.tasks[-1], 2)
    for loss in (0.0, 2.0):
        learner.core.observe(torch.tensor([0]), torch.tensor([5.0]), 1)
        moved = learner.core.measure(lambda x, loss=loss: torch.full((len(x), 1), loss))
    assert moved.slacks == pytest.approx([3.0, 4.0])


@BOTH
def test_the_artificial_dual_follows_the_current_tasks_mean_loss_and_weighs_nothing(constant, by):
    found = constant([[0.0]], [1.0, 3.0], tolerance=0.5, dual_lr=0.1, steps=3).solve(by)
    assert found.core.progress.current_dual == pytest.approx(3 * 0.1 * 1.5)
    assert found.core.algorithm.norm == 0


def test_an_event_tells_duals_slacks_and_tolerances_after_each_dual_step(constant):
    events = []
    constant([[1.0, 3.0], [0.1]], [5.0], tolerance=[0.5, 0.4, 1.0], dual_lr=0.1, steps=2).by_learner(events.append)
    moved = [event for event in events if isinstance(event, DualsMoved)]
    assert [event.duals for event in moved] == [pytest.approx([0.15, 0.0]), pytest.approx([0.3, 0.0])]
    assert [event.slacks for event in moved] == [pytest.approx([1.5, -0.3])] * 2
    assert [event.tolerances for event in moved] == [[0.5, 0.4]] * 2
    assert [event.current for event in moved] == pytest.approx([0.4, 0.8])


def test_at_the_sample_level_an_event_tells_the_means_over_each_task(constant):
    events = []
    made = constant([[1.0, 3.0], [0.1]], [5.0], tolerance=0.5, dual_lr=0.1)
    made.by_learner(events.append, level="sample")
    (moved,) = [event for event in events if isinstance(event, DualsMoved)]
    assert moved.duals == pytest.approx([0.145, 0.0])
    assert moved.slacks == pytest.approx([1.5, -0.4])


@pytest.mark.parametrize(("dual_steps", "steps", "expected"), [(3, 12, 3), (12, 12, 12), (1, 12, 1), (None, 120, 60)])
def test_so_many_dual_steps_are_taken_in_a_task(constant, dual_steps, steps, expected):
    events = []
    made = constant([[1.0]], [5.0], steps=steps)
    made.by_learner(events.append, dual_steps=dual_steps, primal_steps=None)
    assert sum(isinstance(event, DualsMoved) for event in events) == expected


def test_a_loss_that_is_not_finite_stops_the_dual_step(constant):
    learner, stream = constant([[1.0]], [5.0]).prepared()
    learner.begin(stream.tasks[1], 1)
    learner.core.observe(torch.tensor([0]), torch.tensor([5.0]), 1)
    with pytest.raises(Diverged, match="losses on memory are no longer finite; lower lr or dual_lr"):
        learner.core.measure(lambda x: torch.full((len(x), 1), torch.nan))


def test_nothing_is_replayed_before_a_dual_rises_and_something_after(constant):
    learner, stream = constant([[2.0] * 4], [5.0]).prepared(estimator="dual")
    assert learner.core.draw(7) is None
    learner.begin(stream.tasks[1], 1)
    assert learner.core.draw(7) is None
    learner.core.observe(torch.tensor([0]), torch.tensor([5.0]), 1)
    learner.core.measure(learner.evaluated)
    drawn = learner.core.draw(7)
    assert drawn.slots.shape == (7,)
    assert drawn.weights.tolist() == pytest.approx([1.0 / 7] * 7)


def test_a_rule_sees_slacks_errors_share_and_planned_steps():
    looks = []

    class Spy(Ascent):
        def step(self, state, look):
            looks.append(look)
            return state + 1, 2 * (state + 1)

    duals = Duals(torch.zeros(4), torch.zeros(4), Spy(), steps=9)
    duals.ascend(torch.ones(2), torch.tensor([3, 1]), share=0.5)
    duals.ascend(5 * torch.ones(4), errors=torch.full((4,), 0.5))
    assert [look.share for look in looks] == [0.5, 1.0]
    assert [look.errors.unique().tolist() for look in looks] == [[0.0], [0.5]]
    assert [look.steps for look in looks] == [9, 9]
    assert duals.state.tolist() == [1, 2, 1, 2]
    assert duals.values.tolist() == [2, 4, 2, 4]
    assert duals.slacks.tolist() == [5.0] * 4


@pytest.mark.parametrize(
    ("pace", "steps", "planned"),
    [({"primal_steps": 3}, 12, 4), ({"dual_steps": 6}, 12, 6), ({"primal_steps": 20}, 12, 1)],
)
def test_a_rule_knows_how_many_dual_steps_are_planned_also_after_a_resume(constant, pace, steps, planned):
    made = constant([[2.0]], [5.0])
    learner, stream = made.prepared(**{"primal_steps": None, **pace})
    other, _ = made.prepared(**{"primal_steps": None, **pace})
    learner.begin(stream.tasks[1], steps)
    learner.core.observe(torch.tensor([0]), torch.tensor([5.0]), 1)
    other.load_state_dict(learner.state_dict())
    assert learner.core.algorithm.duals.steps == other.core.algorithm.duals.steps == planned


def test_a_task_shorter_than_its_dual_steps_plans_one_at_each_step(constant):
    learner, stream = constant([[2.0]], [5.0]).prepared(primal_steps=None, dual_steps=60)
    learner.begin(stream.tasks[1], 7)
    assert learner.core.algorithm.duals.steps == 7
    assert all(learner.core.pace.due(clock, 7) for clock in range(1, 8))


def moved_by(learner, losses):
    """One dual step for each of these losses of memory."""
    core = learner.core
    for loss in losses:
        core.observe(torch.tensor([0]), torch.tensor([5.0]), 1)
        core.measure(lambda x, loss=loss: torch.full((len(x), 1), loss))


def test_a_tolerance_out_of_reach_is_told_with_its_last_slack(constant):
    """The given loss is added to the stored one: slacks 1.5, 2.5, … 5.5 of task 0, and −5 of task 1."""
    learner, stream = constant([[0.0], [0.0]], [5.0], tolerance=[0.5, 50.0, 9.0], dual_lr=0.1).prepared(memory=9)
    learner.begin(stream.tasks[2], 5)
    moved_by(learner, [2.0, 3.0, 4.0, 5.0, 6.0])
    ended = learner.core.end(2, stream.tasks[2].data, learner.evaluated, 9)
    (missed,) = ended.out_of_reach
    assert (missed.task, missed.tolerance) == (0, 0.5)
    assert missed.slack == pytest.approx(5.5)
    assert missed.dual == pytest.approx(0.1 * (1.5 + 2.5 + 3.5 + 4.5 + 5.5)) == pytest.approx(ended.duals[0])


def test_nothing_is_out_of_reach_before_a_dual_step(constant):
    learner, stream = constant([[3.0]], [5.0]).prepared(memory=9)
    learner.begin(stream.tasks[1], 5)
    assert learner.core.end(1, stream.tasks[1].data, learner.evaluated, 9).out_of_reach == []


def test_the_artificial_dual_moves_by_the_rule_that_moves_the_others(constant):
    class Still(DualRule):
        def step(self, state, look):
            return state, state

    found = constant([[3.0]], [5.0], tolerance=0.5).by_core(dual=Still())
    assert found.core.progress.current_dual == 0.0
    assert found.core.report().decay == 0.0
    assert found.dual.tolist() == [0.0]


@pytest.mark.parametrize("level", ["task", "sample"])
def test_slacks_are_in_double_precision_whatever_networks_are_in(constant, level):
    learner, stream = constant([[3.0]], [5.0], tolerance=0.1).prepared(level=level)
    learner.begin(stream.tasks[1], 1)
    core = learner.core
    torch.set_default_dtype(torch.float32)
    found = core.algorithm.measure(lambda slots: torch.ones(len(slots), 2))
    assert found.told.item() == 1.0 - 0.1
    assert found.slacks.item() == 1.0 - (0.1 if level == "task" else 1.1 * 0.1)
