"""What a row that doesn't pass says by itself: to which side it leans, how far it is, what would decide it."""

from __future__ import annotations

from pdcl.release.criteria import PAIRED
from pdcl.release.deciding import UNDECIDED, Judged
from pdcl.release.output import number

# Weaker than this it leans nowhere.
WEAK = 0.2


def about_row(row: Judged, looks: int = 1) -> list[str]:
    """Advice that needs no model. looks: how many there will be; fewer decide more."""
    if row.verdict != UNDECIDED:
        return [_limit(row)]
    what = "samples" if row.units == row.samples else "groups"
    if row.needed is None and row.beyond:
        return [
            leaning(row),
            _limit(row),
            f"no number of further {what} would decide it: none bounds losses that large",
        ]
    if row.needed is None:
        return [
            leaning(row),
            _limit(row),
            f"no number of further {what} would decide it: the estimate sits on the limit",
        ]
    told = f"about {row.needed:,} further {what} would decide it, if they turn out like these {row.units:,}"
    fewer = f"where there are no more: plan fewer looks at the next set (here {looks}), or a looser limit"
    return [leaning(row), _limit(row), told, *([fewer] if looks > 1 else [])]


def _limit(row: Judged) -> str:
    over = "over" if row.estimate > row.limit else "under"
    by = number(row, abs(row.estimate - row.limit))
    if row.loosest is None:
        return f"estimate {by} {over} its limit; {row.beyond:,} of {row.samples:,} losses are {row.clip:.4g} or more"
    if row.loosest <= row.limit:
        return f"estimate {by} under its limit; it lets the model pass, and is undecided only on its own (Holm)"
    return f"estimate {by} {over} its limit; the loosest limit that would pass: {number(row, row.loosest)}"


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
