"""What to do with a task that broke a limit: say so, or put the learner back to what it was."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pdcl.errors import UsageError
from pdcl.judging.promise import BROKEN
from pdcl.judging.table import Promises
from pdcl.lifelong.entry import ROLLED_BACK, Entry
from pdcl.lifelong.undo import Before
from pdcl.lifelong.warning import warn_of_broken
from pdcl.storage.interrupts import put_off
from pdcl.streams.task import Task

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

REPORT, ROLLBACK = CHOICES = ("report", "rollback")
# By name, since the catalog of methods stands above this room.
PRIMAL_DUAL = "even, pdcl0, pdcl, pdcl-s"


def check_choice(on_violation: str, learner: Learner) -> None:
    """Raise UsageError for an unknown choice, or one that could never have an effect."""
    if on_violation == "feasible":
        raise UsageError(
            'on_violation="feasible" is gone; write on_violation="rollback", which puts the learner back to what it '
            "was where a limit is broken"
        )
    if on_violation not in CHOICES:
        raise UsageError(f"on_violation={on_violation!r} is unknown; choose one of {', '.join(CHOICES)}")
    stated = learner.tolerance is not None
    stated = stated or (learner.spec is not None and learner.report().has_tolerances)
    if on_violation == ROLLBACK and not stated:
        _refuse_without_limits(learner)


def _refuse_without_limits(learner: Learner) -> None:
    """Raise UsageError that says how to state a limit, or which methods take one."""
    method = type(learner).__name__
    if "tolerance" not in {f.name for f in fields(learner) if f.init}:
        raise UsageError(
            f'on_violation="rollback" has no effect: {method} takes no limits, only the primal-dual methods do '
            f"({PRIMAL_DUAL}); use one of these, or leave it out"
        )
    raise UsageError(
        f'on_violation="rollback" has no effect: {method} has no limits; state one, such as '
        'tolerance="+2pt", or leave it out'
    )


def breaks(promises: Promises | None) -> bool:
    """Whether a past task's limit is broken for certain; a new task that was not learned breaks none."""
    return promises is not None and any(row.verdict == BROKEN for row in promises)


def rolled_back(learner: Learner, before: Before, task: Task, result: dict[str, Any]) -> Entry:
    """Take a task back that broke a limit; the lineage keeps what it would have done."""
    broken = learner.promises
    with put_off():
        before.restore()
        learner.lineage.note_change(task.index, task.name, result, ROLLED_BACK)
        before.settle()
    warn_of_broken(broken, f"{task.name} was rolled back: the learner is as it was before")
    return Entry(learner.lineage.entries[-1])
