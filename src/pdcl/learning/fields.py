"""Check the types of options: integers, finite numbers, true or false."""

from __future__ import annotations

import math
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

from pdcl.errors import UsageError
from pdcl.given import float_of, short

LARGEST = 2**64


def check_fields(owner: Any) -> None:
    """Raise UsageError for a field whose value isn't of its declared kind; NumPy's numbers become Python's."""
    for each in fields(owner):
        if each.init:
            kinds = _declared(each.type)
            value = getattr(owner, each.name)
            if value is not None or "None" not in kinds:
                setting = _checked(each.name, value, kinds)
                if setting is not value:
                    object.__setattr__(owner, each.name, setting)


def check_unused(owner: Any) -> None:
    """Raise UsageError for a stated option that its class has no use for."""
    for each in fields(owner):
        if each.name in owner.unused and getattr(owner, each.name) != each.default:
            said = f"{each.name}={getattr(owner, each.name)!r}"
            raise UsageError(f"{said} has no effect on {type(owner).__name__}; leave it out")


def _declared(kind: Any) -> set[str]:
    text = kind if isinstance(kind, str) else (kind.__name__ if isinstance(kind, type) else str(kind))
    return {part.strip() for part in text.split("|")}


def _checked(name: str, value: Any, kinds: set[str]) -> Any:
    kinds = kinds - {"None"}
    if kinds == {"int"}:
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise UsageError(f"{name}={value!r} must be a whole number")
        if abs(int(value)) >= LARGEST:
            raise UsageError(f"{name}={short(value)} must be below 2**64")
        return int(value)
    if kinds == {"float"}:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise UsageError(f"{name}={value!r} must be a number")
        if not math.isfinite(float_of(value)):
            raise UsageError(f"{name}={short(value)} must be finite")
        # bool is left out above, and an int is kept: 1 and 1.0 are written differently in a run's name.
        return float(value) if not isinstance(value, Integral) else int(value)
    if kinds == {"bool"} and not isinstance(value, bool):
        raise UsageError(f"{name}={value!r} must be True or False")
    # A choice may also be an object, such as a rule of the user's own.
    if kinds == {"str"} and (value is None or isinstance(value, Real)):
        raise UsageError(f"{name}={value!r} must be a text")
    return value
