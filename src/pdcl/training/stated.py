"""Limits as users state them, checked before any work: what can't be read, or would have no effect, is one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pdcl.duality.limits import Limits, as_limits, describe_limits
from pdcl.duality.tolerance import PerTask
from pdcl.errors import UsageError


def read_limits(tolerance: Any) -> Limits | None:
    """The limits that a tolerance means, None for none; UsageError for what can't be read."""
    if tolerance is None:
        return None
    try:
        return as_limits(tolerance)
    except (ValueError, TypeError) as error:
        raise UsageError(f"tolerance={tolerance!r}: {error}") from error


def in_one_line(tolerance: Any) -> Any:
    """Limits by name as the text that reads back the same, for files, names and command lines; others as they are."""
    if not isinstance(tolerance, Mapping | Limits):
        return tolerance
    limits = read_limits(tolerance)
    assert limits is not None
    return describe_limits(limits)


def check_against(tolerance: Any, tasks: Sequence[str]) -> None:
    """Raise UsageError for limits that don't fit the tasks of a stream: a short list, a name that none of them has."""
    limits = read_limits(tolerance)
    if limits is None:
        return
    if isinstance(limits.rest, PerTask) and len(limits.rest.values) < len(tasks):
        raise UsageError(
            f"tolerance={tolerance!r} has {len(limits.rest.values)} values for {len(tasks)} tasks; "
            "give one for each task, or a single one for all"
        )
    if strange := [name for name in limits.tasks if name not in tasks]:
        raise UsageError(
            f"tolerance={tolerance!r} names {strange[0]!r}, which is no task here; tasks: {', '.join(map(repr, tasks))}"
        )
    if limits.segments:
        said = "=".join(next(iter(limits.segments)))
        raise UsageError(f"tolerance={tolerance!r}: a limit on a segment ({said}) has no effect here; name tasks")
