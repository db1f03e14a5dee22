from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from pdcl.cli.display import Display, picture
from pdcl.cli.progress import Progress
from pdcl.learning.events import (
    DualsMoved,
    Evaluated,
    Event,
    Infeasible,
    RunBegan,
    RunEnded,
    Stepped,
    TaskBegan,
    ToleranceSet,
    Warned,
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def progress() -> Progress:
    return Progress(clock=Clock())


def tell(progress: Progress, *events: Event | float) -> None:
    """Events in order; a number lets that many seconds pass."""
    for event in events:
        if isinstance(event, float):
            progress.clock.now += event
        else:
            progress.hear(event)


def drawn(progress: Progress, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(picture(progress))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def told(*events: Event, terminal: bool = False) -> str:
    console = Console(file=io.StringIO(), width=80, force_terminal=terminal, color_system=None, _environ={})
    with Display(console) as display:
        display.progress = Progress(clock=Clock())
        for event in events:
            display.listener(event)
    return console.file.getvalue()


BEGAN = RunBegan("digits", "pdcl", tasks=4, epochs=2, seed=0)
FIRST = TaskBegan(0, "a", samples=200, steps=40, classes=["0", "1"])
SECOND = TaskBegan(1, "b", samples=400, steps=80, classes=["2", "3"])


def test_a_small_tolerance_is_never_shown_as_zero():
    text = told(BEGAN, FIRST, SECOND, Infeasible(1, 0, dual=1.5, slack=0.02, tolerance=0.0002, reached=0.0202))
    assert "tolerance 0.0002 of task 1 (0, 1) not met: 0.020" in text


def test_speed_and_time_left_follow_from_the_steps(progress):
    tell(progress, BEGAN, FIRST, 2.0, Stepped(0, epoch=0, step=9, loss=1.0))
    assert progress.done == 10
    assert progress.rate == pytest.approx(5)
    assert progress.rate * progress.batch == pytest.approx(50)
    # 30 steps of this task and 3 more tasks of 40, at 10 steps in 2 s.
    assert progress.left == pytest.approx((30 + 120) / 5)
    tell(progress, 6.0, Stepped(0, epoch=1, step=19, loss=0.5), SECOND, 4.0, Stepped(1, epoch=0, step=19, loss=0.9))
    assert progress.done == 20
    # 60 steps of this task and 2 more of (40 + 80) / 2, at 60 steps in 12 s.
    assert progress.left == pytest.approx((60 + 120) / 5)


def test_past_tasks_show_their_room_or_how_far_they_are_over(progress):
    tell(progress, BEGAN, FIRST, SECOND, 24.0, TaskBegan(2, "c", 100, 20))
    tell(progress, ToleranceSet(2, 0, None, 0.1, "error rate", "x"))
    tell(progress, 1.0, Stepped(2, 0, 4, 0.25), DualsMoved(2, 5, [0.31, 1.42], [-0.012, 0.034], [0.1, 0.2], 0.5))
    lines = drawn(progress)
    assert lines[0].startswith("task 3/4  c ")
    assert lines[0].endswith("0:00:12 left")
    assert lines[1] == "loss 0.250 · 5 steps/s · 50 samples/s"
    assert lines[2].split() == ["past", "task", "tolerance", "(error", "rate)", "λ"]
    assert lines[3].split() == ["1", "0,", "1", "0.100", "room", "0.012", "0.310"]
    assert lines[4].split() == ["2", "2,", "3", "0.200", "over", "by", "0.034", "1.420"]


def test_two_hundred_past_tasks_and_long_names_fit_the_screen(progress):
    tell(progress, RunBegan("long", "pdcl", 201, 1, 0))
    for task in range(201):
        tell(
            progress,
            TaskBegan(task, "t", 10, 5, ["[bold]antidisestablishmentarianism", "floccinaucinihilipilification"]),
        )
    slacks = [-task / 1000 for task in range(200)]
    tell(progress, 1.0, Stepped(200, 0, 3, 123.456), DualsMoved(200, 1, [9.0] * 200, slacks, [1.0] * 200, 0))
    lines = drawn(progress)
    assert len(lines) == 12
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "and 192 with more room"
    assert [line.split()[0] for line in lines[3:-1]] == [str(task) for task in range(1, 9)]
    assert "[bold]anti" in lines[0]


def test_nothing_is_known_before_the_first_event_and_that_is_fine(progress):
    assert drawn(progress)[0].startswith("task 1 ")
    assert (progress.rate, progress.left) == (None, None)


def test_a_resumed_run_starts_in_the_middle_of_a_task(progress):
    tell(
        progress,
        RunBegan("digits", "er", 5, 2, 0),
        1.0,
        Stepped(3, 1, 20, 0.5),
        DualsMoved(3, 1, [0.1], [0.1], [0.1], 0),
    )
    assert drawn(progress)[0].startswith("task 4/5  4")
    assert progress.left is None


def test_without_a_terminal_there_is_a_line_per_task_and_a_summary():
    text = told(
        BEGAN,
        FIRST,
        Stepped(0, 1, 19, 0.5),
        Evaluated(0, [0.9, 0, 0, 0], [1] * 4),
        SECOND,
        DualsMoved(1, 1, [2.0], [-0.02], [0.1], 0),
        Evaluated(1, [0.7, 0.8, 0, 0], [1] * 4),
        TaskBegan(2, "third", 10, 2),
        DualsMoved(2, 1, [2.0, 1.0], [0.01, 0.02], [0.1, 0.1], 0),
        Evaluated(2, [1] * 4, [1] * 4),
        RunEnded(0.8733, 0.145),
    )
    lines = text.splitlines()
    assert lines[0] == "digits · pdcl · seed 0 · 4 tasks, 2 epochs each"
    assert lines[1] == "task 1/4  0, 1          accuracy  90.00 %     0.0 s"
    second, third = "least room 0.020 (task 1) on stored samples", "over by 0.020 (task 2, +1) on stored samples"
    assert lines[2] == f"task 2/4  2, 3          accuracy  75.00 %     0.0 s  {second}"
    assert lines[3] == f"task 3/4  third         accuracy 100.00 %     0.0 s  {third}"
    assert lines[4] == "accuracy 87.33 %, forgetting 14.50 %, 0.0 s"
    assert len(lines) == 5
    assert "\x1b" not in text


def test_warnings_and_unmet_tolerances_are_never_swallowed():
    message = "memory 3 is small, " + "very " * 30 + "small"
    text = told(BEGAN, FIRST, SECOND, Warned(1, message), Infeasible(1, 0, 3.2, 0.04, 0.11, 0.15), terminal=False)
    assert f"warning: {message}\n" in text
    assert "warning: tolerance 0.110 of task 1 (0, 1) not met: 0.150, λ 3.20 rising\n" in text


def test_the_summary_says_what_an_unmet_tolerance_would_take_if_it_is_still_unmet():
    first, second = Infeasible(1, 0, 3.2, 0.04, 0.11, 0.15), Infeasible(2, 1, 1.0, 0.02, 0.2, 0.22)
    third = TaskBegan(2, "c", samples=10, steps=10, classes=["4", "5"])
    text = told(BEGAN, FIRST, SECOND, first, third, second, RunEnded(0.9, 0), terminal=False)
    assert "not met, and what it would take (loss): task 2: 0.200 → 0.220\n" in text


def test_an_unknown_mean_says_so():
    text = told(BEGAN, Evaluated(0, [], []), RunEnded(math.nan, math.nan))
    assert "accuracy  unknown" in text
    assert "accuracy unknown, forgetting unknown" in text


def test_a_terminal_gets_the_picture_and_keeps_the_lines():
    text = told(BEGAN, FIRST, Stepped(0, 0, 9, 1.0), Evaluated(0, [0.9] * 4, [1] * 4), RunEnded(0.9, 0), terminal=True)
    assert "\x1b[" in text
    assert "task 1/4  0, 1          accuracy  90.00 %" in text


def test_the_picture_goes_away_when_the_run_fails():
    console = Console(file=io.StringIO(), force_terminal=True, width=80, _environ={})
    display = Display(console)

    def failing_run() -> None:
        with display:
            display.listener(BEGAN)
            raise RuntimeError("diverged")

    with pytest.raises(RuntimeError, match="diverged"):
        failing_run()
    assert display._live is None
    assert console.file.getvalue().endswith("\x1b[2K")
