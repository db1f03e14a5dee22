"""What the core saves is all that decides what follows: taken over in the middle of a task, it goes on to the bit."""

import pytest
import torch

from pdcl.algorithm.algorithm1 import Duals
from pdcl.algorithm.dual_rules import Ascent
from pdcl.learning.primal_dual import PrimalDual
from pdcl.learning.report import Report, Trace
from pdcl.storage.serialize import same

SETTINGS = [
    {},
    {"level": "sample", "selection": "dual", "slack_samples": 5},
    {"slack_samples": 5, "gain": 0.3, "estimator": "dual"},
    {"warm": True, "drift": 0.5, "estimator": "dual"},
]


def taken(learner, stream, steps, first=0):
    """Some steps on the newest task, with whatever the learner draws."""
    from pdcl.learning.batches import Batch

    task = stream.tasks[-1]
    x, y = task.data.fetch(torch.arange(len(task.data)))
    for step in range(first, first + steps):
        index = torch.tensor([step % len(x), (step + 1) % len(x)])
        learner.step(Batch(x[index], y[index], index, task.index))


def digest(learner):
    core = learner.core
    duals, progress = core.algorithm.duals, core.progress
    parts = [learner.model.weight.flatten(), duals.values, duals.state.flatten(), progress.shadow]
    numbers = torch.cat([part.detach().double() for part in parts])
    return numbers, progress.current_dual, progress.recent, progress.clock


@pytest.mark.parametrize("options", SETTINGS)
def test_a_core_taken_over_in_the_middle_of_a_task_goes_on_to_the_bit(problem, options):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(3, 6, 2, generator=generator, dtype=torch.float64)
    y = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    made = problem([(x[0], y[0]), (x[1], y[1])], (x[2], y[2]), 0.2, (0.1, 0.2), lr=0.05, dual_lr=0.3)
    options = {"primal_steps": 2, **options}
    one, stream = made.prepared(**options)
    other, _ = made.prepared(seed=3, **options)
    one.begin(stream.tasks[-1], 9)
    taken(one, stream, 9)
    one.end(stream.tasks[-1])

    again, _ = made.prepared(**options)
    again.begin(stream.tasks[-1], 9)
    taken(again, stream, 5)
    other.load_state_dict(again.state_dict())
    taken(other, stream, 4, first=5)
    other.end(stream.tasks[-1])
    equal(one, other)
    assert max(one.final_duals()[:-1]) > 0


def equal(one, other):
    assert torch.equal(digest(one)[0], digest(other)[0])
    assert digest(one)[1:] == digest(other)[1:]
    assert one.final_duals() == other.final_duals()
    assert one.core.tolerances.values == other.core.tolerances.values
    assert torch.equal(one.held["id"], other.held["id"])
    assert torch.equal(one.held["dual"], other.held["dual"])


@pytest.mark.parametrize("level", ["task", "sample"])
def test_neither_going_on_from_a_state_nor_the_core_it_was_taken_of_changes_it(constant, level):
    """Of the core alone: callers may hold one in memory and take it twice."""
    learner, stream = constant([[1.0, 2.0]], [3.0, 4.0], dual_lr=0.1).prepared(level=level, selection="dual")
    core = learner.core
    learner.begin(stream.tasks[1], 6)

    def step():
        core.observe(torch.tensor([0, 1]), torch.tensor([3.0, 4.0]), 2)
        core.measure(learner.evaluated)

    step()
    state, ends = core.state_dict(), []
    step()
    ends.append(core.state_dict())
    for _ in range(2):
        core.load_state_dict(state)
        step()
        ends.append(core.state_dict())
    assert float(ends[0]["method"]["shadow"].min()) > 0
    assert all(same(end, ends[0]) for end in ends)


def test_a_core_taken_over_between_tasks_starts_the_next_one_the_same(constant):
    made = constant([[1.0, 2.0]], [3.0, 4.0], tolerance="1.1x", dual_lr=0.1)
    one, stream = made.prepared(warm=True, memory=6)
    one.agree_on(1, "3x")
    other, _ = made.prepared(warm=True, memory=6, seed=4)
    one.begin(stream.tasks[1], 1)
    taken(one, stream, 1)
    one.end(stream.tasks[1])
    state = one.state_dict()
    assert [state[part] for part in ("duals", "running", "measure")] == [{}, {}, {}]
    other.load_state_dict(state)
    for learner in (one, other):
        learner.begin(stream.tasks[1], 1)
    assert torch.equal(one.core.algorithm.duals.values, other.core.algorithm.duals.values)
    assert one.core.algorithm.duals.values.max() > 0
    assert torch.equal(one.core.algorithm.duals.limits, other.core.algorithm.duals.limits)
    assert other.core.tolerances.of(1).factor == 3.0
    assert other.core.report().duals == one.core.report().duals


def test_a_report_tells_duals_tolerances_and_the_dual_steps_of_the_newest_task(constant):
    found = constant([[1.0, 3.0], [0.1]], [5.0], tolerance=[0.5, 0.4, 1.0], dual_lr=0.1, steps=2).by_learner(decay=0.0)
    report = found.learner.report()
    assert report.has_tolerances
    assert report.duals == pytest.approx([0.3, 0.0, 0.8])
    assert report.tolerances == [0.5, 0.4, 1.0]
    assert report.units == ["loss"] * 3
    assert report.trace.duals == [pytest.approx([0.15, 0.0]), pytest.approx([0.3, 0.0])]
    assert report.trace.slacks == [pytest.approx([1.5, -0.3])] * 2
    assert report.trace.tolerances == [0.5, 0.4]
    assert report.trace.counts == [2, 1]
    assert report.trace.units == ["loss"] * 2
    assert (report.no_price, report.decay) == (None, 0.0)


@pytest.mark.parametrize("level", ["task", "sample"])
def test_a_report_says_what_makes_a_dual_no_price(constant, level):
    made = constant([[1.0]], [5.0], tolerance=0.5)
    assert made.by_learner(decay=0.2, level=level).learner.report().decay == 0.2
    assert made.by_learner(drift=0.3, level=level).learner.report().no_price == (
        "0.3 × the drift of outputs stands beside the loss under it"
    )
    assert made.by_learner(level=level).learner.report().trace.tolerances == [0.5]


def test_loosening_moves_one_tolerance_for_the_next_task(constant):
    learner, stream = constant([[1.0], [2.0]], [5.0], tolerance=0.5).prepared()
    learner.core.tolerances.loosen(1, 0.25)
    learner.begin(stream.tasks[-1], 1)
    assert learner.core.algorithm.duals.limits.tolist() == [0.5, 0.75]


def test_duals_of_an_older_state_load_with_their_integral_and_unknown_slacks():
    duals = Duals(torch.zeros(0), torch.zeros(0), Ascent())
    old = {"tolerances": torch.ones(1, 2), "values": torch.full((1, 2), 3.0), "integral": torch.full((1, 2), 2.0)}
    duals.load_state_dict({**old, "slacks": torch.zeros(1, 1)})
    assert duals.limits.tolist() == [1.0, 1.0]
    assert duals.state.tolist() == [2.0, 2.0]
    assert duals.values.tolist() == [3.0, 3.0]
    assert duals.slacks.isnan().tolist() == [True, True]
    duals.load_state_dict({**old, "slacks": torch.full((1, 2), 0.5)})
    assert duals.slacks.tolist() == [0.5, 0.5]


def as_0_1_wrote_it(state):
    """Of the core: duals, the artificial one and smoothed slacks had a first dimension more, of size 1."""

    def deeper(duals):
        return {name: row[None] for name, row in duals.items() if name in ("tolerances", "values", "state", "slacks")}

    duals, running, smooth = state["duals"], state["running"], state["measure"]["smooth"]
    return {
        **state,
        "duals": {**duals, **deeper(duals)},
        "running": {**running, "artificial": deeper(running["artificial"])},
        "measure": {"smooth": None if smooth is None else smooth[None], "offered": []},
    }


@pytest.mark.parametrize("options", SETTINGS)
def test_a_state_that_0_1_wrote_in_the_middle_of_a_task_goes_on_to_the_bit(problem, options):
    generator = torch.Generator().manual_seed(2)
    x, y = torch.randn(3, 6, 2, generator=generator), torch.randn(3, 6, generator=generator)
    made = problem([(x[0], y[0]), (x[1], y[1])], (x[2], y[2]), 0.2, (0.1, 0.2), lr=0.05, dual_lr=0.3)
    options = {"primal_steps": 2, **options}
    one, stream = made.prepared(**options)
    other, _ = made.prepared(seed=3, **options)
    one.begin(stream.tasks[-1], 9)
    taken(one, stream, 5)
    state = one.state_dict()
    assert (state["measure"]["smooth"] is None) == ("slack_samples" not in options or options.get("level") == "sample")
    other.load_state_dict(as_0_1_wrote_it(state))
    for learner in (one, other):
        taken(learner, stream, 4, first=5)
        learner.end(stream.tasks[-1])
    equal(one, other)


def test_the_report_of_a_method_without_tolerances_claims_nothing():
    assert Report() == Report(False, [], [], [], Trace([], [], [], [], []), None, 0.0, {}, False)


def test_a_core_that_has_seen_nothing_replays_nothing_and_can_be_saved():
    core = PrimalDual(5)
    assert core.draw(3) is None
    assert core.weights(2, None) is None
    assert (core.report().duals, core.report().tolerances, core.report().trace) == ([], [], Trace())
    other = PrimalDual(5)
    other.load_state_dict(core.state_dict())
    assert other.algorithm.norm == core.algorithm.norm == 0
