"""How much a memory may hold: a number of samples, or a number of bytes."""

from __future__ import annotations

import re

from pdcl.errors import UsageError
from pdcl.given import short

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


MOST = 10**19


def parse_bound(bound: int | str) -> tuple[int | None, int | None]:
    """A bound as (samples, bytes), one of them None: `500`, `"500"`, `"64MB"`, `"1.5GiB"`."""
    match = None if isinstance(bound, int) and bound >= MOST else _number(str(bound))
    unit = match[2].upper() if match and match[2] else None
    if not match or (unit is None and not match[1].isdigit()):
        raise UsageError(f"memory={short(bound)} is neither a number of samples (500) nor of bytes ('64MB')")
    if float(match[1]) == 0:
        raise UsageError(f"memory={bound!r} holds nothing; give at least one sample per task")
    if unit is None:
        return int(match[1]), None
    return None, int(float(match[1]) * _UNITS[unit])


def parse_bytes(name: str, given: str) -> int:
    """A number of bytes: `"1GB"`, `"64MiB"`."""
    match = _number(str(given))
    if match is None or not match[2]:
        raise UsageError(f"{name}={given!r} is no number of bytes; write it with its unit, such as '1GB'")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _number(text: str) -> re.Match[str] | None:
    # No machine holds a number of twenty digits.
    return re.fullmatch(r"([0-9]{1,19}(?:\.[0-9]{1,9})?)\s*([KMG]?i?B)?", text.strip(), re.IGNORECASE)
