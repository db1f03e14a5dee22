from __future__ import annotations

import pytest

from pdcl.lab.reports.story import Story
from pdcl.records import read_events, read_result

BEGAN = {"time": 0.0, "event": "run_began", "stream": "s", "method": "m", "tasks": 2, "epochs": 2, "seed": 0}
TASK = {"time": 1.0, "event": "task_began", "task": 0, "name": "a", "samples": 10, "steps": 10, "classes": ["a"]}


def told(*events):
    story = Story()
    for event in events:
        story.hear(event)
    return story


def test_a_story_agrees_with_the_result_of_its_run(real_runs):
    run = next(real_runs.glob("digits-pdcl-*-s0*"))
    story, result = told(*read_events(run)), read_result(run)
    assert [story.class_il[task] for task in sorted(story.class_il)] == result["accuracy"]["class_il"]
    assert [story.partitions[task] for task in sorted(story.partitions)] == result["partitions"]
    assert story.ended
    assert story.progress == 1.0
    assert story.bad == 0
    assert story.labels == [str(digit) for digit in range(10)]
    final = [column[-1] for column in story.as_json()["duals"]["past"]]
    assert final == pytest.approx(result["duals"][-1][:-1], rel=1e-3)


def test_half_of_one_of_two_tasks_is_a_quarter_and_three_times_that_is_left():
    story = told(BEGAN, TASK, {"time": 5.0, "event": "stepped", "task": 0, "epoch": 0, "step": 4, "loss": 1.0})
    assert story.progress == 0.25
    assert story.left == pytest.approx(15.0)


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        7,
        "text",
        {},
        {"event": None},
        {"event": "stepped"},
        {"event": "stepped", "task": 9, "epoch": 0, "step": 0, "loss": 1.0},
        {"event": "stepped", "task": "0", "epoch": 0, "step": 0, "loss": 1.0},
        {"event": "stepped", "task": 0, "epoch": 0, "step": 0, "loss": {"a": 1}},
        {"event": "stepped", "task": 0, "epoch": 1e308, "step": 0, "loss": 1.0},
        {"event": "duals_moved", "task": 0, "step": 0, "duals": "x", "slacks": [], "tolerances": [], "current": 0},
        {"event": "partitioned", "task": -1, "counts": [1], "capacity": 1},
        {"event": "evaluated", "task": 0, "class_il": 3, "task_il": []},
        {"event": "task_began", "task": 0, "name": "x", "samples": True, "steps": 1},
        {"event": "run_began", "tasks": None},
        {"event": "class__"},
    ],
)
def test_what_makes_no_sense_is_left_out_and_harms_nothing(event):
    story = told(BEGAN, TASK, event)
    assert len(story.chapters) == 1
    assert story.as_json()["loss"]["x"] == []


def test_a_loss_that_is_not_finite_is_a_gap():
    story = told(BEGAN, TASK, {"event": "stepped", "task": 0, "epoch": 0, "step": 0, "loss": float("nan")})
    assert story.as_json()["loss"]["y"] == [None]


def test_a_million_events_take_no_more_room_than_a_thousand():
    story = told(BEGAN, {**TASK, "steps": 10**6})
    for step in range(20_000):
        story.hear({"time": 1.0, "event": "stepped", "task": 0, "epoch": 0, "step": step, "loss": 1.0})
        story.hear({"time": 1.0, "event": "warned", "task": 0, "message": "again"})
    assert len(story.loss.kept()) <= 2 * story.points + 1
    assert len(story.notes) == 40


def test_a_resumed_task_is_told_once_and_failure_is_forgiven():
    story = told(BEGAN, TASK, {"event": "run_failed", "task": 0, "step": 3, "cause": "no memory left"})
    assert story.failed == "no memory left"
    story.hear(TASK)
    assert story.failed is None
    assert len(story.chapters) == 1
