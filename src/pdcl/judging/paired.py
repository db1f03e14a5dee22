"""How much worse than before, from the same samples judged twice: exact bounds of the change.

Each of n independent samples was right or wrong then and is right or wrong now. B of them are newly wrong, C newly
right; (B, C) is trinomial with p01 and p10. The change of the error rate is d = p01 − p10; how often the model was
wrong then doesn't matter. Bounds that hold for every n (Buehler 1957), at one-sided level δ:

    upper = the largest Δ with  β + max over p10 in I_β of P_Δ((B, C) in R) > δ
    R: all outcomes (b, c) whose approximate upper bound, the Δ with T(b, c; Δ) = z_δ, is at most that of what was seen
    T(b, c; Δ) = sign(b − c − nΔ) sqrt(2 (ℓ(b/n, c/n) − ℓ(p̃ + Δ, p̃))),    ℓ: log-likelihood, p̃: likeliest p10 at Δ
    I_β: the exact interval of p10 from c at level β; values of p10 far from it would cost power (Berger, Boos 1994)

P is a sum over c of binomial tails of b; nothing is simulated, and T alone decides nothing.

How often rivals find "at most 2 points worse" where d = 0, 5 % of predictions changed, level .025, n = 773: this .67,
betting .51, a bound for each of p01 and p10 at half the level .22; normal theory .67. Tango's score instead of T is as
good there, but finds half as much or less at level .0025 (ten rows) where few predictions changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import betainc, gammaln, ndtri, xlog1py, xlogy

from pdcl.judging.bounds import Floats, rate_lower, rate_upper

# β as a part of the level, points in I_β, and how exactly a bound is found: a hundredth of what a table shows.
NUISANCE = 0.02
GRID = 24
STEP = 1e-5
# Outcomes further out than this many standard deviations (and ten) have less than 1e-11 of the probability.
REACH = 7.0


# Of many tasks with few witnesses each, most show the same counts.
@lru_cache(maxsize=10_000)
def change_upper(newly_wrong: int, newly_right: int, n: int, level: float) -> float:
    """The upper bound of the change d at one-sided confidence 1 − level.

    >>> f"{change_upper(0, 0, 150, 0.05):.3f} {change_upper(9, 8, 340, 0.025):.3f}"
    '0.020 0.029'
    """
    _check(newly_wrong, newly_right, n)
    if newly_wrong == n:
        return 1.0
    seen, near = (newly_wrong - newly_right) / n, _approximate_upper(newly_wrong, newly_right, n, level)
    region = _region(newly_wrong, newly_right, n, near)
    beta = NUISANCE * level
    inside = float(rate_lower(newly_right, n, beta / 2)), float(rate_upper(newly_right, n, beta / 2))

    def doubt(change: float) -> float:
        """log(p/δ), falling with the change; 0 at the bound."""
        return math.log((beta + _largest(region, n, change, *inside)) / level)

    step = max((near - seen) / 50, 2 * STEP)
    (low, above), (high, below) = _around(doubt, near, step, seen)
    while high - low > STEP:
        # log p is nearly linear in Δ; 0.1 and 0.9 keep it from crawling where it isn't.
        middle = low + (high - low) * min(max(above / (above - below), 0.1), 0.9)
        value = doubt(middle)
        if value <= 0:
            high, below = middle, value
        else:
            low, above = middle, value
    return high


def change_lower(newly_wrong: int, newly_right: int, n: int, level: float) -> float:
    """The lower bound of the change d at one-sided confidence 1 − level."""
    return -change_upper(newly_right, newly_wrong, n, level)


def change_above(newly_wrong: int, newly_right: int, n: int, limit: float, level: float) -> float:
    """p of "the change is above the limit": β + max over p10 in I_β of P_limit((B, C) in R).

    Valid whatever it is compared with, since `level` fixes the order of outcomes and β; at `level` it decides as
    `change_upper` does.

    >>> f"{change_above(0, 0, 150, 0.02, 0.05):.4f}"
    '0.0493'
    """
    _check(newly_wrong, newly_right, n)
    if (newly_wrong - newly_right) / n >= limit:
        return 1.0
    region = _region(newly_wrong, newly_right, n, _approximate_upper(newly_wrong, newly_right, n, level))
    beta = NUISANCE * level
    inside = float(rate_lower(newly_right, n, beta / 2)), float(rate_upper(newly_right, n, beta / 2))
    return min(1.0, beta + _largest(region, n, limit, *inside))


def signed_root(b: Floats | np.float64, c: Floats | np.float64, n: int, change: float) -> Floats:
    """T(b, c; Δ): by how many standard errors, nearly, the change seen is above Δ."""
    p10 = likeliest(b, c, n, change)
    even, p00 = np.maximum(n - b - c, 0.0), np.maximum(1 - 2 * p10 - change, 0.0)
    seen = xlogy(b, b / n) + xlogy(c, c / n) + xlogy(even, even / n)
    # Impossible under d = Δ: as far from it as can be.
    under = [xlogy(k, np.maximum(p, 1e-300)) for k, p in ((b, p10 + change), (c, p10), (even, p00))]
    return np.asarray(np.sign(b - c - n * change) * np.sqrt(2 * np.maximum(seen - sum(under), 0.0)))


def likeliest(b: Floats | np.float64, c: Floats | np.float64, n: float, change: float) -> Floats:
    """p̃: the p10 that makes (b, c) of n likeliest under d = Δ (Tango 1998)."""
    half = -b - c + (2 * n - b + c) * change
    root = np.sqrt(np.maximum(half * half + 8 * n * c * change * (1 - change), 0.0))
    return np.clip((root - half) / (4 * n), max(0.0, -change), (1 - change) / 2)


def _approximate_upper(b: int, c: int, n: int, level: float) -> float:
    """The Δ with T(b, c; Δ) = z_δ. T falls with Δ."""
    low, high, quantile = (b - c) / n, 1.0, float(ndtri(level))
    for _ in range(40):
        middle = (low + high) / 2
        above = float(signed_root(np.float64(b), np.float64(c), n, middle)) > quantile
        low, high = (middle, high) if above else (low, middle)
    return high


def _region(b: int, c: int, n: int, near: float) -> Floats:
    """R, as for each c from 0 to n the largest b with T at `near` at most as seen, −1 where there is none: [n + 1]."""
    every = np.arange(n + 1.0)
    seen = float(signed_root(np.float64(b), np.float64(c), n, near)) + 1e-9
    low, high = np.full(every.shape, -1.0), n - every
    while (low < high).any():
        middle = np.ceil((low + high) / 2)
        below = signed_root(middle, every, n, near) <= seen
        low, high = np.where(below, middle, low), np.where(below, high, middle - 1)
    return np.asarray(low)


def _largest(region: Floats, n: int, change: float, low: float, high: float) -> float:
    """The largest P_Δ(R) over p10 from `low` to `high`, 0 where none of them allows the change."""
    low, high = max(low, -change), min(high, (1 - change) / 2)
    if low > high:
        return 0.0
    p10 = np.linspace(math.sqrt(low), math.sqrt(high), GRID)[:, None] ** 2
    wide = REACH * np.sqrt(n * p10 * (1 - p10)) + 10
    c = np.maximum(np.floor(n * p10 - wide), 0) + np.arange(int(2 * wide.max()) + 2.0)
    inside, c = c <= n, np.minimum(c, n)
    weight = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1) + xlogy(c, p10) + xlog1py(n - c, -p10)
    p01 = np.clip((p10 + change) / np.maximum(1 - p10, 1e-300), 0.0, 1.0)
    tails = np.exp(weight) * _binomial(region[c.astype(int)], n - c, p01) * inside
    return float(tails.sum(axis=1).max())


def _binomial(k: Floats, n: Floats, p: Floats) -> Floats:
    """P(Bin(n, p) ≤ k), with k from −1 to n."""
    tail = betainc(np.maximum(n - k, 1), np.maximum(k + 1, 1), 1 - p)
    return np.where(k < 0, 0.0, np.where(k >= n, 1.0, tail))


Place = tuple[float, float]


def _around(doubt: Callable[[float], float], near: float, step: float, seen: float) -> tuple[Place, Place]:
    """Two changes with their doubts, the first above 0, the second not, found in growing steps from `near`."""
    value = doubt(near)
    refuted, last = value <= 0, (near, value)
    while True:
        place = max(last[0] - step, seen) if refuted else min(last[0] + step, 1.0)
        value = 1.0 if place <= seen else -1.0 if place >= 1 else doubt(place)
        if (value <= 0) != refuted:
            return ((place, value), last) if refuted else (last, (place, value))
        last, step = (place, value), 2 * step


def _check(newly_wrong: int, newly_right: int, n: int) -> None:
    if n < 1 or newly_wrong < 0 or newly_right < 0 or newly_wrong + newly_right > n:
        raise ValueError(
            f"{newly_wrong} newly wrong and {newly_right} newly right of {n} samples is impossible: "
            "give counts of at least 0 that sum to at most n, and at least one sample"
        )
