"""One language for limits: +2pt, 5% and 0.05 are read alike by every option of gate and update.

>>> amount_of("+2pt", "max_drop"), amount_of("5%", "max_error"), amount_of(0.05, "max_error")
(0.02, 0.05, 0.05)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pdcl.errors import UsageError
from pdcl.given import number_of, short
from pdcl.limits.tolerance import Fixed, Rise, as_tolerance

Stated = float | str
NO_RISE = ("max_error", "min_sensitivity", "min_specificity", "max_loss", "clip")


def amount_of(given: Any, name: str, option: str | None = None) -> float:
    """A limit as a number. option: says which units make sense; by default the name, which messages show."""
    option = option or name
    if not isinstance(given, str):
        return number_of(given, name)
    try:
        read = as_tolerance(given)
    except ValueError as error:
        raise UsageError(f"{name}={short(given)}: {error}") from None
    if isinstance(read, Rise):
        if option in NO_RISE:
            raise UsageError(f"{name}={short(given)} is a rise, which max_drop limits; write 5% or 0.05 here")
        return read.floor
    if not isinstance(read, Fixed):
        raise UsageError(f"{name}={short(given)} must be one number, such as 0.05, 5% or, for a drop, +2pt")
    if option in ("max_loss", "clip") and read.unit == "error":
        raise UsageError(f"{name}={short(given)} is a loss and has no percent; write a number such as 0.5")
    return read.value


def amounts_of(given: Any, option: str | None = None) -> dict[str, float]:
    """Limits by group, in the unit of the option that they stand beside."""
    if given is not None and not isinstance(given, Mapping):
        raise UsageError(f"limits={short(given)} must be limits by group, such as {{'owl': 0.1}}")
    return {str(name): amount_of(value, f"limits[{str(name)!r}]", option) for name, value in (given or {}).items()}
