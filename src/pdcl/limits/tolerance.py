"""Tolerances ε: what a past task may have, in loss or in error rate.

Task t is learned under `L_k(θ) ≤ ε_k` for every past task k. A tolerance says where ε_k comes from: one number for
all tasks, one per task, a factor over what task k had reached when it was stored, or points of error above that. It
always carries its unit: a loss, or an error rate. Limits by task name and by segment: `pdcl.limits.limits`.

>>> as_tolerance("1.1x>=0.02").of(task=3, reached=0.5)
0.55
>>> describe(as_tolerance("5%"))
'5%'
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Union

import numpy as np

from pdcl.limits.stating import BY_NAME, SIGNED, check_unit, checked_bound, checked_number, read_number, write_number

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Fixed:
    """ε_k = value for every task."""

    value: float
    unit: str = "loss"

    def __post_init__(self) -> None:
        check_unit(self.unit)
        object.__setattr__(self, "value", checked_bound(self.value, self.unit, "tolerance"))

    def of(self, task: int, reached: float | None = None) -> float:
        """ε_k of task k; what the task reached doesn't matter."""
        return self.value


@dataclass(frozen=True)
class PerTask:
    """ε_k = values[k]."""

    values: tuple[float, ...]
    unit: str = "loss"

    def __post_init__(self) -> None:
        check_unit(self.unit)
        values = tuple(checked_bound(v, self.unit, f"tolerance of task {k}") for k, v in enumerate(self.values))
        if not values:
            raise ValueError("PerTask got no values: give one tolerance per task, or Fixed(value) for all tasks")
        object.__setattr__(self, "values", values)

    def of(self, task: int, reached: float | None = None) -> float:
        """ε_k of task k; what the task reached doesn't matter."""
        if not 0 <= task < len(self.values):
            raise ValueError(
                f"no tolerance for task {task}: {len(self.values)} are given, for tasks 0 to {len(self.values) - 1}; "
                "give more, or one number for all tasks"
            )
        return self.values[task]


@dataclass(frozen=True)
class Relative:
    """ε_k = max(factor · m_k, floor), where m_k is what task k had reached on the samples stored for it.

    The floor keeps the problem feasible when m_k ≈ 0. An error rate is never asked to exceed 1.
    """

    factor: float = 1.1
    floor: float = 0.01
    unit: str = "loss"

    def __post_init__(self) -> None:
        check_unit(self.unit)
        factor = checked_number(self.factor, "factor of a relative tolerance")
        if factor <= 0:
            raise ValueError(f"factor of a relative tolerance must be positive, not {factor}: 1.1 allows 10 % more")
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "floor", checked_bound(self.floor, self.unit, "floor of a relative tolerance"))

    def of(self, task: int, reached: float | None = None) -> float:
        """ε_k of task k, from the value m_k that it had reached."""
        if reached is None:
            raise ValueError(
                f"the relative tolerance {describe(self)} of task {task} needs what the task had reached: "
                "give reached=, or use a fixed tolerance"
            )
        epsilon = max(self.factor * checked_number(reached, f"value reached by task {task}"), self.floor)
        return min(epsilon, 1.0) if self.unit == "error" else epsilon


@dataclass(frozen=True)
class Rise:
    """ε_k = min(1, e_k + points/100), where e_k is the error rate task k had when it was learned or adopted.

    >>> as_tolerance("+2pt").of(task=0, reached=0.25)
    0.27
    """

    points: float
    unit: ClassVar[str] = "error"

    def __post_init__(self) -> None:
        points = checked_number(self.points, "rise of an error rate")
        if not 0 <= points <= 100:
            raise ValueError(f"rise of an error rate must lie between 0 and 100 points, but is {points}: {SIGNED}")
        object.__setattr__(self, "points", abs(points))

    @property
    def floor(self) -> float:
        """ε of a task that reached no error at all; it stands in while what a task reaches isn't known."""
        return self.points / 100

    def of(self, task: int, reached: float | None = None) -> float:
        """ε_k of task k, from the error rate e_k that it had."""
        if reached is None:
            raise ValueError(
                f"the tolerance {describe(self)} of task {task} needs the error rate that the task had: "
                "give reached=, or use an absolute error such as 5%"
            )
        return min(1.0, checked_bound(reached, self.unit, f"error rate reached by task {task}") + self.floor)


Tolerance = Fixed | PerTask | Relative | Rise
# Torch is named and not imported: limits on logs are read without it.
Written = Union[float, str, Sequence[float | str], np.ndarray, "torch.Tensor", Tolerance]


def as_tolerance(value: Written) -> Tolerance:
    """A tolerance from what a user writes: 0.05, "0.05", "5%", "+2pt", "1.1x", "1.1x>=0.02", "5%,10%" or a list."""
    if isinstance(value, Tolerance):
        return value
    if isinstance(value, np.ndarray) or type(value).__module__.partition(".")[0] == "torch":
        value = value.tolist()  # type: ignore[union-attr]
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, bytes | bytearray | memoryview):
        # They iterate as numbers, so b"5%" would be the losses 53 and 37.
        raise TypeError(f"a tolerance is text or numbers, not {type(value).__name__}: decode it first")
    if isinstance(value, Iterable):
        return _per_task(value)
    return Fixed(checked_number(value, "tolerance"))


def describe(tolerance: Tolerance) -> str:
    """The text that `as_tolerance` reads back as the same tolerance."""
    if isinstance(tolerance, Fixed):
        return write_number(tolerance.value, tolerance.unit)
    if isinstance(tolerance, PerTask):
        texts = [write_number(v, tolerance.unit) for v in tolerance.values]
        return ",".join(texts) + ("," if len(texts) == 1 else "")
    if isinstance(tolerance, Rise):
        return f"+{Decimal(repr(tolerance.points)).normalize():f}pt"
    if tolerance.unit == "loss" and tolerance.floor == Relative.floor:
        return f"{tolerance.factor!r}x"
    return f"{tolerance.factor!r}x>={write_number(tolerance.floor, tolerance.unit)}"


def _parse(text: str) -> Tolerance:
    if "," in text:
        return _per_task(part for part in text.split(",") if part.strip())
    if relative := re.fullmatch(r"([^x×]*)[x×](?:\s*(?:>=|≥)(.*))?", text.strip()):
        factor, floor = relative.groups()
        bottom = Fixed(Relative.floor) if floor is None else Fixed(*read_number(floor))
        return Relative(read_number(factor)[0], bottom.value, bottom.unit)
    if points := re.fullmatch(r"\+\s*([\w.][^%]*?)\s*pt", text.strip()):
        return Rise(read_number(points[1])[0])
    return Fixed(*read_number(text))


def _per_task(values: Iterable[float | str]) -> PerTask:
    values = list(values)
    if any(isinstance(v, str) and v.strip().endswith("pt") for v in values):
        raise ValueError(f"points can't be listed by position, as in {values}: {BY_NAME}")
    parsed = [read_number(v) if isinstance(v, str) else (v, "loss") for v in values]
    units = {unit for _, unit in parsed} or {"loss"}
    if len(units) > 1:
        raise ValueError("tolerances per task mix loss and error rate (%): write all of them in one unit")
    return PerTask(tuple(number for number, _ in parsed), units.pop())
