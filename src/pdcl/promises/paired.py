"""How much worse than before, from the same samples judged twice: an exact test and its bounds.

Each of n independent samples was right or wrong then and is right or wrong now. B of them are newly wrong, C newly
right; (B, C) is trinomial with p01 and p10. The change of the error rate is d = p01 − p10; how often the model was
wrong then doesn't matter. The claim "d is at least Δ" is refuted when its p-value is at most the level:

    T(b, c; Δ) = (b − c − nΔ) / sqrt(n (2 p̃ + Δ − Δ²)),    p̃: the likeliest p10 under d = Δ      (Tango 1998)
    p = β + max over p10 in I_β of P(T(B, C; Δ) ≤ T observed),   I_β: the exact interval of p10 from C at level β

The maximum over the unknown p10 makes it hold for every n (Chan, Zhang 1999); without the interval, p10 far from what
was seen would cost power (Berger, Boos 1994). P is a sum over c of binomial tails of b: nothing is simulated.

Against its rivals, share of "at most 2 points worse" that is found where d = 0 and 5 % of predictions changed, level
.025 and n = 773: this .67, betting .51, a bound for each of p01 and p10 at half the level .22; normal theory .67.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, gammaln, ndtri, xlog1py, xlogy

from pdcl.promises.bounds import Floats, rate_lower, rate_upper

# β as a part of the level, points in I_β, and how exactly a bound is found: a hundredth of what a table shows.
NUISANCE = 0.02
GRID = 24
STEP = 1e-5
# Outcomes further out than this many standard deviations (and ten) have less than 1e-11 of the probability.
REACH = 7.0


def change_upper(newly_wrong: int, newly_right: int, n: int, level: float) -> float:
    """The upper bound of the change d at one-sided confidence 1 − level: every larger change is refuted.

    >>> f"{change_upper(0, 0, 150, 0.05):.3f} {change_upper(9, 8, 340, 0.025):.3f}"
    '0.020 0.029'
    """
    _check(newly_wrong, newly_right, n)
    if newly_wrong == n:
        return 1.0
    low, high = _bracket(newly_wrong, newly_right, n, level)
    while high - low > STEP:
        middle = (low + high) / 2
        refuted = change_above(newly_wrong, newly_right, n, middle, level) <= level
        low, high = (low, middle) if refuted else (middle, high)
    return high


def change_lower(newly_wrong: int, newly_right: int, n: int, level: float) -> float:
    """The lower bound of the change d at one-sided confidence 1 − level."""
    return -change_upper(newly_right, newly_wrong, n, level)


def change_above(newly_wrong: int, newly_right: int, n: int, change: float, level: float) -> float:
    """p of "the change is `change` or more"; it holds whatever it is compared with, and is sharpest for `level`."""
    beta = NUISANCE * level
    low = max(float(rate_lower(newly_right, n, beta / 2)), -change)
    high = min(float(rate_upper(newly_right, n, beta / 2)), (1 - change) / 2)
    if low > high:
        return beta
    grid = np.linspace(np.sqrt(low), np.sqrt(high), GRID) ** 2
    seen = float(score(np.float64(newly_wrong), np.float64(newly_right), n, change))
    return min(1.0, beta + float(_tails(grid, n, change, seen + 1e-9).max()))


def score(b: Floats | np.float64, c: Floats | np.float64, n: int, change: float) -> Floats:
    """T(b, c; Δ): by how many standard errors the change seen is above Δ."""
    half = -b - c + (2 * n - b + c) * change
    root = np.sqrt(np.maximum(half * half + 8 * n * c * change * (1 - change), 0.0))
    likeliest = np.maximum((root - half) / (4 * n), max(0.0, -change))
    variance = n * np.maximum(2 * likeliest + change * (1 - change), 1e-15)
    return np.asarray((b - c - n * change) / np.sqrt(variance))


def _tails(grid: Floats, n: int, change: float, seen: float) -> Floats:
    """P(T ≤ seen) under d = Δ, for each p10 of the grid."""
    wide = REACH * np.sqrt(n * grid * (1 - grid)) + 10
    start = np.maximum(np.floor(n * grid - wide), 0)[:, None]
    c = start + np.arange(int(2 * wide.max()) + 2)
    inside, c = c <= n, np.minimum(c, n)
    first = start.min()
    every = np.arange(first, c.max() + 1)
    b = _most(every, n, change, seen)[(c - first).astype(int)]
    p10 = grid[:, None]
    weight = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1) + xlogy(c, p10) + xlog1py(n - c, -p10)
    p01 = np.clip((p10 + change) / np.maximum(1 - p10, 1e-300), 0.0, 1.0)
    return np.asarray((np.exp(weight) * _binomial(b, np.asarray(n - c, dtype=float), p01) * inside).sum(axis=1))


def _most(c: Floats, n: int, change: float, seen: float) -> Floats:
    """For each c the largest b with T(b, c; Δ) ≤ seen, −1 where there is none. T grows with b."""
    low, high = np.full(c.shape, -1.0), n - c
    while (low < high).any():
        middle = np.ceil((low + high) / 2)
        below = score(middle, c, n, change) <= seen
        low, high = np.where(below, middle, low), np.where(below, high, middle - 1)
    return np.asarray(low)


def _binomial(k: Floats, n: Floats, p: Floats) -> Floats:
    """P(Bin(n, p) ≤ k), with k from −1 to n."""
    tail = betainc(np.maximum(n - k, 1), np.maximum(k + 1, 1), 1 - p)
    return np.where(k < 0, 0.0, np.where(k >= n, 1.0, tail))


def _bracket(b: int, c: int, n: int, level: float) -> tuple[float, float]:
    """Two changes, the first not refuted, the second refuted (or 1), near where normal theory has the bound."""
    found, most = (b - c) / n, 1.0
    low, high = found, most
    while high - low > STEP:
        middle = (low + high) / 2
        refuted = float(score(np.float64(b), np.float64(c), n, middle)) <= float(ndtri(level))
        low, high = (low, middle) if refuted else (middle, high)
    step = max((high - found) / 50, 2 * STEP)
    low, high = max(high - step, found), min(high + step, most)
    while low > found and change_above(b, c, n, low, level) <= level:
        low, high, step = max(low - 2 * step, found), low, 2 * step
    while high < most and change_above(b, c, n, high, level) > level:
        low, high, step = high, min(high + 2 * step, most), 2 * step
    return low, high


def _check(newly_wrong: int, newly_right: int, n: int) -> None:
    if n < 1 or newly_wrong < 0 or newly_right < 0 or newly_wrong + newly_right > n:
        raise ValueError(
            f"{newly_wrong} newly wrong and {newly_right} newly right of {n} samples is impossible: "
            "give counts of at least 0 that sum to at most n, and at least one sample"
        )
