"""What could be done about a broken limit, with the numbers: more places in memory, fewer passes, a looser limit. And
about a task that was not learned."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from pdcl.judging.bounds import rate_upper
from pdcl.judging.intervals import Interval
from pdcl.judging.places import fit
from pdcl.limits.limit import Limit

# Rounding noise: a whole number of tenths must not be rounded up to the next tenth.
SLIVER = 1e-9
TRIES = 10
# Learned by heart: the error of replayed samples is at most this part of the error of samples that are held back.
BY_HEART = 0.25
# Their upper bound misses at most so often.
SIDE = 0.01
# Passes beyond which fewer are possible.
MORE_THAN_ONE = 1.5


class Held(NamedTuple):
    """places: samples of a task that were replayed while the newest was learned. samples: it was learned from.

    wrong, of looked: how many replayed samples of it are wrong now, of those that were looked at. passes: over the
    newest task's data.
    """

    places: int
    samples: int
    wrong: float = 0.0
    looked: int = 0
    passes: float = 0.0


def to_learn(past_weight: float) -> str:
    """Advice for a task that was not learned. past_weight: of all past tasks; base_most=1 makes it at most 1.

    >>> to_learn(0.0)
    'more epochs teach it better'
    """
    lighter = ", or past tasks that weigh less (base_most=1)," if past_weight > 1 else ""
    return f"more epochs{lighter} teach it better"


def remedies(limit: Limit, found: Interval, held: Held | None, tried: Callable[[Limit], Interval]) -> tuple[str, ...]:
    """Advice for one broken row. tried: the interval that the same samples give another limit."""
    if limit.unit == "loss":
        said = [_looser_loss(found, tried) if limit.factor is None else ""]
    else:
        said = ["" if held is None else _more_memory(found, held), _less_by_heart(found, held), _looser(limit, found)]
    return tuple(each for each in said if each)


def learned_by_heart(found: Interval, held: Held | None) -> float | None:
    """The error of a broken row's replayed samples, where the network knows them by heart; None where it doesn't.

    A weight lowers the error of the samples that it weighs. Where these are right already, and others of the task are
    not, it has nothing left to lower. The interval of the others must lie above the bound of the replayed ones, so that
    few samples don't say it by chance.

    >>> others = Interval(limit=0.05, then=None, now=0.24, low=0.18, high=0.31, kept=False, broken=True, wants=None)
    >>> learned_by_heart(others, Held(40, 1000, wrong=0, looked=40)), learned_by_heart(others, Held(9, 1000, 0, 9))
    (0.0, None)
    """
    if held is None or not held.looked:
        return None
    error, bound = held.wrong / held.looked, float(rate_upper(held.wrong, held.looked, SIDE))
    return error if error <= BY_HEART * found.now and bound < found.low else None


def _less_by_heart(found: Interval, held: Held | None) -> str:
    """What helps against samples that are learned by heart, beside more of them."""
    if held is None or learned_by_heart(found, held) is None:
        return ""
    return "fewer epochs or the method exact" if held.passes > MORE_THAN_ONE else "the method exact"


def _more_memory(found: Interval, held: Held) -> str:
    """Places that the limit needs, by the curve through two points: what was replayed, and all it was learned from.

    The task's error with all of its samples is taken to be what it was then, so this is the least that is needed.
    """
    if found.then is None or not 0 < held.places < held.samples:
        return ""
    if found.then > found.limit:
        return f"more memory won't do (all {held.samples:,} samples of it gave {100 * found.then:.1f} %)"
    wanted = fit([(held.places, found.now), (held.samples, found.then)]).places(found.limit) or math.inf
    return f"more memory (at least {math.ceil(min(wanted, held.samples)):,} places for it; it had {held.places:,})"


def _looser(limit: Limit, found: Interval) -> str:
    """The strictest limit of the same kind that these samples show to be kept; nothing for a multiple of what was."""
    if limit.rise is not None and found.then is not None:
        text = f"+{_tenths(found.high - found.then)}pt"
    elif limit.factor is not None:
        return ""
    else:
        text = f"{_tenths(found.high)}%"
    return f"looser limit ({text} would be kept)"


def _looser_loss(found: Interval, tried: Callable[[Limit], Interval]) -> str:
    """A limit in loss that these samples show to be kept. A looser limit has a wider clip, so it is tried out."""
    value = found.now if math.isinf(found.high) else found.high
    for _ in range(TRIES):
        text = f"{math.ceil(1000 * value) / 1000:g}"
        other = tried(Limit(text, "loss", value=float(text)))
        if other.kept:
            return f"looser limit ({text} would be kept)"
        value = max(1.1 * value, value if math.isinf(other.high) else other.high)
    return ""


def _tenths(share: float) -> str:
    """A share as percent, rounded up to a tenth."""
    return f"{math.ceil(1000 * share - SLIVER) / 10:g}"
