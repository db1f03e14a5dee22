"""Limits as users state them, checked before any work: what can't be read, or would have no effect, is one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from pdcl.errors import UsageError
from pdcl.limits.limits import Limits, describe_limits
from pdcl.limits.tolerance import PerTask
from pdcl.limits.tolerances import read_limits
from pdcl.objective import Objective
from pdcl.streams.task import Task


def in_one_line(tolerance: Any) -> Any:
    """Limits by name as the text that reads back the same, for files, names and command lines; arrays as lists, since
    these can be compared and written; others as they are."""
    if isinstance(tolerance, np.ndarray | torch.Tensor):
        return tolerance.tolist()
    if not isinstance(tolerance, Mapping | Limits):
        return tolerance
    limits = read_limits(tolerance)
    assert limits is not None
    return describe_limits(limits)


def check_enough(tolerance: Any, tasks: int) -> None:
    """Raise UsageError if tolerances are given one by one and there are fewer than tasks."""
    limits = read_limits(tolerance)
    rest = None if limits is None else limits.rest
    if isinstance(rest, PerTask) and len(rest.values) < tasks:
        raise UsageError(
            f"tolerance={tolerance!r} has {len(rest.values)} values for {tasks} tasks; "
            "give one for each task, or a single one for all"
        )


def own_limit(tolerance: Any, name: str | None) -> Any:
    """The limit of the task called `name`, which is all that `tolerance` may state: one limit, or {name: limit}."""
    limits = read_limits(tolerance)
    if limits is None:
        return None
    if limits.new is not None and not limits.tasks and limits.rest is None and not limits.segments:
        raise UsageError(
            f"tolerance={tolerance!r} says what new tasks must reach; state it once for all of them, where the learner "
            'is made: PDCL(…, tolerance={"new": "10%"})'
        )
    if limits.segments or limits.new is not None or isinstance(limits.rest, PerTask) or len(limits.tasks) > 1:
        raise UsageError(f"tolerance={tolerance!r} states several limits; this task takes one, such as +2pt or 5%")
    if not limits.tasks:
        return tolerance
    if limits.rest is not None or name is None or name not in limits.tasks:
        said = "has no name" if name is None else f"is called {name!r}"
        raise UsageError(f"tolerance={tolerance!r} names another task, and this one {said}; give its own limit alone")
    return limits.tasks[name]


def check_kind(tolerance: Any, kind: str, objective: Any = None) -> None:
    """Raise UsageError for an error rate where targets are numbers. An objective of one's own may have one."""
    limits = read_limits(tolerance)
    if limits is None or kind != "regression" or isinstance(objective, Objective):
        return
    stated = (*limits.tasks.values(), *limits.segments.values(), limits.rest, limits.new)
    if any(each is not None and each.unit == "error" for each in stated):
        raise UsageError(
            f"tolerance={tolerance!r} is an error rate, and regression has none; state a loss (0.05), or a multiple of "
            "the loss that a task reached (1.1x)"
        )


def check_columns(tolerance: Any, columns: Iterable[str], where: str) -> None:
    """Raise UsageError for a limit on a segment of a column that the data doesn't have."""
    limits, there = read_limits(tolerance), list(columns)
    for column, value in {} if limits is None else limits.segments:
        if column not in there:
            known = f"its columns: {', '.join(there)}" if there else "it has none"
            raise UsageError(
                f"tolerance={tolerance!r} has a limit on {column}={value}, but {where} has no column {column!r} "
                f'({known}); give columns={{"{column}": [...]}} with the data'
            )


def check_against(tolerance: Any, tasks: Sequence[Task]) -> None:
    """Raise UsageError for limits that don't fit a stream: a short list, a task or a column that it doesn't have."""
    limits = read_limits(tolerance)
    if limits is None:
        return
    check_enough(tolerance, len(tasks))
    names = [task.name for task in tasks]
    if strange := [name for name in limits.tasks if name not in names]:
        raise UsageError(
            f"tolerance={tolerance!r} names {strange[0]!r}, which is no task here; tasks: {', '.join(map(repr, names))}"
        )
    for task in tasks if limits.segments else ():
        check_columns(tolerance, task.data.columns, f"task {task.name!r}")


def refuse_segments(tolerance: Any) -> None:
    """Raise UsageError for limits by segment, where only those of tasks have an effect."""
    limits = read_limits(tolerance)
    if limits is not None and limits.segments:
        said = "=".join(next(iter(limits.segments)))
        raise UsageError(f"tolerance={tolerance!r}: a limit on a segment ({said}) has no effect here; name tasks")
