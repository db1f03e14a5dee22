"""The numbers in what a user writes: read with their unit, written back exactly, refused in one line.

>>> read_number("7%")
(0.07, 'error')
"""

import math
from decimal import Decimal, InvalidOperation
from numbers import Real

from pdcl.given import float_of, short

UNITS = ("loss", "error")
FORMS = (
    '0.05 (loss), "5%" (error rate), "+2pt" (points more error than it had), "1.1x" or "1.1x>=0.02" (relative, with a '
    "floor), or one value per task"
)
SIGNED = "write +2pt for two points more than it had, or 2% for an absolute error"
BY_NAME = 'name the tasks, as in "first:+2pt, second:+3pt", or write one rise for all of them'


def read_number(text: str) -> tuple[float, str]:
    """Number and unit. Decimal, so that "7%" is 0.07 and not 0.07000000000000001."""
    digits = text.strip().removesuffix("%")
    if digits.startswith("+") or digits.endswith("pt"):
        raise ValueError(f"can't read a tolerance from {text!r}: {SIGNED}")
    try:
        number = Decimal(digits)
    except InvalidOperation:
        raise ValueError(f"can't read a tolerance from {short(text)}: write {FORMS}") from None
    if not text.strip().endswith("%"):
        return float(digits), "loss"
    return float(number.scaleb(-2) if number.is_finite() else number), "error"


def write_number(value: float, unit: str) -> str:
    return repr(value) if unit == "loss" else f"{Decimal(repr(value)).scaleb(2).normalize():f}%"


def check_unit(unit: str) -> None:
    if unit not in UNITS:
        raise ValueError(f'unit of a tolerance must be "loss" or "error" (error rate), not {unit!r}')


def checked_number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{what} must be a number, not {value!r}: write {FORMS}")
    if not math.isfinite(float_of(value)):
        raise ValueError(f"{what} must be finite, not {short(value)}: for no constraint at all give a large number")
    return float_of(value)


def checked_bound(value: object, unit: str, what: str) -> float:
    number = checked_number(value, what)
    if number < 0:
        raise ValueError(f"{what} must not be negative, but is {number}: losses and error rates start at 0")
    if unit == "error" and number > 1:
        raise ValueError(f"{what} is an error rate and must lie in [0, 1], but is {number}: 5 % is 0.05")
    return number
