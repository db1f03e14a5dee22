"""What so many samples can decide, said before a look is spent: per limit, in words.

Sizes are those of normal theory (`sample_sizes`), with a power of 80 %; "at best" is exact.
"""

from __future__ import annotations

from pdcl.judging.paired import change_upper
from pdcl.judging.sample_sizes import samples_needed, samples_needed_for_rate
from pdcl.release.estimates import certifiable, wanted

POWER = 0.8
BISECTIONS = 40


def most_changed(count: int, limit: float, level: float) -> float | None:
    """The largest share of changed answers at which a model that is as good as before passes with 80 %.

    None: it can't pass, even if no answer changes.

    >>> f"{most_changed(1319, 0.02, 0.05):.3f} {most_changed(750, 0.02, 0.05 / 12):.3f}"
    '0.083 0.015'
    """
    if change_upper(0, 0, count, level) > limit:
        return None
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        needed = samples_needed(100 * limit, middle, POWER, level)
        low, high = (middle, high) if needed is not None and needed <= count else (low, middle)
    return low


def drop_line(name: str, count: int, limit: float, level: float) -> str:
    """What `count` samples can say about "at most `limit` more error than before"."""
    changed = most_changed(count, limit, level)
    head = f"  {name}, {100 * limit:+g}pt: {count:,} samples"
    if changed is None:
        least = f"{100 * change_upper(0, 0, count, level):+.1f}pt"
        needed = samples_needed(100 * limit, 0.05, POWER, level)
        more = "" if needed is None else f"; {needed:,} samples decide it where 5 % of answers change"
        return f"{head} can't let it pass, even if no answer changes: {least} is the least they can show{more}"
    if changed * count < 1:
        return f"{head}; a model as good as before passes only if no answer changes; otherwise UNDECIDED is likely"
    if changed > 0.5:
        return f"{head} decide it nearly always"
    return (
        f"{head}; a model as good as before passes (80 %) only if fewer than {100 * changed:.1f} % of answers change, "
        f"{int(changed * count):,} samples; where more change, UNDECIDED is likely"
    )


def error_line(name: str, count: int, level: float, limit: float | None = None) -> str:
    """What `count` samples can say about an error rate."""
    line = f"  {name}: {count:,} samples can certify an error rate of {100 * certifiable(count, level):.2f} % or more"
    if limit is None:
        return line
    if certifiable(count, level) > limit:
        return f"{line}; {100 * limit:g} % needs {wanted(limit, level)}, {wanted(limit, level) - count} more"
    low, high = 0.0, limit
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        needed = samples_needed_for_rate(limit, middle, POWER, level)
        low, high = (middle, high) if needed is not None and needed <= count else (low, middle)
    return f"{line}; {100 * limit:g} % passes (80 %) if the error is truly below {100 * low:.1f} %"
