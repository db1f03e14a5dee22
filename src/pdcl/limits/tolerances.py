"""The stated limits, and ε_k of every task so far, each in its own unit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pdcl.errors import UsageError
from pdcl.limits.limits import Limits, Segment, as_limits, describe_limits
from pdcl.limits.tolerance import Fixed, PerTask, Relative, Rise, Tolerance, as_tolerance, describe

NO_LIMIT = math.nan


@dataclass(frozen=True)
class ToleranceChange:
    """ε of `task` went from `old` to `new`; `reached` on memory and on the task's data at large, where measured."""

    task: int
    old: float | None
    new: float
    unit: str
    why: str
    reached: float
    reached_on_all: float | None


class Tolerances:
    """`values` are ε_k in the units of their limits, NaN where task k has none; `names` are the tasks' names.

    A relative limit multiplies what a task had when it was learned, on the samples that memory still holds. The
    reference of a sample never changes, so ε_k changes only when the task's stored samples do; each change is reported.
    """

    def __init__(self, stated: Any) -> None:
        self.limits: Limits | None = read_limits(stated)
        self.names: list[str] = []
        self.values: list[float] = []
        self.agreed: dict[str, str] = {}
        self.loosened: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self.values)

    @property
    def stated_any(self) -> bool:
        return self.limits is not None or bool(self.agreed)

    @property
    def segments(self) -> Mapping[Segment, Tolerance]:
        """Limits by (column, value)."""
        return {} if self.limits is None else self.limits.segments

    @property
    def in_error(self) -> bool:
        """Whether a limit is an error rate."""
        return any(limit is not None and limit.unit == "error" for limit in self._stated())

    @property
    def in_loss(self) -> bool:
        """Whether a limit is a loss."""
        return any(limit is not None and limit.unit == "loss" for limit in self._stated())

    @property
    def rises(self) -> bool:
        """Whether a limit is stated as points above what a task had."""
        return any(isinstance(limit, Rise) for limit in self._stated())

    def _stated(self) -> list[Tolerance | None]:
        limits, own = self.limits, [as_tolerance(each) for each in self.agreed.values()]
        return [*own] if limits is None else [*own, limits.rest, *limits.tasks.values(), *limits.segments.values()]

    def name(self, task: int) -> str:
        return self.names[task] if task < len(self.names) else str(task)

    def of(self, task: int) -> Tolerance | None:
        """What was stated for this task; None: no limit."""
        if str(task) in self.agreed:
            return as_tolerance(self.agreed[str(task)])
        return None if self.limits is None else self.limits.of(self.name(task), task)

    def waiting(self) -> list[tuple[str, Tolerance]]:
        """Limits of names that no task so far has: of tasks to come, or misspelled."""
        stated = {} if self.limits is None else self.limits.tasks
        return [(name, limit) for name, limit in stated.items() if name not in self.names]

    def unit(self, task: int) -> str:
        """The unit of a task's limit; loss where it has none."""
        limit = self.of(task) if task < len(self) or not self._by_position(task) else None
        return "loss" if limit is None else limit.unit

    def _by_position(self, task: int) -> bool:
        """Whether this task's limit is an entry of a list that is too short for it."""
        rest = None if self.limits is None else self.limits.rest
        return isinstance(rest, PerTask) and task >= len(rest.values)

    def agree_on(self, task: int, tolerance: Any) -> None:
        """A tolerance of one task's own."""
        self.agreed[str(task)] = describe(as_tolerance(tolerance))

    def loosen(self, task: int, change: float) -> None:
        """Move ε of one past task by `change` for the next task, for what-if: each of its samples' by as much."""
        self.loosened[task] = self.loosened.get(task, 0.0) + change

    def now(self, past: int) -> list[float]:
        """ε_k of every past task, as the task being learned is held to it."""
        return [value + self.loosened.get(k, 0.0) for k, value in enumerate(self.values[:past])]

    def of_current(self) -> float | None:
        """The loss that the task being learned is compared with, for its artificial dual and its shadow duals.

        A relative one isn't known yet, so its floor stands in; an error rate is no loss, so there is none.
        """
        limit = self.of(len(self))
        if limit is None or limit.unit == "error":
            return None
        if isinstance(limit, Relative):
            return limit.floor
        return limit.of(len(self), None)

    def measured(self, task: int, reached: float) -> float:
        """ε of a task that reached this, NaN where it has no limit."""
        limit = self.of(task)
        return NO_LIMIT if limit is None else limit.of(task, reached)

    def set(self, reached: Sequence[float], on_all: float) -> list[ToleranceChange]:
        """ε_k anew from what each task had reached, the newest last. on_all: the newest on its data at large."""
        changes, newest = [], len(reached) - 1
        for k, value in enumerate(reached):
            old = self.values[k] if k < len(self) else None
            limit = self.of(k)
            new = self.measured(k, value)
            self.values[k : k + 1] = [new]
            if limit is None or old == new:
                continue
            why = "task learned" if old is None else "other samples of it are stored"
            beside = on_all if k == newest else None
            changes.append(ToleranceChange(k, old, new, limit.unit, f"{why}; {describe(limit)}", value, beside))
        return changes

    def goal_of_new(self) -> Fixed | None:
        """What a new task must reach, where that is stated."""
        return None if self.limits is None else self.limits.new  # type: ignore[return-value]

    def state_dict(self) -> dict[str, Any]:
        stated = None if self.limits is None else describe_limits(self.limits)
        return {"tolerances": self.values, "agreed": self.agreed, "names": self.names, "stated": stated}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.values, self.agreed = list(state["tolerances"]), dict(state["agreed"])
        self.names = list(state.get("names", map(str, range(len(self.values)))))

    def restate(self, before: Any, reached: Sequence[float]) -> None:
        """Where a task's limit is another than that under `before`, as it was stated then, set ε_k at once."""
        then = Tolerances(before)
        then.load_state_dict(self.state_dict())
        for k, value in enumerate(reached):
            if self.of(k) != then.of(k):
                self.values[k] = self.measured(k, value)


def read_limits(stated: Any) -> Limits | None:
    """The limits that a tolerance means, None for none; UsageError for what can't be read."""
    if stated is None:
        return None
    try:
        return as_limits(stated)
    except (ValueError, TypeError) as error:
        raise UsageError(f"tolerance={stated!r}: {error}") from error


def usual_partition(tolerances: Tolerances) -> str:
    """Evenly without limits; by the room that error limits leave; by dual where limits are losses (the paper).

    With n stored samples a task's error is about ∝ 1/√n, and the rise of its error about ∝ 1/n: hence the power.
    """
    if not tolerances.stated_any:
        return "uniform"
    if not tolerances.in_error:
        return "affine"
    return "room:power=1" if tolerances.rises else "room"
