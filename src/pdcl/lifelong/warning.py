"""What is broken is said aloud in Python too: a warning that names the user's own line."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from pdcl.errors import LimitBroken
from pdcl.promises.table import Promises

PACKAGE = str(Path(__file__).resolve().parents[1])


def warn_of_broken(promises: Promises | None, then: str = "") -> None:
    """One `LimitBroken` for all broken rows of a table, none for what is kept or undecided. then: what was done."""
    if promises is None or not promises.broken:
        return
    said = "; ".join(f"{row.task}: {row.sentence}" for row in promises.broken)
    warnings.warn(f"{said}. {then}" if then else said, LimitBroken, stacklevel=_users_line())


def _users_line() -> int:
    """The `stacklevel` of the first caller outside this package, seen from the caller of this function."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
