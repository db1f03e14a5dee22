"""Limits as users state them, checked before any work: what can't be read, or would have no effect, is one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pdcl.duality.limits import Limits, describe_limits
from pdcl.duality.tolerance import PerTask
from pdcl.errors import UsageError
from pdcl.training.fields import check_enough_tolerances, read_tolerance


def in_one_line(tolerance: Any) -> Any:
    """Limits by name as the text that reads back the same, for files, names and command lines; others as they are."""
    if not isinstance(tolerance, Mapping | Limits):
        return tolerance
    return describe_limits(read_tolerance(tolerance))


def check_single(tolerance: Any) -> None:
    """Raise UsageError unless it is None or one limit, for one task."""
    if tolerance is None:
        return
    limits = read_tolerance(tolerance)
    if limits.tasks or limits.segments or limits.new is not None or isinstance(limits.rest, PerTask):
        raise UsageError(f"tolerance={tolerance!r} states several limits; this task takes one, such as +2pt or 5%")


def check_against(tolerance: Any, tasks: Sequence[str]) -> None:
    """Raise UsageError for limits that don't fit the tasks of a stream: a short list, a name that none of them has."""
    if tolerance is None:
        return
    check_enough_tolerances(tolerance, len(tasks))
    limits = read_tolerance(tolerance)
    if strange := [name for name in limits.tasks if name not in tasks]:
        raise UsageError(
            f"tolerance={tolerance!r} names {strange[0]!r}, which is no task here; tasks: {', '.join(map(repr, tasks))}"
        )
    if limits.segments:
        said = "=".join(next(iter(limits.segments)))
        raise UsageError(f"tolerance={tolerance!r}: a limit on a segment ({said}) has no effect here; name tasks")
