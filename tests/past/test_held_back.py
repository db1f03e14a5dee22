"""Guards and witnesses: drawn before a task is learned, never trained on while they are held back, within the bound."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import pdcl
from pdcl.learning.events import Warned
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule
from pdcl.past.held_back import GUARD, REPLAY, WITNESS, Counts, allowed, hold_back, surviving
from pdcl.streams.catalog import load


@pytest.fixture(autouse=True)
def single() -> Any:
    """These learn as users' networks do."""
    torch.set_default_dtype(torch.float32)


def taught(tasks: int = 3, watch: Any = None, listener: Any = None, **options: Any) -> pdcl.PDCL:
    stream = load("synthetic", tasks=tasks, size=200, dim=8)
    learner = pdcl.PDCL("mlp:16", **{"memory": 80, "tolerance": "+5pt", "guard": 4, "witness": 6, **options})
    learner.prepare(stream.spec)
    if watch is not None:
        watch(learner)
    Loop(learner, stream, Schedule(2, 20), *([] if listener is None else [listener])).run()
    return learner


def of_role(learner: pdcl.PDCL, role: int, task: int) -> torch.Tensor:
    here = (learner.held["role"] == role) & (learner.held["task"] == task)
    return learner.held["id"][here]


def test_no_step_ever_trains_on_a_guard_or_a_witness() -> None:
    trained: set[int] = set()

    def watch(learner: pdcl.PDCL) -> None:
        step, draw = learner.step, learner.core.draw

        def stepping(batch: Any) -> Any:
            positions = learner._whole.data.rows if learner.core.aside is None else learner.core.aside.trained
            trained.update((positions[batch.index] + learner.samples_seen).tolist())
            return step(batch)

        def drawing(m: int) -> Any:
            drawn = draw(m)
            if drawn is not None:
                trained.update(learner.held.read("id", drawn.slots).tolist())
            return drawn

        learner.step, learner.core.draw = stepping, drawing  # type: ignore[method-assign]

    learner = taught(watch=watch)
    aside = learner.held["id"][learner.held["role"] != REPLAY].tolist()
    assert len(aside) == 3 * 10
    assert len(trained) > 400
    assert not trained & {*aside}


def test_they_count_within_the_bound_as_many_as_stated() -> None:
    learner = taught()
    assert len(learner.held) == 80
    for task in range(3):
        assert len(of_role(learner, GUARD, task)) == 4
        assert len(of_role(learner, WITNESS, task)) == 6


def test_they_stay_what_they_are_with_what_they_were_at_the_reference() -> None:
    seen = {}

    def watch(learner: pdcl.PDCL) -> None:
        end = learner.end

        def ending(task: Any) -> None:
            end(task)
            held = learner.held
            now = zip(held["id"].tolist(), held["role"].tolist(), held["wrong"].tolist(), strict=True)
            for sample, role, wrong in now:
                if role != REPLAY:
                    assert seen.setdefault(sample, (role, wrong)) == (role, wrong)

        learner.end = ending  # type: ignore[method-assign]

    taught(watch=watch)
    assert len(seen) == 30


def test_the_same_seed_holds_the_same_samples_back_and_another_others() -> None:
    one, two, other = taught(), taught(), taught(seed=1)
    assert torch.equal(of_role(one, WITNESS, 0), of_role(two, WITNESS, 0))
    assert not torch.equal(of_role(one, WITNESS, 0), of_role(other, WITNESS, 0))


def test_groups_are_on_one_side_only() -> None:
    groups = torch.arange(200) // 5
    found = hold_back(200, Counts(10, 15), torch.Generator().manual_seed(0), groups)
    sides = [set(groups[side].tolist()) for side in (found.trained, found.guards, found.witnesses)]
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]
    assert (len(found.guards), len(found.witnesses)) == (10, 15)
    assert sum(map(len, (found.trained, found.guards, found.witnesses))) == 200


def test_every_sample_is_as_likely_to_be_a_witness() -> None:
    """2,000 draws of 5 of 50: each count is binomial; χ² with 49 degrees of freedom is above 100 once in 2·10⁵."""
    random = torch.Generator().manual_seed(1)
    drawn = torch.cat([hold_back(50, Counts(0, 5), random).witnesses for _ in range(2000)])
    counts = torch.bincount(drawn, minlength=50).double()
    spread = ((counts - 200).square() / (200 * 0.9 * 50 / 49)).sum()
    assert 15 < float(spread) < 100


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((None, None, False, 800, 2), Counts(0, 0)),
        ((None, None, True, 199, 2), Counts(0, 0)),
        ((None, 5, True, 199, 2), Counts(0, 5)),
        ((None, None, True, 800, 2), Counts(0, 50)),
        ((None, None, True, 200, 5), Counts(0, 5)),
        ((None, None, True, 200, 6), Counts(0, 0)),
        ((None, 4, True, 200, 6), Counts(0, 4)),
        ((None, None, True, 770, 7, 77), Counts(0, 13)),
        ((None, None, True, 769, 7, 77), Counts(0, 0)),
        ((None, 4, True, 769, 7, 77), Counts(0, 4)),
        ((None, None, True, 1600, 2), Counts(0, 100)),
        ((30, None, True, 1600, 2), Counts(30, 50)),
        ((5, 20, True, 800, 4), Counts(5, 20)),
        ((100, 100, True, 800, 4), Counts(50, 50)),
        ((100, 0, True, 800, 4), Counts(100, 0)),
        ((0, 0, True, 800, 4), Counts(0, 0)),
    ],
)
def test_an_eighth_is_held_back_where_a_limit_is_stated_and_never_more_than_half(options: Any, expected: Any) -> None:
    assert allowed(*options) == expected


def test_at_most_a_tenth_of_a_small_task_is_held_back() -> None:
    found = hold_back(30, Counts(20, 20), torch.Generator().manual_seed(0))
    assert (len(found.guards), len(found.witnesses), len(found.trained)) == (3, 3, 24)


@pytest.mark.parametrize(
    ("wanted", "samples", "expected"),
    [
        (Counts(30, 30), 100, (10, 10)),
        (Counts(30, 30, least_guards=20), 100, (20, 10)),
        (Counts(30, 30, least_guards=20), 40, (10, 4)),
        (Counts(12, 2, least_guards=20), 100, (12, 2)),
        (Counts(30, 30, least_guards=20), 400, (30, 30)),
    ],
)
def test_guards_that_are_needed_may_be_a_quarter_of_a_small_task(wanted: Counts, samples: int, expected: Any) -> None:
    assert wanted.within(samples) == expected


def test_guards_steer_in_place_of_stored_samples() -> None:
    learner = taught(tasks=2)
    learner.core.begin(10, 10)
    guards = (learner.held["role"] == GUARD).nonzero().flatten()
    assert learner.core.algorithm.constraints.measured_on.members.sort().values.tolist() == guards.tolist()
    free = taught(tasks=2, guard=0)
    free.core.begin(10, 10)
    assert free.core.algorithm.constraints.measured_on is free.core.algorithm.constraints.tasks


def test_survivors_of_grouped_witnesses_are_a_random_choice_of_groups() -> None:
    """Held back group by group in random order: the first five are one group, and over 400 draws any of the 20."""
    groups, random = torch.arange(100) // 5, torch.Generator().manual_seed(2)
    first = [groups[hold_back(100, Counts(0, 10), random, groups).witnesses[:5]] for _ in range(400)]
    assert all(len(each.unique()) == 1 for each in first)
    counts = torch.bincount(torch.stack(first)[:, 0], minlength=20)
    assert int(counts.min()) > 4, "mean 20: below 5 once in 4·10⁴ for any of them"


def test_what_groups_are_called_decides_nothing() -> None:
    groups = torch.arange(100) // 5
    names = torch.randperm(20, generator=torch.Generator().manual_seed(3))[groups] * 10**15
    one, other = (hold_back(100, Counts(5, 10), torch.Generator().manual_seed(0), each) for each in (groups, names))
    assert torch.equal(one.witnesses, other.witnesses)
    assert torch.equal(one.guards, other.guards)


def test_the_first_of_every_task_survive_in_their_order() -> None:
    given = torch.Generator().manual_seed(0)
    role, task = torch.randint(0, 3, (60,), generator=given), torch.randint(0, 5, (60,), generator=given)
    for each in (0, 2, 100):
        own = [[i for i in range(60) if role[i] == GUARD and task[i] == k] for k in range(6)]
        assert surviving(role, task, GUARD, 6, each).tolist() == [slot for slots in own for slot in slots[:each]]


def test_rows_say_how_many_errors_went_to_classes_that_came_later() -> None:
    stream = load("digits")
    learner = pdcl.PDCL("mlp:16", memory=400, tolerance="+5pt", guard=4, witness=20, base=0.0, dual="frozen")
    learner.prepare(stream.spec)
    Loop(learner, stream, Schedule(3, 20)).run()
    held, first, parts = learner.held, learner.core.registry.first_seen, list[float]()
    assert learner.promises is not None
    for k, row in enumerate(learner.promises.rows[:-1]):
        own = (held["role"] == WITNESS) & (held["task"] == k)
        said = learner.evaluated(held["x"][own]).argmax(1)
        known = [int(label) for label, task in first.items() if task <= k]
        forgotten = (said != held["y"][own]) & (held["wrong"][own] < 0.5)
        new = ~torch.isin(said, torch.tensor(known))
        parts.append(float((forgotten & new).double().mean()))
        assert row.taken_by_new == pytest.approx(parts[-1])
        assert row.within == pytest.approx(float((forgotten & ~new).double().mean()))
    assert sum(parts) > 0


def test_what_a_new_task_leaves_no_place_for_is_replayed_and_never_a_witness_again() -> None:
    """An eighth of 200: 25 for one task, 12 each for two, 5 for five; with six tasks fewer than five each: none."""
    seen: list[list[int]] = []
    replayed: list[set[int]] = []

    def watch(learner: pdcl.PDCL) -> None:
        end = learner.end

        def ending(task: Any) -> None:
            end(task)
            seen.append(of_role(learner, WITNESS, 0).tolist())
            replayed.append({*of_role(learner, REPLAY, 0).tolist()})

        learner.end = ending  # type: ignore[method-assign]

    learner = taught(tasks=6, watch=watch, memory=200, guard=None, witness=None)
    assert [len(each) for each in seen] == [20, 12, 8, 6, 5, 0], "a task of 200 gives up a tenth at most"
    assert replayed[1] & {*seen[0]}
    assert replayed[1] & {*seen[0]} <= {*seen[0]} - {*seen[1]}
    assert replayed[5] & {*seen[4]}
    assert {*seen[0]} > {*seen[1]} > {*seen[2]}
    assert not (learner.held["role"] != REPLAY).any()
    assert len(learner.held) == 200


def test_a_group_that_has_witnesses_left_gives_none_to_replay() -> None:
    x, y = torch.randn(400, 4), torch.arange(400) % 2
    groups = torch.arange(400) // 5
    learner = pdcl.PDCL("mlp:8", memory=80, tolerance="+5pt", guard=0, witness=38)
    for task in range(3):
        learner.learn(x, y + 2 * task, name=str(task), groups=groups.numpy(), epochs=1)
    held = learner.held
    aside = held["role"] == WITNESS
    assert aside.any()
    for task in range(3):
        here = held["task"] == task
        kinds = [{*held["group"][here & kind].tolist()} for kind in (aside, ~aside)]
        assert not kinds[0] & kinds[1]


@pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")
def test_many_classes_for_a_memory_leave_no_place_for_witnesses() -> None:
    """200 places are ten for each of 20 classes: two tasks of ten have witnesses, and with a third there are none."""
    x, counts = torch.randn(400, 4), []
    learner = pdcl.PDCL("mlp:8", memory=200, tolerance="+5pt")
    for task in range(3):
        learner.learn(x, torch.arange(400) % 10 + 10 * task, name=str(task), epochs=1)
        counts.append(int((learner.held["role"] == WITNESS).sum()))
    assert counts == [25, 24, 0]


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"witness": 500}, "witness=500: 20 were set aside; at most a tenth of a task's samples (200 here)"),
        ({"witness": 15, "memory": 20}, "witness=15: 10 were set aside"),
        ({"guard": 30, "witness": 6}, "guard=30: 20 were set aside; at most"),
        ({"guard": 4, "witness": 6}, None),
        ({"guard": None, "witness": None}, None),
    ],
)
def test_fewer_samples_set_aside_than_somebody_stated_are_told(stated, said) -> None:
    told: list[Any] = []
    taught(tasks=1, listener=told.append, **{"guard": 0, "memory": 400, **stated})
    found = [event.message for event in told if isinstance(event, Warned) and "set aside" in event.message]
    assert [text.startswith(said) for text in found] == ([] if said is None else [True])
