"""min L_t + b Σ_k L_k s.t. limits: the base weight, limits by name and unit, and what answers to them."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
import torch

import pdcl
from pdcl.algorithm.dual_rules import Capped, Frozen, Look
from pdcl.algorithm.partition_rules import ByRoom, medians_of_others
from pdcl.errors import UsageError
from pdcl.learning.end_of_task import ToEnd, out_of_reach
from pdcl.learning.events import DualsMoved
from pdcl.learning.loop import Loop
from pdcl.learning.primal_dual import PrimalDual
from pdcl.learning.schedule import Schedule
from pdcl.streams.catalog import load
from pdcl.streams.data import TensorData


def taught(tasks: int = 3, **options: Any) -> tuple[pdcl.PDCL, list[Any]]:
    torch.set_default_dtype(torch.float32)
    stream = load("synthetic", tasks=tasks, size=120, dim=8)
    learner = pdcl.PDCL("mlp:16", **{"memory": 60, **options})
    learner.prepare(stream.spec)
    events: list[Any] = []
    Loop(learner, stream, Schedule(2, 20), events.append).run()
    return learner, events


@pytest.mark.parametrize("level", ["task", "sample"])
@pytest.mark.parametrize("estimator", ["dual", "whole"])
def test_replay_estimates_past_losses_weighed_by_base_and_dual(level: str, estimator: str) -> None:
    """z-test of 1,000 draws against Σ_k (b + λ_k) L_k; |z| < 4.2 fails once in 4·10⁴. `whole` is exact."""
    learner, _ = taught(tolerance=0.05, base=0.7, witness=0, level=level, estimator=estimator, dual="ascent")
    core = learner.core
    core.begin(10, 10)
    random = torch.Generator().manual_seed(3)
    core.algorithm.duals.values = torch.rand(core.algorithm.duals.values.shape, generator=random, dtype=torch.float64)
    core.algorithm.weigh()
    losses = torch.linspace(1, 5, len(learner.held), dtype=torch.float64)
    held = core.algorithm.constraints.tasks.counts[core.task_of]
    owner = torch.arange(len(learner.held)) if level == "sample" else core.task_of
    exact = float(((0.7 + core.algorithm.duals.values[owner]) * losses / held).sum())
    drawn = [core.draw(8) for _ in range(1000)]
    found = torch.tensor([float((each.weights.double() * losses[each.slots]).sum()) for each in drawn])
    assert abs(found.double().mean() - exact) < 4.2 * float(found.std()) / math.sqrt(1000) + 1e-5 * exact
    assert core.algorithm.norm == pytest.approx(float((0.7 + core.task_duals()).sum()))


def test_without_a_limit_there_are_no_duals_no_looks_and_nothing_held_back() -> None:
    learner, events = taught()
    assert learner.final_duals() == []
    assert learner.promises is None
    assert not [event for event in events if isinstance(event, DualsMoved)]
    assert int((learner.held["role"] != 0).sum()) == 0
    assert learner.core.algorithm.norm == pytest.approx(2.0), "both past tasks weigh b = 1 while the third is learned"


@pytest.mark.parametrize(("most", "weight"), [(4.0, 4.0), (2.0, 2.0), (None, 6.0)])
def test_all_past_tasks_together_weigh_at_most_so_much(most: float | None, weight: float) -> None:
    learner, _ = taught(tasks=7, memory=70, base_most=most)
    assert learner.core.algorithm.norm == pytest.approx(weight)


def test_after_many_tasks_a_new_one_is_still_learned_in_a_few_steps() -> None:
    """Digits, one class a task, some sixty steps each: with b = 1 for all past tasks the last ones are at 34 % when
    new, with at most 4 in all at 73 %. The margin leaves room for other draws."""
    torch.set_default_dtype(torch.float32)
    new = {}
    for most in (4.0, None):
        stream = load("digits", classes_per_task=1)
        learner = pdcl.PDCL("mlp:64", memory=100, base_most=most)
        learner.prepare(stream.spec)
        history = Loop(learner, stream, Schedule(4, 10)).run()
        new[most] = sum(row[task] for task, row in enumerate(history.class_il) if task >= 5) / 5
    assert new[4.0] > new[None] + 0.15, new


def test_frozen_duals_report_limits_and_pursue_none() -> None:
    learner, events = taught(tolerance="1%", dual="frozen", partition="uniform")
    assert not [event for event in events if isinstance(event, DualsMoved)]
    assert learner.promises is not None
    assert [row.task for row in learner.promises] == ["0", "1", "2"]
    state = torch.tensor([[0.5]])
    assert Frozen().step(state, Look(torch.ones(1, 1), torch.zeros(1, 1)))[1] is state


def test_limits_by_name_have_their_own_units_and_tasks_without_one_stay_unpriced() -> None:
    learner, events = taught(tolerance={"0": 1e-6, "1": "50%"}, witness=0, dual="ascent:lr=1", base=0.0)
    moved = [event for event in events if isinstance(event, DualsMoved) and event.task == 2]
    assert moved[0].tolerances[:2] == [1e-6, 0.5]
    assert learner.report().units == ["loss", "error", "loss"]
    held = learner.core.algorithm.constraints.tasks.counts[1]
    assert all(((event.slacks[1] + 0.5) * held) % 1 == pytest.approx(0, abs=1e-6) for event in moved)
    assert moved[-1].duals[0] > 0
    third, _ = taught(tasks=3, tolerance={"1": "50%"}, witness=0)
    third.core.begin(10, 10)
    assert math.isnan(third.core.algorithm.duals.limits[0])
    third.core.observe(torch.tensor([0]), torch.tensor([1.0]), 1)
    third.core.measure(third.evaluated)
    assert third.core.algorithm.duals.values[[0, 2]].tolist() == [0.0, 0.0]


def test_a_gain_answers_a_slack_and_ends_with_it() -> None:
    """λ = I + K_p z: beside the integral, and gone with the slack. One point over is z = 1 without noise."""
    rule = Capped(margin=0.0, gain=0.1, decay=0.0)
    state = rule.init(torch.tensor([0.5], dtype=torch.float64))
    for slack, z in ((0.01, 1.0), (0.05, 5.0), (0.0, 0.0), (-0.02, -2.0)):
        look = Look(torch.tensor([slack], dtype=torch.float64), torch.zeros(1, dtype=torch.float64), steps=30)
        plain, _ = Capped(margin=0.0, decay=0.0).step(state, look)
        state, duals = rule.step(state, look)
        assert torch.equal(state, plain)
        torch.testing.assert_close(duals, state + 0.1 * z)


def test_capped_duals_move_without_a_unit_and_never_past_their_cap() -> None:
    """By hand, A = 3: SE 0, slack 1 pt → z = 1; SE 1 pt, slack 0, margin 1 → z = 1/√2; slack 1 → z = 2, the most."""
    rule = Capped()
    look = Look(torch.tensor([0.01, 0.0, 1.0]), torch.tensor([0.0, 0.01, 0.0]), steps=60)
    _, duals = rule.step(torch.zeros(3), look)
    assert duals.tolist() == pytest.approx([3 / 120, 3 / 120 / math.sqrt(2), 2 * 3 / 120])
    state = torch.full((3,), 2.99)
    for _ in range(200):
        state, duals = rule.step(state, Look(torch.ones(3), torch.zeros(3), steps=1))
    assert duals.tolist() == [3.0] * 3
    _, fallen = rule.step(torch.full((1,), 0.01), Look(-torch.ones(1), torch.zeros(1), steps=1))
    assert fallen.tolist() == [0.0]


def test_capped_duals_settle_where_their_decay_outweighs_the_slack_and_visits_of_a_share_step_further() -> None:
    """Half a point over is z = .5, which κ I = I/4 equals at I = 2."""
    rule, over = Capped(), (torch.full((1,), 0.005), torch.zeros(1))
    state = rule.init(torch.zeros(1))
    for _ in range(1000):
        state, duals = rule.step(state, Look(*over, steps=10))
    assert duals.tolist() == pytest.approx([2.0])
    _, part = rule.step(torch.zeros(1), Look(*over, share=0.25, steps=10))
    assert part.tolist() == pytest.approx([4 * 0.5 * 3 / 20])
    _, fallen = rule.step(torch.ones(1), Look(-torch.ones(1), torch.zeros(1), steps=10))
    assert fallen.tolist() == pytest.approx([1 - (2 + 0.25) * 3 / 20]), "z = −2 at the least"


def test_memory_goes_by_the_room_that_limits_leave() -> None:
    rule, full = ByRoom(), [90] * 3
    assert rule.counts([0.05], 90, [90]) == [90]
    assert rule.counts([0.05, 0.05, 0.05], 90, full) == [30, 30, 30]
    assert rule.counts([-0.02, 0.35, 0.35], 90, full) == [60, 15, 15], "at most four places for one, whatever the rooms"
    assert rule.counts([0.0, 0.045, 0.045], 112, [112] * 3) == [72, 20, 20], "((4.5 + 5) / (0 + 5))² = 3.61"
    assert rule.counts([0.0, 0.04, 0.04], 90, full) == [30, 30, 30], "1.8 among three is below exp(.85 / √2) = 1.82"
    assert rule.counts([0.0] + [0.04] * 3, 100, [90] * 4) == [52, 16, 16, 16], "and beyond it among four: 3.24 to 1"
    assert rule.counts([0.05, 0.05, 0.45], 90, full) == [40, 40, 10], "two that are strict beside one that isn't"
    assert rule.counts([0.05] * 4 + [0.45], 90, [90] * 5) == [18] * 5, "a wide limit alone may be that of a hard task"
    assert ByRoom(soft=0.001).counts([0.001, 0.003, 0.003], 90, full) == [60, 15, 15]
    assert ByRoom(clear=0.0).counts([0.0, 0.02, 0.02], 79, full) == [39, 20, 20], "(7 / 5)² = 1.96"
    assert sum(rule.counts([0.03, 0.05, 0.02], 91, [20, 90, 90])) == 91


@pytest.mark.parametrize("count", range(2, 9))
def test_medians_of_others_are_those_without_each(count: int) -> None:
    values = torch.rand(count, generator=torch.Generator().manual_seed(count), dtype=torch.float64).numpy()
    values[-1] = values[0]
    others = [statistics.median([*values[:k], *values[k + 1 :]]) for k in range(count)]
    assert medians_of_others(values).tolist() == pytest.approx(others)


def test_a_room_needs_something_to_be_soft_about() -> None:
    with pytest.raises(UsageError, match=r"soft=0\.0 must be above 0"):
        ByRoom(soft=0.0)


@pytest.mark.parametrize(
    ("limits", "partition"), [(None, "uniform"), (0.1, "affine"), ("5%", "room"), ("+2pt", "room:power=1.0")]
)
def test_the_unit_of_limits_chooses_the_partition(limits: Any, partition: str) -> None:
    assert pdcl.PDCL.settled({"tolerance": limits})["partition"] == partition


def test_a_limit_out_of_reach_is_told_when_its_dual_is_at_the_cap() -> None:
    core = PrimalDual(10, "1%")
    core.tolerances.values = [0.01]
    core.begin(10, 8)
    core.progress.history = [torch.tensor([3.0])] * 8
    core.progress.slacks = [torch.tensor([0.2])] * 8
    assert [each.task for each in out_of_reach(core)] == [0]
    core.progress.slacks = [torch.tensor([-0.2])] * 8
    assert out_of_reach(core) == []


def room(core: PrimalDual, task: int) -> float:
    """What the partition takes a limit to leave to a task that had an error of 1 %."""
    nothing = TensorData(torch.zeros(0, 1), torch.zeros(0))
    return ToEnd(core, "new", nothing, lambda x: x, 0)._room(task, 0.01)


def test_a_limit_leaves_five_points_more_room_than_it_says_and_none_at_all_leaves_fifteen() -> None:
    assert room(PrimalDual(10, "5%"), 0) == pytest.approx(0.04 + 0.05)
    assert room(PrimalDual(10, "+5pt"), 0) == pytest.approx(0.05 + 0.05)
    assert room(PrimalDual(10, 0.5), 0) == pytest.approx(0.15), "a loss says nothing of errors"
    some = PrimalDual(10, {"legacy": "+1pt"})
    some.tolerances.names = ["legacy", "other"]
    assert room(some, 0) < room(some, 1), "a task without a limit is no stricter than one with"


@pytest.mark.parametrize(
    ("limits", "power"), [("5%", 2.0), ("+2pt", 1.0), ({"a": "5%", "b": "+1pt"}, 1.0), ({"plan=gold": "+1pt"}, 1.0)]
)
def test_shares_follow_errors_by_their_square_and_rises_as_they_are(limits: Any, power: float) -> None:
    """One task may rise by 1 point, three by 10: (10 + 10) / (1 + 10) = 1.82 places for one."""
    learner = pdcl.PDCL("linear", memory=100, tolerance=limits)
    partition = learner.new_core(100).partition
    assert learner.rules["partition"] == partition == ByRoom(power=power)
    rooms = [0.01 + 0.05] + [0.10 + 0.05] * 3
    counts = partition.counts(rooms, 482, [482] * 4)
    assert counts == ([182, 100, 100, 100] if power == 1 else [253, 77, 76, 76])


@pytest.mark.parametrize(("limit", "power"), [("5%", 2.0), ("+2pt", 1.0)])
def test_a_run_settles_its_options_and_divides_memory_by_the_same_rule(limit: str, power: float) -> None:
    torch.set_default_dtype(torch.float32)
    run = pdcl.run("synthetic", "pdcl", memory=100, tolerance=limit, epochs=1, batch=50, network="linear")
    assert run.learner.core.partition == ByRoom(power=power)
