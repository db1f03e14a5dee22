"""What happens during a run, as typed events: the only way the loop and the methods speak to the outside."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Event:
    """Something that happened. `kind` is the class name in snake case, the `event` key of a record's line."""

    @property
    def kind(self) -> str:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    def as_json(self) -> dict[str, Any]:
        return {"event": self.kind, **asdict(self)}


@dataclass(frozen=True)
class RunBegan(Event):
    """`labels` are the names of the head's outputs, in head order, where the stream has any."""

    stream: str
    method: str
    tasks: int
    epochs: int
    seed: int
    labels: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TaskBegan(Event):
    task: int
    name: str
    samples: int
    steps: int
    classes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SetAside(Event):
    """Before training: `samples` of the task went to the audit set at `place`, which holds `total` of at most `budget`.

    `certifies` is the smallest error rate that so many can ever certify (95 %, one look, no error among them).
    """

    task: int
    place: str
    samples: int
    total: int
    budget: int | None
    certifies: float


@dataclass(frozen=True)
class Stepped(Event):
    """Mean loss on the current task (and a method's own scalars) since the last such event."""

    task: int
    epoch: int
    step: int
    loss: float
    scalars: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class DualsMoved(Event):
    """One dual step. `duals`, `slacks`, `tolerances`, one per past task; `current` is the artificial dual."""

    task: int
    step: int
    duals: list[float]
    slacks: list[float]
    tolerances: list[float]
    current: float
    constraint: str = "loss"


@dataclass(frozen=True)
class ToleranceSet(Event):
    """The tolerance of past task `constrained` changed from `old` to `new`, and why."""

    task: int
    constrained: int
    old: float | None
    new: float
    unit: str
    why: str
    reached: float | None = None
    reached_on_all: float | None = None


@dataclass(frozen=True)
class Partitioned(Event):
    """How memory was divided after a task: samples held per task, and the duals that decided it."""

    task: int
    counts: list[int]
    duals: list[float]
    capacity: int


@dataclass(frozen=True)
class Infeasible(Event):
    """The tolerance was not met, and `reached` is what was. solved: λ is that of a solver; otherwise it was rising."""

    task: int
    constrained: int
    dual: float
    slack: float
    tolerance: float
    reached: float
    solved: bool = False

    def sentence(self, task: str, unit: str) -> str:
        """For people. task: what the constrained one is called; unit: of its limit, "error" or "loss".

        >>> Infeasible(1, 0, dual=3.2, slack=0.04, tolerance=0.11, reached=0.15).sentence("legacy", "error")
        'tolerance 11.0 % of legacy not met: 15.0 %, λ 3.20 rising'
        """
        asked, reached = (in_unit(value, unit) for value in (self.tolerance, self.reached))
        said = f"tolerance {asked} of {task} not met: {reached}"
        return f"{said}; nothing that was tried keeps it" if self.solved else f"{said}, λ {self.dual:.2f} rising"


@dataclass(frozen=True)
class PromisesJudged(Event):
    """What became of every stated limit after a task: the rows of `pdcl.judging.Promises`, as JSON."""

    task: int
    promises: dict[str, Any]


@dataclass(frozen=True)
class Evaluated(Event):
    """Mean score on the test data of every task after learning `task`."""

    task: int
    class_il: list[float]
    task_il: list[float]


@dataclass(frozen=True)
class TaskEnded(Event):
    task: int
    steps: int


@dataclass(frozen=True)
class Warned(Event):
    task: int
    message: str


@dataclass(frozen=True)
class RunEnded(Event):
    mean_accuracy: float
    mean_forgetting: float


@dataclass(frozen=True)
class RunFailed(Event):
    task: int
    step: int
    cause: str


def in_unit(value: float, unit: str) -> str:
    """An error rate in percent; a loss with three decimals or, where these would be 0.000, by its first digit."""
    if unit == "error":
        return f"{100 * value:.1f} %"
    return f"{value:.3f}" if abs(value) >= 0.0005 else f"{value:.1g}"


Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The default listener: does nothing."""
