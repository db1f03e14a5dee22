"""The primal-dual learner does what the mathematics says it does."""

import itertools
import math

import pytest
import torch

import pdcl
from pdcl.algorithm.algorithm1 import Drawn
from pdcl.algorithm.rules import rule
from pdcl.errors import UsageError
from pdcl.learning.events import DualsMoved, Infeasible, Partitioned, ToleranceSet, Warned
from pdcl.learning.loop import Loop, Position
from pdcl.learning.schedule import Schedule
from pdcl.methods.pdcl import PDCL
from pdcl.methods.plain import Finetune
from pdcl.streams.catalog import load

# The paper's problem, by plain descent: no base weight, no drift, nothing held back.
PAPER = {
    "base": 0.0, "drift": 0.0, "guard": 0, "witness": 0, "optimizer": "sgd", "keep_optimizer": False, "lr": 0.1,
    "replay": 10,
}  # fmt: skip


def paper(network, **options):
    return PDCL(network, **{**PAPER, **options})


def synthetic(**options):
    return load("synthetic", **{"tasks": 3, "size": 60, "dim": 8, **options})


def learned(stream, epochs=2, batch=10, **options):
    """A learner that has been through the stream, with the events it spoke of."""
    events = []
    learner = paper("mlp:16", **{"memory": 30, "lr": 0.1, "tolerance": 0.05, **options})
    learner.prepare(stream.spec)
    history = Loop(learner, stream, Schedule(epochs, batch), events.append).run()
    return learner, history, events


def of_kind(events, kind):
    return [event for event in events if isinstance(event, kind)]


def weights_of(learner):
    return torch.cat([p.detach().flatten() for p in learner.model.parameters()])


@pytest.mark.parametrize("level", ["task", "sample"])
@pytest.mark.parametrize("drift", [0.0, 0.5])
@pytest.mark.parametrize("estimator", ["dual", "whole"])
def test_what_is_replayed_estimates_the_weighted_losses_without_bias(level, drift, estimator):
    """z-test of 1,500 draws against the full sum at fixed duals and weights; |z| < 4.2 fails once in 4·10⁴. `whole` is
    the sum itself."""
    stream = synthetic()
    learner = paper("mlp:16", memory=30, lr=0.1, tolerance=0.05, level=level, drift=drift, estimator=estimator)
    learner.prepare(stream.spec)
    Loop(learner, replaced(stream, 2), Schedule(1, 10)).run()
    learner.begin(stream.tasks[2], 10)
    core, slots = learner.core, torch.arange(len(learner.held))
    duals, random = core.algorithm.duals, torch.Generator().manual_seed(3)
    duals.values = torch.rand(duals.values.shape, generator=random, dtype=torch.float64) * 2
    core.algorithm.weigh()
    with torch.no_grad():
        values = core.replayed(learner.outputs(learner.held["x"]), Drawn(slots, torch.ones(len(slots)))).double()
    values = values * torch.linspace(1, 5, len(values))
    constraint = slots if level == "sample" else core.task_of
    exact = float((duals.values[constraint] * values / core.algorithm.constraints.tasks.counts[core.task_of]).sum())
    found = []
    for _ in range(1500):
        drawn = learner.core.draw(learner.replay)
        found.append(float((drawn.weights * values[drawn.slots]).sum()))
    sample = torch.tensor(found, dtype=torch.float64)
    assert abs(sample.mean() - exact) < 4.2 * sample.std() / math.sqrt(len(sample)) + 1e-6 * exact
    assert (sample.std() < 1e-12) == (estimator == "whole")


def replaced(stream, tasks):
    from dataclasses import replace

    return replace(stream, tasks=stream.tasks[:tasks])


def test_a_tolerance_that_never_binds_leaves_plain_training_to_the_bit():
    stream = synthetic()
    free, _, _ = learned(stream, tolerance=1e9)
    plain = Finetune("mlp:16", optimizer="sgd", keep_optimizer=False, lr=0.1)
    plain.prepare(stream.spec)
    Loop(plain, stream, Schedule(2, 10)).run()
    assert torch.equal(weights_of(free), weights_of(plain))
    assert free.final_duals()[:-1] == [0.0, 0.0]


def test_the_harder_past_task_gets_the_larger_dual_and_more_memory():
    stream = synthetic(separation=[1.5, 6.0, 6.0], size=200, tasks=3)
    shares, duals = [], []
    for seed in range(5):
        learner, history, _ = learned(stream, seed=seed, epochs=3, memory=60, tolerance=0.02)
        duals.append(learner.final_duals()[0] > learner.final_duals()[1])
        shares.append(history.partitions[-1][0] > history.partitions[-1][1])
    assert all(duals)
    assert all(shares)


def test_memory_is_full_exactly_and_divided_as_announced():
    learner, history, events = learned(synthetic())
    parts = of_kind(events, Partitioned)
    assert [sum(event.counts) for event in parts] == [30, 30, 30]
    assert [event.counts for event in parts] == history.partitions
    assert history.partitions[1][0] <= history.partitions[0][0]
    assert len(learner.held["id"].unique()) == 30


def test_duals_stay_with_their_samples_when_memory_is_refilled():
    stream = synthetic(tasks=3)
    learner = paper("mlp:16", memory=30, lr=0.1, tolerance=0.01, level="sample", selection="dual", dual_lr=0.5)
    learner.prepare(stream.spec)
    loop = Loop(learner, stream, Schedule(2, 10))
    seen = {}

    def note(loop):
        if loop.position.task == 2 and loop.position != Position(2):
            each = learner.core.algorithm.duals.values
            seen.update(zip(learner.held["id"].tolist(), each.tolist(), strict=True))

    loop.keep = note
    loop.run()
    held = dict(zip(learner.held["id"].tolist(), learner.held["dual"].tolist(), strict=True))
    kept = [i for i in held if i in seen]
    assert len(kept) > 5
    assert any(seen[i] > 0 for i in kept)
    assert [held[i] for i in kept] == pytest.approx([seen[i] for i in kept])


@pytest.mark.parametrize("partition", ["uniform", "affine", "generalization"])
@pytest.mark.parametrize(("level", "selection"), [("task", "uniform"), ("sample", "dual")])
def test_memory_is_divided_as_its_rule_says_of_the_duals_found(partition, level, selection):
    options = {"partition": partition, "selection": selection, "level": level, "dual_lr": 0.5, "tolerance": 0.01}
    learner, _, events = learned(synthetic(), **options)
    stored = []
    for event in of_kind(events, Partitioned):
        assert event.counts == rule("partition", partition).counts(event.duals, 30, [*stored, 60])
        stored = event.counts
    assert learner.held.counts(3) == stored
    assert min(learner.final_duals()) > 0


def test_classes_are_balanced_within_a_task_unless_told_otherwise():
    learner, _, _ = learned(synthetic(tasks=1), memory=20)
    assert torch.bincount(learner.held["y"]).tolist() == [10, 10]


def test_a_relative_tolerance_speaks_of_the_stored_samples_and_says_when_it_changes():
    learner, _, events = learned(synthetic(), tolerance="1.1x>=0.02", selection="dual", level="sample")
    memory = learner.held
    for task in range(3):
        mean = float(memory["reference"][memory["task"] == task].mean())
        assert learner.core.tolerances.values[task] == pytest.approx(max(1.1 * mean, 0.02), rel=1e-5)
    told = of_kind(events, ToleranceSet)
    assert {event.constrained for event in told} == {0, 1, 2}
    for event in told:
        assert (event.old is None) == (event.task == event.constrained)
        assert event.why


def test_an_unlucky_last_step_does_not_loosen_a_relative_tolerance():
    stream = synthetic(tasks=1)
    learner = paper("mlp:16", memory=20, lr=0.1, tolerance="1.1x>=0.0001")
    learner.prepare(stream.spec)
    loop = Loop(learner, stream, Schedule(8, 10))
    steady = []

    def spoil(loop):
        if loop.position == Position(0, 7, 6):
            steady.append(learner.core.progress.recent)
            with torch.no_grad():
                learner.model.head.weight.mul_(-3)

    loop.keep = spoil
    loop.run()
    assert learner.core.tolerances.values[0] < 3 * steady[0]


def test_a_tolerance_in_error_rate_is_measured_as_error_and_descends_on_loss():
    learner, _, events = learned(synthetic(), tolerance="10%", dual="ascent:lr=1", partition="uniform")
    moved = of_kind(events, DualsMoved)
    held = {1: 30, 2: 15}
    assert moved
    for event in moved:
        wrong = [(slack + 0.1) * held[event.task] for slack in event.slacks]
        assert wrong == pytest.approx([round(count) for count in wrong], abs=1e-6)
    assert learner.core.tolerances.values == [0.1] * 3


def test_a_tolerance_out_of_reach_is_reported_with_what_was_reached():
    stream = synthetic(tasks=2, separation=0.5, shared_classes=True, label_noise=0.4)
    _, _, events = learned(stream, tolerance=1e-4, epochs=4)
    found = of_kind(events, Infeasible)
    assert found
    assert found[0].slack > 0
    assert found[0].reached == pytest.approx(found[0].tolerance + found[0].slack)


def test_networks_with_batch_statistics_see_the_past_even_at_no_weight():
    stream = load("digits")
    learner = paper("cnn:4", memory=30, lr=0.05, tolerance=1e9)
    learner.prepare(stream.spec)
    Loop(learner, replaced(stream, 1), Schedule(1, 32)).run()
    learner.begin(stream.tasks[1], 4)
    drawn = learner.core.draw(learner.replay)
    assert len(drawn.slots) == learner.replay
    assert float(drawn.weights.abs().sum()) == 0


def test_bp_falls_back_to_even_shares_with_a_word_when_memory_is_small():
    _, history, events = learned(synthetic(), memory=12, partition="generalization")
    assert history.partitions[-1] == [4, 4, 4]
    assert any("divided evenly" in event.message for event in of_kind(events, Warned))


def test_the_newest_task_can_be_capped():
    _, capped, _ = learned(synthetic(), current_cap=0.6, tolerance=0.01)
    _, free, _ = learned(synthetic(), current_cap=0.0, tolerance=0.01)
    _, even, _ = learned(synthetic(), current_cap=1.0, tolerance=0.01)
    assert capped.partitions[-1][-1] == 6
    assert even.partitions[-1][-1] == 10
    assert free.partitions[-1][-1] > 10


def test_drift_beside_the_loss_keeps_outputs_nearer_to_what_they_were():
    held, _, _ = learned(synthetic(), epochs=4, dual_lr=0.5, drift=0.5)
    free, _, _ = learned(synthetic(), epochs=4, dual_lr=0.5, tolerance=1e9, drift=1e-12)

    def gap(learner):
        old = learner.held["task"] == 0
        now = learner.evaluated(learner.held["x"][old])
        return float((now - learner.held["outputs"][old]).square().mean())

    assert gap(held) < gap(free)


def test_regression_and_multilabel_streams_work():
    random = torch.Generator().manual_seed(0)
    x = torch.randn(120, 5, generator=random)
    slope = torch.randn(5, 2, generator=random)
    parts = [(x[:60], (x @ slope)[:60]), (x[60:] + 1, ((x + 1) @ slope)[60:])]
    regression = pdcl.from_tasks(parts, kind="regression")
    result = pdcl.run(regression, "pdcl", memory=20, epochs=8)
    assert result.accuracy["class_il"][-1][0] > -2.0
    labels = [(a, (b > 0).float()) for a, b in parts]
    multilabel = pdcl.from_tasks(labels, kind="multilabel")
    for name in ("pdcl-s", "er", "er-ring", "finetune", "joint"):
        options = {} if name in ("finetune", "joint") else {"memory": 20}
        found = pdcl.run(multilabel, name, epochs=8, **options)
        assert 0.7 < found.mean_accuracy <= 1.0


def test_any_loss_and_score_per_sample_can_be_learned():
    goal = pdcl.Objective(
        "absolute",
        lambda out, y: (out - y).abs().mean(1),
        lambda out, y: ((out - y).abs().amax(1) < 0.5).float(),
        lambda out, y: ((out - y).abs().amax(1) >= 0.5).float(),
    )
    random = torch.Generator().manual_seed(0)
    x = torch.randn(100, 4, generator=random)
    stream = pdcl.from_tasks([(x[:50], x[:50, :2]), (x[50:], x[50:, :2])], kind="regression")
    learner = paper("mlp:32", memory=20, lr=0.01, optimizer="adam", tolerance="20%", objective=goal)
    result = pdcl.run(stream, learner, epochs=30, batch=10)
    assert result.mean_accuracy > 0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": "tasks"}, "level='tasks' is unknown; choose one of task, sample"),
        ({"partition": "affine", "alpha": 1.5}, "alpha=1.5 must lie between 0 and 1"),
        ({"dual_lr": -1.0}, "dual_lr=-1.0 must not be negative"),
        ({"tolerance": -0.1}, "-0.1"),
        ({"dual_steps": 0}, "at least 1"),
        ({"replay": 0}, "replay=0 must lie between 1 and 65536"),
        ({"optimizer": "sdg"}, "choose one of sgd, adam, adamw"),
        ({"lr": 0.0}, "lr=0.0 must be positive"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options, words):
    with pytest.raises((UsageError, ValueError), match=words.replace("(", r"\(")):
        paper("mlp:8", **options)


def test_memory_below_the_number_of_tasks_is_refused_before_training():
    with pytest.raises(UsageError, match="memory=2 is smaller than the 3 tasks"):
        pdcl.run(synthetic(), "pdcl", memory=2)


def test_bytes_too_few_for_the_tasks_are_refused_when_they_are_known():
    with pytest.raises(UsageError, match="holds 2 samples, fewer than the 3 tasks so far"):
        learned(synthetic(), memory="150B")


@pytest.mark.parametrize(("samples", "asked", "done"), [(1150, 60, 60), (1190, 60, 60), (300, 60, 30), (600, 7, 7)])
def test_as_many_dual_steps_are_taken_as_asked_for(samples, asked, done):
    stream = synthetic(tasks=2, size=samples)
    _, _, events = learned(stream, epochs=1, batch=10, dual_steps=asked)
    steps = [event.step for event in of_kind(events, DualsMoved)]
    assert len(steps) == done
    gaps = {later - sooner for sooner, later in itertools.pairwise(steps)}
    assert max(gaps) - min(gaps) <= 1


def test_decay_relaxes_the_artificial_dual_too():
    """At κ = 5 every dual settles at s / κ: the newest task's must not take all of memory."""
    _, history, _ = learned(synthetic(), epochs=6, decay=5.0, dual_lr=0.1, tolerance=0.01)
    assert 0 < history.duals[-1][-1] < 0.2


@pytest.mark.parametrize("level", ["task", "sample"])
def test_what_if_moves_every_constraint_of_a_task_by_as_much_as_it_says(level):
    """The price line is −λγ: a sample's ε_i = 1.1 ε_k must move by γ, not by 1.1 γ."""
    learner, _, _ = learned(synthetic(tasks=2), level=level)
    learner.core.begin(60, 10)
    before = learner.core.algorithm.duals.limits.clone()
    learner.core.tolerances.loosen(1, 0.05)
    learner.core.begin(60, 10)
    moved = learner.core.algorithm.duals.limits - before
    tasks = learner.core.algorithm.constraints.sets.tasks.tolist()
    assert moved.tolist() == pytest.approx([0.05 * (k == 1) for k in tasks])
