"""To which side an undecided row leans, in words, with its one-sided p-value."""

from __future__ import annotations

from pdcl.release.criteria import PAIRED
from pdcl.release.deciding import UNDECIDED, Judged

# Weaker than this it leans nowhere.
WEAK = 0.2


def leaning(row: Judged) -> str:
    """`probably broken: +6.0 pt where +2 pt is allowed (p = 0.031 if it were kept)`; for rows that are undecided."""
    if row.verdict != UNDECIDED:
        return ""
    if row.p_below < WEAK and row.estimate > row.limit:
        return f"probably broken: {_seen(row)} (p = {row.p_below:.2g} if the limit were kept)"
    if row.p_above < WEAK and row.estimate < row.limit:
        return f"probably kept: {_seen(row)} (p = {row.p_above:.2g} if the limit were broken)"
    return f"leans nowhere: {_seen(row)}"


def _seen(row: Judged) -> str:
    if row.criterion in PAIRED:
        return f"{100 * row.estimate:+.1f} pt where {100 * row.limit:+g} pt is allowed"
    if row.criterion == "loss":
        return f"{row.estimate:.4g} where {row.limit:.4g} is allowed"
    return f"{100 * row.estimate:.1f} % where {100 * row.limit:g} % is allowed"
