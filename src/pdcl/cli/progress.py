"""Where a run stands, gathered from its events: what any display of it shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pdcl.judging.table import Promises
from pdcl.learning.events import (
    DualsMoved,
    Evaluated,
    Event,
    Infeasible,
    PromisesJudged,
    RunBegan,
    RunEnded,
    Stepped,
    TaskBegan,
    ToleranceSet,
)
from pdcl.printable import printable


@dataclass(frozen=True)
class Standing:
    """How a past task stands: its slack (positive: over by, negative: room), tolerance and dual."""

    task: int
    name: str
    slack: float
    tolerance: float
    dual: float


@dataclass
class Progress:
    """A run as far as its events have told. Whatever hasn't been told yet is unknown, so a resumed run works too."""

    clock: Callable[[], float] = time.perf_counter
    title: str = ""
    tasks: int | None = None
    epochs: int = 1
    task: int = 0
    names: dict[int, str] = field(default_factory=dict)
    samples: int = 0
    steps: int = 0
    done: int = 0
    loss: float | None = None
    standings: list[Standing] = field(default_factory=list)
    unit: str = "loss"
    units: dict[int, str] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)
    unmet: dict[int, Infeasible] = field(default_factory=dict)
    promises: Promises | None = None
    ended: RunEnded | None = None

    def __post_init__(self) -> None:
        self._began = self._task_began = self.clock()
        self._finished_steps: list[int] = []

    def hear(self, event: Event) -> None:
        match event:
            case RunBegan():
                self._began, self.tasks, self.epochs = self.clock(), event.tasks, event.epochs
                self.title = f"{printable(event.stream)} · {event.method} · seed {event.seed}"
            case TaskBegan():
                self._begin(event)
            case Stepped():
                self.task, self.loss = event.task, event.loss
                self.done = min(event.epoch * self.steps // self.epochs + event.step + 1, self.steps)
            case DualsMoved():
                self._stand(event)
            case Infeasible():
                self.unmet[event.constrained] = event
            case PromisesJudged():
                self.promises = Promises.from_json(event.promises)
            case ToleranceSet():
                self.unit = self.units[event.constrained] = event.unit
            case Evaluated():
                self.scores = event.class_il[: event.task + 1]
            case RunEnded():
                self.ended = event

    def _begin(self, event: TaskBegan) -> None:
        if self.steps:
            self._finished_steps.append(self.steps)
        self._task_began, self.task, self.samples, self.steps = self.clock(), event.task, event.samples, event.steps
        self.done, self.loss, self.standings, self.unmet = 0, None, [], {}
        self.names[event.task] = printable(", ".join(event.classes) or event.name)

    def _stand(self, event: DualsMoved) -> None:
        values = zip(event.slacks, event.tolerances, event.duals, strict=False)
        self.standings = [Standing(k, self.name(k), *each) for k, each in enumerate(values)]

    @property
    def witnessed(self) -> bool:
        """Whether samples that were held back say how limits stand; otherwise only stored ones do."""
        return self.promises is not None and any(row.samples for row in self.promises)

    def name(self, task: int) -> str:
        """What a task is called: its classes if it has any."""
        return self.names.get(task, str(task + 1))

    @property
    def place(self) -> str:
        return f"task {self.task + 1}" + (f"/{self.tasks}" if self.tasks else "")

    @property
    def seconds(self) -> float:
        return self.clock() - self._began

    @property
    def task_seconds(self) -> float:
        return self.clock() - self._task_began

    @property
    def rate(self) -> float | None:
        """Steps of this task per second."""
        return self.done / self.task_seconds if self.done and self.task_seconds > 0 else None

    @property
    def batch(self) -> float:
        """Samples of the current task per step."""
        return self.samples * self.epochs / self.steps if self.steps else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the end, if the tasks to come are as long as those that came."""
        taken = sum(self._finished_steps) + self.done
        if not taken or self.tasks is None:
            return None
        typical = (sum(self._finished_steps) + self.steps) / (len(self._finished_steps) + 1)
        ahead = self.steps - self.done + typical * (self.tasks - self.task - 1)
        return ahead * self.seconds / taken
