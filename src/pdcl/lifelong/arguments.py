"""Check arguments of `learn` that are used only after training, before any work is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pdcl.errors import UsageError
from pdcl.given import path_of, short
from pdcl.streams.inputs import refuse_containers
from pdcl.streams.samples import is_dataset
from pdcl.streams.transform import Transform

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

SHARE = 0.1


def task_name(name: Any, learner: Learner) -> str | None:
    """A task's name as text, such as that of the year 2026: limits, files and tables know it by its text."""
    if name is not None:
        check_text(str(name), "name")
    title = str(learner.tasks_learned) if name is None else str(name)
    if not title.strip():
        raise UsageError(f"name={title!r} is empty; limits and tables know a task by its name")
    for known in learner.lineage.tasks:
        if str(known["name"]) == title:
            stated = f"name={title!r}" + ("" if name is not None else ", by which a task without a name goes,")
            raise UsageError(f"{stated} is the name of task {known['task']}; give this one a name of its own")
    return None if name is None else title


def check_arguments(test: Any, transform: Any, grow: Any, listener: Any, audit: Any, share: Any, budget: Any) -> None:
    """Raise UsageError for one that can't work, or that has no effect."""
    refuse_containers(test, "test")
    if test is not None and not is_dataset(test) and not (isinstance(test, list | tuple) and len(test) == 2):
        raise UsageError(f"test={short(test)} must be (x, y) or a Dataset")
    if transform is not None and not isinstance(transform, Transform):
        raise UsageError(f"transform={short(transform)} must be a pdcl Transform")
    for what, value in (("grow", grow), ("listener", listener)):
        if value is not None and not callable(value):
            raise UsageError(f"{what}={short(value)} must be a function")
    _check_audit(audit, share, budget)


def _check_audit(audit: Any, share: Any, budget: Any) -> None:
    if audit is None:
        if budget is not None or share != SHARE:
            raise UsageError("audit_share and audit_budget have no effect without audit")
        return
    path_of(audit, "audit")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise UsageError(f"audit_share={short(share)} must be a number between 0 and 1")
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
        raise UsageError(f"audit_budget={short(budget)} must be a whole number of at least 1")


def check_text(text: str, what: str) -> None:
    """Raise UsageError for text that no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what}={text!r} holds half a character (a lone surrogate), which no file can hold") from None
