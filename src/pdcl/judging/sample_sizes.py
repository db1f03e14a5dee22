"""How many samples decide a limit: normal theory for planning, never for a verdict.

With z_a the normal quantile and g the distance of the truth from the limit, for a test at one-sided `level` that finds
the truth with probability `power`:

    paired        n = (z_level √v_Δ + z_power √v)² / g²     v = q − d²: variance of a sample's change, where q is the
                  share of changed predictions and d the change of the error; v_Δ: the same under d = Δ, the limit
    error rate    the same with v = r(1 − r), v_Δ = Δ(1 − Δ)
    mean          n = (√(2 ln(1/level)) + z_power)² σ²/g² + 1.3 r ln(1/level)/g   by betting: it pays for not counting
                  r: from the limit to the end of the range beyond it, since a stake can't lose more than all; at
                  least .28. With losses 1/g grows as √n: more of them count up to a larger maximum (`clipping`)

and, for the first two, at least what is needed where nothing at all goes wrong: ln(1/level)/g.
For two points at level .05 and power .5 this gives 381 (5 % changed) to 1,361 (20 %); with v instead of v_Δ, 339 to
1,353. Power .8 needs 837 to 3,104.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from pdcl.judging.paired import likeliest

# The least r of a mean.
CLOSE = 0.28
# More would not be collected: the truth is too near the limit for samples to tell.
MOST = 10**6


def samples_needed(
    points: float, changed: float, power: float = 0.8, level: float = 0.05, change: float = 0.0
) -> int | None:
    """Paired samples that decide "at most `points` points worse", None: more than a million.

    changed: share of predictions that are newly wrong or newly right. change: what the error rate truly rose by.

    >>> samples_needed(2, 0.05), samples_needed(2, 0.2), samples_needed(2, 0.05, power=0.5)
    (837, 3104, 381)
    """
    limit = points / 100
    p10 = float(likeliest(np.float64((changed + change) / 2), np.float64((changed - change) / 2), 1, limit))
    at_limit, variance = 2 * p10 + limit - limit**2, max(changed - change**2, 0.0)
    return _number(_spread(at_limit, variance, power, level), abs(limit - change), level)


def samples_needed_for_rate(limit: float, rate: float, power: float = 0.8, level: float = 0.05) -> int | None:
    """Samples that decide "an error rate of at most `limit`" where the rate truly is `rate`.

    >>> samples_needed_for_rate(0.10, 0.05), samples_needed_for_rate(0.01, 0.0)
    (184, 300)
    """
    return _number(_spread(limit * (1 - limit), rate * (1 - rate), power, level), abs(rate - limit), level)


def samples_needed_for_mean(
    limit: float, mean: float, deviation: float, power: float = 0.8, level: float = 0.05, widens: float = math.inf
) -> int | None:
    """Samples that decide a limit on a mean by betting, where values lie in [0, 1].

    widens: with more samples than so many the range is wider, as is their root: n = a + b √(n / widens).
    """
    gap, doubt = abs(mean - limit), math.log(1 / level)
    if gap * MOST < doubt:
        return None
    room = max(1 - limit if mean < limit else limit, CLOSE)
    a, b = ((math.sqrt(2 * doubt) + _z(1 - power)) * deviation / gap) ** 2, 1.3 * room * doubt / gap
    half = b / math.sqrt(widens) / 2
    n = a + b if a + b <= widens else (half + math.sqrt(half**2 + a)) ** 2
    return math.ceil(n) if n <= MOST else None


def _spread(at_limit: float, variance: float, power: float, level: float) -> float:
    return (_z(level) * math.sqrt(at_limit) + _z(1 - power) * math.sqrt(variance)) ** 2


def _number(needed: float, gap: float, level: float) -> int | None:
    if gap <= 0 or max(needed / gap**2, math.log(1 / level) / gap) > MOST:
        return None
    return math.ceil(max(needed / gap**2, math.log(1 / level) / gap))


def _z(tail: float) -> float:
    return -float(ndtri(tail))
