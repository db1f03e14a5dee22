"""What to do with a task that broke a limit: say so, or put the learner back to what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdcl.errors import UsageError
from pdcl.promises.promise import BROKEN
from pdcl.promises.table import Promises

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

REPORT, ROLLBACK = CHOICES = ("report", "rollback")


def check_choice(on_violation: str, learner: Learner) -> None:
    """Raise UsageError for a choice that isn't one, or that could never act."""
    if on_violation not in CHOICES:
        raise UsageError(f"on_violation={on_violation!r} is unknown; choose one of {', '.join(CHOICES)}")
    stated = getattr(learner, "tolerance", None) is not None
    stated = stated or (learner.spec is not None and learner.report().has_tolerances)
    if on_violation == ROLLBACK and not stated:
        raise UsageError(
            f'on_violation="rollback" has no effect: {type(learner).__name__} has no limits; state one, such as '
            'tolerance="+2pt", or leave it out'
        )


def breaks(promises: Promises | None) -> bool:
    """Whether a past task's limit is broken for certain; a new task that was not learned breaks none."""
    return promises is not None and any(row.verdict == BROKEN for row in promises)
