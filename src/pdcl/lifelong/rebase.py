"""Rebase: what a task has now becomes what its limit compares with, because the user says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdcl.errors import UsageError
from pdcl.lifelong.entry import REBASED, Entry

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def rebase(learner: Learner, task: int | str) -> Entry:
    """Let a task's limit compare with what the task has now, instead of what it had when it was learned.

    task: its name or number. References never move by themselves, or two points a month become 24 a year.
    """
    index, name = _found(learner, task)
    result = learner.move_reference(index, name)
    # Audit data compares with a task's reference too: the next update stores what it has then.
    references = learner.lineage.references
    learner.lineage.references = references.only(references.task != index)
    learner.lineage.note_change(index, name, result, REBASED)
    learner.promises = learner.lineage.promises
    return Entry(learner.lineage.entries[-1])


def _found(learner: Learner, task: int | str) -> tuple[int, str]:
    known = {entry["task"]: str(entry["name"]) for entry in learner.lineage.tasks}
    named = [index for index, name in known.items() if name == task]
    if isinstance(task, int) and not isinstance(task, bool) and task in known:
        named = [task]
    if not named:
        told = ", ".join(f"{index} ({name})" for index, name in known.items()) or "none"
        raise UsageError(f"there is no task {task!r} to rebase; tasks so far: {told}")
    if len(named) > 1:
        raise UsageError(f"tasks {named} are all called {task!r}; say which by its number")
    return named[0], known[named[0]]
