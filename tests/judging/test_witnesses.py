"""Which samples a row is judged on, and what it says of them, from a memory that is written by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from pdcl.judging import replayed
from pdcl.judging.witnesses import (
    Newest,
    about_newest,
    about_segments,
    after_task,
    goal_of_newest,
    look_at_witnesses,
    why_none,
)
from pdcl.limits.limit import Limit
from pdcl.limits.limits import as_limits
from pdcl.limits.tolerances import Tolerances
from pdcl.objective import OBJECTIVES
from pdcl.past.held_back import GUARD, REPLAY, WITNESS
from pdcl.past.registry import Registry
from pdcl.past.segments import Segments
from pdcl.past.store import Memory
from pdcl.past.stored import Reached, StoredSamples


def held(
    role: list[int], task: list[int], *, loss: float = 0.1, codes: list[int] | None = None, limits: Any = None,
    goal: str = "classification",
) -> StoredSamples:  # fmt: skip
    """A past of two classes, both inputs being the scores of class 0: one sample per role."""
    n, memory = len(role), Memory(100)
    y = torch.zeros(n, 1) if goal == "regression" else torch.zeros(n, dtype=torch.long)
    columns = {"x": torch.tensor([[1.0, 0.0]] * n) if goal != "regression" else torch.ones(n, 1), "y": y}
    columns |= {"task": torch.tensor(task), "id": torch.arange(n), "role": torch.tensor(role, dtype=torch.uint8)}
    columns |= {"dual": torch.zeros(n), "reference": torch.full((n,), loss), "wrong": torch.zeros(n)}
    if codes is not None:
        columns["codes"] = torch.tensor(codes, dtype=torch.int16)[:, None]
    memory.append(**columns)
    segments = Segments(as_limits(limits).segments) if limits else None
    return StoredSamples(memory, OBJECTIVES[goal], torch.device("cpu"), segments=segments)


def registry(*samples: int) -> Registry:
    found = Registry()
    for task, count in enumerate(samples):
        found.register_task(task, torch.zeros(count, dtype=torch.long), None, trained=True)
    return found


def test_a_task_is_judged_on_its_witnesses_and_on_its_guards_where_it_has_none() -> None:
    past = held([GUARD, WITNESS, REPLAY, WITNESS, GUARD, GUARD], [0, 0, 0, 0, 2, 2])
    seen = look_at_witnesses(past, registry(10, 10, 10), lambda x: x)
    first, second, third = seen.by_task(3)
    assert [len(each.tasks) for each in (first, second, third)] == [2, 0, 2]
    assert (bool(first.steered.any()), bool(third.steered.all())) == (False, True)
    assert (first.split(), second.split()) == ((0.0, 0.0), None)
    # Whoever reads the row must know that these samples steered.
    goal = Limit("5%", value=0.05)
    assert [about_newest("a", goal, True, each).steered for each in (first, third)] == [False, True]


@pytest.mark.parametrize(("most", "each"), [(512, 3), (8, 2), (3, 1)])
def test_of_each_task_an_even_share_of_what_is_replayed_is_looked_at_and_at_least_one(
    most: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four tasks with three replayed samples and a guard each; of one more nothing is replayed."""
    monkeypatch.setattr(replayed, "LOOK_AT", most)
    past = held([REPLAY, GUARD, REPLAY, REPLAY] * 4 + [GUARD], [k for k in range(4) for _ in range(4)] + [4])
    found = replayed.look_at_replayed(past, [0, 1, 2, 3], lambda x: 1 - x)
    assert {k: wrong.tolist() for k, wrong in found.items()} == {k: [1.0] * each for k in range(4)}
    assert replayed.look_at_replayed(past, [4], lambda x: x) == {}


def test_a_segment_has_come_once_one_stored_sample_is_in_it() -> None:
    past = held([WITNESS, WITNESS, REPLAY], [0, 0, 0], codes=[1, 0, 0], limits={"plan=old": "5%", "plan=new": "5%"})
    known = registry(30, 30)
    old, new = about_segments(past, known, 1, look_at_witnesses(past, known, lambda x: x), 0.1)
    assert (old.come, len(old.now)) == (True, 1)
    assert (new.come, len(new.now)) == (False, 0)


def test_a_segment_is_judged_on_witnesses_of_past_tasks_and_on_guards_where_it_has_none() -> None:
    """Of "old" a guard and a witness are stored, of "new" a guard; a witness of the newest task has nothing to keep."""
    past = held(
        [GUARD, WITNESS, GUARD, REPLAY, WITNESS], [0, 0, 0, 0, 1], codes=[1, 1, 2, 1, 1],
        limits={"plan=old": "5%", "plan=new": "5%"},
    )  # fmt: skip
    known = registry(30, 30)
    old, new = about_segments(past, known, 1, look_at_witnesses(past, known, lambda x: x), 0.1)
    assert (len(old.now), old.steered) == (1, False)
    assert (len(new.now), new.steered) == (1, True)


def test_a_segment_has_no_witnesses_for_good_only_where_every_past_task_is_too_small_for_some() -> None:
    past = held([REPLAY], [0], codes=[1], limits={"plan=old": "5%"})
    for samples, said in (((9, 9, 90), True), ((9, 90, 9), False), ((90, 90, 90), False)):
        known = registry(*samples)
        (row,) = about_segments(past, known, 2, look_at_witnesses(past, known, lambda x: x), 0.1)
        assert bool(row.why_none) == said


def test_a_multiple_of_a_loss_is_judged_at_the_scale_of_the_loss_when_it_was_learned() -> None:
    past = held([REPLAY] * 4 + [WITNESS] * 9, [0] * 13, loss=40.0, goal="regression")
    limits = Tolerances("1.5x")
    limits.names, limits.values = ["a", "b"], [60.0, 60.0]
    newest = Newest(Reached(1.0, float("nan")), [4])
    row = after_task(past, limits, registry(100, 100), newest, lambda x: x)[0]
    assert row.clip == pytest.approx(10 * 1.5 * 40.0)


@pytest.mark.parametrize(("passes", "advice"), [(2.0, "fewer epochs or the method exact"), (1.5, "the method exact")])
def test_fewer_epochs_are_advised_where_there_was_more_than_one_and_stored_samples_are_learned_by_heart(
    passes: float, advice: str
) -> None:
    past = held([REPLAY] * 50 + [WITNESS] * 40, [0] * 90)
    past.memory["x"][50:] = torch.tensor([0.0, 1.0])
    limits = Tolerances("5%")
    limits.names, limits.values = ["a", "b"], [0.05, 0.05]
    newest = Newest(Reached(0.1, 0.0), [50], passes=passes)
    row = after_task(past, limits, registry(400, 400), newest, lambda x: x)[0]
    assert (row.verdict, row.stored) == ("BROKEN", 0.0)
    assert advice in row.advice


@pytest.mark.parametrize("open_ended", [True, False])
def test_a_limit_of_a_name_that_no_task_has_is_a_row_where_nobody_knows_which_tasks_will_come(open_ended: bool) -> None:
    limits = Tolerances({"a": "5%", "misspelled": "5%"})
    limits.names, limits.values = ["a", "b"], [0.05, math.nan]
    newest = Newest(Reached(0.1, 0.0), [1], open_ended=open_ended)
    table = after_task(held([WITNESS, REPLAY], [0, 0]), limits, registry(40, 40), newest, lambda x: x)
    assert [row.task for row in table] == ["a", *["misspelled"] * open_ended, "b"]
    assert [row.samples for row in table] == [1, *[0] * open_ended, 0]
    assert (table[1].verdict == "no samples yet") == open_ended


@pytest.mark.parametrize(
    ("reached", "before", "classes", "expected"),
    [
        (0.05, [], 10, (0.9 + 0.05) / 2),
        (0.6, [], 10, (0.9 + 0.45) / 2),
        (0.6, [0.1, 0.2, 0.9], 10, (0.9 + 0.2) / 2),
        (0.6, [math.nan, 0.7], 10, (0.9 + 0.6) / 2),
        (1.0, [1.0], 10, (0.9 + 0.81) / 2),
        (0.1, [], 1, (0.5 + 0.1) / 2),
        (math.nan, [0.1], 10, None),
    ],
)
def test_a_new_task_must_come_half_way_from_chance_to_what_can_be_attained(
    reached: float, before: list[float], classes: int, expected: float | None
) -> None:
    """Its own training error, but no more than past tasks had (half of chance, where none is), or .9 of chance."""
    goal, stated = goal_of_newest(Tolerances(None), Reached(0.1, reached), before, classes)
    assert not stated
    assert (None if goal is None else goal.value) == (None if expected is None else pytest.approx(expected))
    assert goal_of_newest(Tolerances({"new": "30%"}), Reached(0.1, reached), before, classes)[1]


def test_why_a_task_can_have_no_witnesses_names_its_smallest_group() -> None:
    pairs = Registry()
    pairs.register_task(0, torch.zeros(16, dtype=torch.long), torch.arange(16) // 2, trained=True)
    assert why_none(pairs, 0).endswith("16 samples may be held back, and the smallest of its groups has 2")
    assert why_none(registry(9), 0).endswith("its 9 samples may be held back, and that is none")
    assert why_none(registry(10), 0) == ""


def test_limits_of_names_that_no_task_has_wait() -> None:
    limits = Tolerances({"fire": "5%", "hail": "5%", "*": "10%"})
    limits.names = ["fire"]
    assert [name for name, _ in limits.waiting()] == ["hail"]
