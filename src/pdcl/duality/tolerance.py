"""Tolerances ε: what a past task may have, in loss or in error rate.

Task t is learned under `L_k(θ) ≤ ε_k` for every past task k. A tolerance says where ε_k comes from: one number for
all tasks, one per task, or a factor over what task k had reached when it was stored. It always carries its unit.

>>> as_tolerance("1.1x>=0.02").of(task=3, reached=0.5)
0.55
>>> describe(as_tolerance("5%"))
'5%'
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from numbers import Real

import numpy as np
import torch

UNITS = ("loss", "error")
FORMS = '0.05 (loss), "5%" (error rate), "1.1x" or "1.1x>=0.02" (relative, with a floor), or one value per task'


@dataclass(frozen=True)
class Fixed:
    """ε_k = value for every task."""

    value: float
    unit: str = "loss"

    def __post_init__(self) -> None:
        _check_unit(self.unit)
        object.__setattr__(self, "value", _bound(self.value, self.unit, "tolerance"))

    def of(self, task: int, reached: float | None = None) -> float:
        """ε_k of task k; what the task reached doesn't matter."""
        return self.value


@dataclass(frozen=True)
class PerTask:
    """ε_k = values[k]."""

    values: tuple[float, ...]
    unit: str = "loss"

    def __post_init__(self) -> None:
        _check_unit(self.unit)
        values = tuple(_bound(v, self.unit, f"tolerance of task {k}") for k, v in enumerate(self.values))
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
        _check_unit(self.unit)
        factor = _number(self.factor, "factor of a relative tolerance")
        if factor <= 0:
            raise ValueError(f"factor of a relative tolerance must be positive, not {factor}: 1.1 allows 10 % more")
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "floor", _bound(self.floor, self.unit, "floor of a relative tolerance"))

    def of(self, task: int, reached: float | None = None) -> float:
        """ε_k of task k, from the value m_k that it had reached."""
        if reached is None:
            raise ValueError(
                f"the relative tolerance {describe(self)} of task {task} needs what the task had reached: "
                "give reached=, or use a fixed tolerance"
            )
        epsilon = max(self.factor * _number(reached, f"value reached by task {task}"), self.floor)
        return min(epsilon, 1.0) if self.unit == "error" else epsilon


Tolerance = Fixed | PerTask | Relative
Written = float | str | Sequence[float | str] | np.ndarray | torch.Tensor | Tolerance


def as_tolerance(value: Written) -> Tolerance:
    """A tolerance from what a user writes: 0.05, "0.05", "5%", "1.1x", "1.1x>=0.02", "5%,10%" or a list of values."""
    if isinstance(value, (Fixed, PerTask, Relative)):
        return value
    if isinstance(value, (np.ndarray, torch.Tensor)):
        value = value.tolist()
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, Iterable):
        return _per_task(value)
    return Fixed(_number(value, "tolerance"))


def describe(tolerance: Tolerance) -> str:
    """The text that `as_tolerance` reads back as the same tolerance."""
    if isinstance(tolerance, Fixed):
        return _write(tolerance.value, tolerance.unit)
    if isinstance(tolerance, PerTask):
        texts = [_write(v, tolerance.unit) for v in tolerance.values]
        return ",".join(texts) + ("," if len(texts) == 1 else "")
    if tolerance.unit == "loss" and tolerance.floor == Relative.floor:
        return f"{tolerance.factor!r}x"
    return f"{tolerance.factor!r}x>={_write(tolerance.floor, tolerance.unit)}"


def _parse(text: str) -> Tolerance:
    if "," in text:
        return _per_task(part for part in text.split(",") if part.strip())
    if relative := re.fullmatch(r"([^x×]*)[x×](?:\s*(?:>=|≥)(.*))?", text.strip()):
        factor, floor = relative.groups()
        bottom = Fixed(Relative.floor) if floor is None else Fixed(*_read(floor))
        return Relative(_read(factor)[0], bottom.value, bottom.unit)
    return Fixed(*_read(text))


def _per_task(values: Iterable[float | str]) -> PerTask:
    parsed = [_read(v) if isinstance(v, str) else (v, "loss") for v in values]
    units = {unit for _, unit in parsed} or {"loss"}
    if len(units) > 1:
        raise ValueError("tolerances per task mix loss and error rate (%): write all of them in one unit")
    return PerTask(tuple(number for number, _ in parsed), units.pop())


def _read(text: str) -> tuple[float, str]:
    """Number and unit. Decimal, so that "7%" is 0.07 and not 0.07000000000000001."""
    digits = text.strip().removesuffix("%")
    try:
        number = Decimal(digits)
    except InvalidOperation:
        raise ValueError(f"can't read a tolerance from {text!r}: write {FORMS}") from None
    if not text.strip().endswith("%"):
        return float(digits), "loss"
    return float(number.scaleb(-2) if number.is_finite() else number), "error"


def _write(value: float, unit: str) -> str:
    return repr(value) if unit == "loss" else f"{Decimal(repr(value)).scaleb(2).normalize():f}%"


def _check_unit(unit: str) -> None:
    if unit not in UNITS:
        raise ValueError(f'unit of a tolerance must be "loss" or "error" (error rate), not {unit!r}')


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{what} must be a number, not {value!r}: write {FORMS}")
    if not math.isfinite(value):
        raise ValueError(f"{what} must be finite, not {value}: for no constraint at all give a large number")
    return float(value)


def _bound(value: object, unit: str, what: str) -> float:
    number = _number(value, what)
    if number < 0:
        raise ValueError(f"{what} must not be negative, but is {number}: losses and error rates start at 0")
    if unit == "error" and number > 1:
        raise ValueError(f"{what} is an error rate and must lie in [0, 1], but is {number}: 5 % is 0.05")
    return number
