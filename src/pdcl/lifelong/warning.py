"""Events that people should know of, as Python warnings at the user's own line."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from pdcl.errors import LearningWarning, LimitBroken
from pdcl.judging.table import Promises
from pdcl.learning.events import Event, Infeasible, Listener, TaskBegan, Warned, ignore
from pdcl.printable import printable

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

PACKAGE = str(Path(__file__).resolve().parents[1])


def warn_of_broken(promises: Promises | None, then: str = "") -> None:
    """One `LimitBroken` for all broken rows of a table, none for what is kept or undecided. then: what was done."""
    if promises is None or not promises.broken:
        return
    said = "; ".join(f"{row.task}: {row.sentence}" for row in promises.broken)
    warnings.warn(printable(f"{said}. {then}" if then else said), LimitBroken, stacklevel=_users_line())


class Warnings:
    """Hands the events of a task to the user's listener; where none is given, those for people become warnings.

    Warnings raised during training wait until the end of the `with`, when the task is learned: a user who turns
    warnings into errors loses no training. Warnings from before training are raised at once.
    """

    def __init__(self, learner: Learner, listener: Listener = ignore) -> None:
        self.learner, self.listener = learner, listener
        self.speaks = listener is ignore
        self.training = False
        self.waiting: list[str] = []
        self.infeasible: list[Infeasible] = []

    def __enter__(self) -> Warnings:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for said in dict.fromkeys(self.waiting) if kind is None else ():
            warn_people(said)

    def on_event(self, event: Event) -> None:
        if isinstance(event, Infeasible):
            self.infeasible.append(event)
        if not self.speaks:
            self.listener(event)
            return
        self.training |= isinstance(event, TaskBegan)
        said = sentence(event, self.learner)
        if said is not None and self.training:
            self.waiting.append(said)
        elif said is not None:
            warn_people(said)


def warn_of_event(event: Event, learner: Learner, before: set[tuple[int, str]]) -> None:
    """Say an event that is for people at once, unless the same was said `before` of the same task."""
    said = sentence(event, learner)
    if said is None or (learner.tasks_learned, said) in before:
        return
    before.add((learner.tasks_learned, said))
    warn_people(said)


def sentence(event: Event, learner: Learner) -> str | None:
    """What an event says to people, as on the command line; None where it is for machines."""
    if isinstance(event, Warned):
        return event.message
    if not isinstance(event, Infeasible):
        return None
    names = {entry["task"]: str(entry["name"]) for entry in learner.lineage.tasks}
    units = dict(enumerate(learner.report().units))
    task = names.get(event.constrained, f"task {event.constrained + 1}")
    return event.sentence(task, units.get(event.constrained, "loss"))


def warn_people(said: str) -> None:
    """A `LearningWarning` at the user's own line."""
    warnings.warn(printable(said), LearningWarning, stacklevel=_users_line())


def _users_line() -> int:
    """The `stacklevel` of the first caller outside this package, seen from the caller of this function."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
