"""A run as its events tell it, folded one by one into what charts need: bounded however long the run.

Events come from files that may be damaged, half-written or made by others: what can't be understood is counted and
left out, never trusted and never fatal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from pdcl.lab.reports.thinning import Curve, Values, columns
from pdcl.reports.promises import judged

MOST_TASKS = 1000
MOST_NOTES = 40
LONGEST = 400


@dataclass
class Chapter:
    """A task as the run met it. `start`: how many steps came before it."""

    task: int
    name: str
    classes: list[str]
    samples: int
    steps: int
    start: int

    def as_json(self) -> dict[str, Any]:
        keys = ("task", "name", "classes", "samples", "steps", "start")
        return {key: getattr(self, key) for key in keys}


@dataclass
class Story:
    """What is known of a run so far."""

    points: int = 400
    tasks: int | None = None
    epochs: int = 1
    chapters: list[Chapter] = field(default_factory=list)
    class_il: dict[int, Values] = field(default_factory=dict)
    task_il: dict[int, Values] = field(default_factory=dict)
    partitions: dict[int, list[int]] = field(default_factory=dict)
    capacity: int | None = None
    unit: str = "loss"
    labels: list[str] = field(default_factory=list)
    promises: dict[str, Any] | None = None
    notes: list[dict[str, Any]] = field(default_factory=list)
    failed: str | None = None
    ended: bool = False
    time: float = 0.0
    step: int = 0
    events: int = 0
    bad: int = 0

    def __post_init__(self) -> None:
        self.loss = Curve(self.points, mean=True)
        self.duals = Curve(self.points)
        self.slacks = Curve(self.points)
        self.tolerances = Curve(self.points)

    def hear(self, event: Any) -> None:
        """One event, as read from a line."""
        self.events += 1
        try:
            self.time = max(self.time, _number(event.get("time")) or 0.0)
            handler = getattr(self, f"_on_{event['event']}", None)
            if handler is not None:
                handler(event)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError):
            self.bad += 1

    # Every handler reads all of its event before it changes anything: half an event changes nothing.
    def _on_run_began(self, event: dict[str, Any]) -> None:
        tasks, epochs = _whole(event["tasks"]), max(1, _whole(event["epochs"]))
        labels = [_text(each) for each in event.get("labels", [])][:LONGEST]
        self.__dict__.update(Story(self.points, tasks, epochs, labels=labels, events=1, bad=self.bad).__dict__)

    def _on_task_began(self, event: dict[str, Any]) -> None:
        task, classes = _whole(event["task"]), [_text(each) for each in event.get("classes", [])][:LONGEST]
        about = (_text(event["name"]), classes, _whole(event["samples"]), _whole(event["steps"]))
        # A resumed run may tell of a task again.
        kept = [chapter for chapter in self.chapters if chapter.task < task][:MOST_TASKS]
        start = kept[-1].start + kept[-1].steps if kept else 0
        self.chapters = [*kept, Chapter(task, *about, start)]
        self.step, self.failed = start, None

    def _on_stepped(self, event: dict[str, Any]) -> None:
        chapter = self._chapter(event)
        per_epoch = chapter.steps / self.epochs
        done = min(round(_whole(event["epoch"]) * per_epoch) + _whole(event["step"]) + 1, chapter.steps)
        self.step = chapter.start + done
        self.loss.add(chapter.task, self.step, [_number(event["loss"])])

    def _on_duals_moved(self, event: dict[str, Any]) -> None:
        chapter = self._chapter(event)
        x = chapter.start + _whole(event["step"]) + 1
        duals, slacks, tolerances = (_numbers(event[name]) for name in ("duals", "slacks", "tolerances"))
        # The artificial dual of the current task comes first, since the number of past tasks grows.
        self.duals.add(chapter.task, x, [_number(event["current"]), *duals])
        self.slacks.add(chapter.task, x, slacks)
        self.tolerances.add(chapter.task, x, tolerances[: len(duals)])

    def _on_tolerance_set(self, event: dict[str, Any]) -> None:
        self.unit = _text(event["unit"])

    def _on_promises_judged(self, event: dict[str, Any]) -> None:
        self.promises = judged(event["promises"])

    def _on_partitioned(self, event: dict[str, Any]) -> None:
        task, counts = _whole(event["task"]), [_whole(count) for count in event["counts"]][:MOST_TASKS]
        self.capacity = _whole(event["capacity"])
        self.partitions[task] = counts

    def _on_evaluated(self, event: dict[str, Any]) -> None:
        task, found = _whole(event["task"]), (_numbers(event["class_il"]), _numbers(event["task_il"]))
        self.class_il[task], self.task_il[task] = found

    def _on_infeasible(self, event: dict[str, Any]) -> None:
        k, dual = _whole(event["constrained"]), _number(event["dual"]) or 0.0
        over, tolerance = _number(event["slack"]) or 0.0, _number(event["tolerance"]) or 0.0
        said = f"tolerance {tolerance:.3g} of task {k + 1} was not met: over by {over:.3g} while λ rose to {dual:.3g}"
        self._note("infeasible", event, said)

    def _on_warned(self, event: dict[str, Any]) -> None:
        self._note("warning", event, _text(event["message"]))

    def _on_run_ended(self, event: dict[str, Any]) -> None:
        self.ended = True

    def _on_run_failed(self, event: dict[str, Any]) -> None:
        self.failed = _text(event["cause"])
        self._note("failed", event, self.failed)

    def _note(self, kind: str, event: dict[str, Any], said: str) -> None:
        if len(self.notes) < MOST_NOTES:
            self.notes.append({"kind": kind, "task": _whole(event["task"]), "text": said})

    def _chapter(self, event: dict[str, Any]) -> Chapter:
        task = _whole(event["task"])
        if not self.chapters or self.chapters[-1].task != task:
            raise ValueError(f"an event of task {task}, which has not begun")
        return self.chapters[-1]

    @property
    def total(self) -> float | None:
        """Steps from the first to the last task, if those to come are as long as those that came."""
        if self.tasks is None or not self.chapters:
            return None
        known = sum(chapter.steps for chapter in self.chapters)
        return known + known / len(self.chapters) * max(0, self.tasks - len(self.chapters))

    @property
    def progress(self) -> float:
        """Share of the run that is done, between 0 and 1."""
        if self.ended:
            return 1.0
        total = self.total
        return min(1.0, self.step / total) if total else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the end at the pace so far."""
        done = self.progress
        return None if self.ended or not done else self.time * (1 - done) / done

    def as_json(self, most: int | None = None) -> dict[str, Any]:
        """What the page draws, with at most about `most` points a curve."""
        duals_x, duals = columns(self.duals, most)
        slacks_x, slacks = columns(self.slacks, most)
        _, tolerances = columns(self.tolerances, most)
        return {
            "tasks": [chapter.as_json() for chapter in self.chapters],
            "planned": self.tasks,
            "loss": _loss(self.loss, most),
            "duals": {"x": duals_x, "current": duals[0] if duals else [], "past": duals[1:]},
            "slacks": {"x": slacks_x, "past": slacks, "tolerances": tolerances, "unit": self.unit},
            "promises": self.promises,
            "notes": self.notes,
            "bad": self.bad,
            "events": self.events,
        }


def _loss(curve: Curve, most: int | None) -> dict[str, Any]:
    x, y = columns(curve, most)
    return {"x": x, "y": y[0] if y else []}


def _number(value: Any) -> float | None:
    """A finite number, None for null; anything else is an error."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{type(value).__name__} where a number should be")
    return float(value) if math.isfinite(value) else None


def _numbers(values: Any) -> Values:
    if not isinstance(values, list):
        raise TypeError("no list of numbers")
    return [_number(value) for value in values[:MOST_TASKS]]


def _whole(value: Any) -> int:
    number = _number(value)
    if number is None or number < 0 or number > 1e12:
        raise ValueError(f"{value!r} is no count")
    return int(number)


def _text(value: Any) -> str:
    return str(value)[:LONGEST]
