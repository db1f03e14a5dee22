"""What a caller hands over, checked by its kind before anything is done with it: paths, numbers, whole numbers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from pdcl.errors import UsageError

# Above this torch can't be seeded.
LARGEST_SEED = 2**64 - 1


def path_of(given: Any, what: str) -> Path:
    """A path as pathlib has it; UsageError for what is none."""
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise UsageError(f"{what}={short(given)} must be a path, such as 'model'")
    text = os.fspath(given)
    if "\0" in text:
        raise UsageError(f"{what}={short(text)} holds a zero byte, which no path can")
    if any(len(os.fsencode(part)) > 255 for part in Path(text).parts) or len(os.fsencode(text)) > 4000:
        raise UsageError(f"{what}={short(text)} has {len(text)} characters, too many for a path")
    return Path(text)


def number_of(given: Any, what: str) -> float:
    """A finite number as Python has it; UsageError for texts, truth and the like."""
    if isinstance(given, bool) or not isinstance(given, Real):
        raise UsageError(f"{what}={short(given)} must be a number, such as 0.05")
    value = float_of(given)
    if not math.isfinite(value):
        raise UsageError(f"{what}={short(given)} must be a finite, positive number")
    return value


def float_of(given: Real) -> float:
    """As Python's float; infinite for one that is too large for it."""
    try:
        return float(given)
    except OverflowError:
        return math.inf


def share_of(given: Any, what: str) -> float:
    """A number between 0 and 1, neither of them."""
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 < float_of(given) < 1:
        raise UsageError(f"{what} must lie between 0 and 1, not {short(given)}")
    return float_of(given)


def whole_of(given: Any, what: str, least: int, most: int | None = None) -> int:
    """A whole number as Python has it, between `least` and `most`."""
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise UsageError(f"{what}={short(given)} must be a whole number of at least {least}")
    value = int(given)
    if value < least:
        raise UsageError(f"{what}={short(value)} must be at least {least}")
    if most is not None and value > most:
        raise UsageError(f"{what}={short(value)} must be at most {most}")
    return value


def seed_of(given: Any, what: str = "seed") -> int:
    """A seed that every generator here takes."""
    return whole_of(given, what, 0, LARGEST_SEED)


def available_memory() -> int:
    """Bytes that can be taken now; where the system doesn't say, as many as can be counted."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2**63


def few(values: Iterable[Any], most: int = 8) -> str:
    """The first of many values in a message, and how many more there are.

    >>> few(range(3)), few("abc" * 40, most=2)
    ('0, 1, 2', "'a', 'b' … (120 in all)")
    """
    found = list(values)
    more = f" … ({len(found):,} in all)" if len(found) > most else ""
    return ", ".join(map(short, found[:most])) + more


def short(value: Any) -> str:
    """A value in a message: of one line, and not too long."""
    if isinstance(value, int) and abs(value) > 10**40:
        # Python refuses to write out a number of more than 4,300 digits.
        return f"a number of about {math.floor(math.log10(abs(value))) + 1} digits"
    return repr(value).replace("\n", " ")[:60]
