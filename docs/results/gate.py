"""How often the paired gate is wrong, and how many samples it needs: exact, by enumeration of all outcomes.

python docs/results/gate.py      prints the tables of docs/results/gate.md, in some ten minutes on one core

Of n samples b are newly wrong and c newly right. For each c the gate passes every b up to some k(c), found here by
asking the gate; P(PASS) is then a sum of binomial tails, and the worst model with a given drop is searched over p10.
"""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from pdcl.judging.bounds import rate_above
from pdcl.judging.paired import change_above

LIMIT, POWER = 0.02, 0.8


@cache
def passes(b: int, c: int, n: int, level: float, limit: float = LIMIT) -> bool:
    return change_above(b, c, n, limit, level) <= level


def boundary(n: int, level: float, rows: range) -> np.ndarray:
    """k(c) for each c in `rows`, −1 where nothing passes. It rises with c, so each search starts at the one before."""
    found, k = [], -1
    for c in rows:
        k = min(k, n - c)
        while k >= 0 and not passes(k, c, n, level):
            k -= 1
        while k + 1 <= n - c and passes(k + 1, c, n, level):
            k += 1
        found.append(k)
    return np.asarray(found)


def chance(n: int, ks: np.ndarray, rows: range, p10: float, change: float) -> float:
    """P(PASS) of a model with these rates."""
    c = np.asarray(rows)
    p01 = min(1.0, (p10 + change) / (1 - p10))
    tails = np.where(ks < 0, 0.0, binom.cdf(ks, n - c, p01))
    return float((binom.pmf(c, n, p10) * tails).sum())


def worst(n: int, level: float) -> float:
    """The largest P(PASS) of any model whose drop is exactly the limit."""
    rows = range(n + 1)
    ks = boundary(n, level, rows)
    grid = np.linspace(0, np.sqrt((1 - LIMIT) / 2), 400) ** 2
    values = [chance(n, ks, rows, p, LIMIT) for p in grid]
    at = int(np.argmax(values))
    ends = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    best = minimize_scalar(lambda p: -chance(n, ks, rows, p, LIMIT), bounds=ends, method="bounded")
    return max(max(values), -float(best.fun))


def paired_power(n: int, changed: float, level: float) -> float:
    """P(PASS) where nothing got worse and this share of predictions changed."""
    wide = 5 * np.sqrt(n * changed / 2) + 10
    rows = range(int(max(0, n * changed / 2 - wide)), int(min(n, n * changed / 2 + wide)) + 1)
    return chance(n, boundary(n, level, rows), rows, changed / 2, 0.0)


def unpaired_power(n: int, rate: float, level: float) -> float:
    """P(PASS) of `--max-error (rate + limit)` on a model with this error rate."""
    errors = np.arange(n + 1)
    return float(binom.pmf(errors, n, rate)[rate_above(errors, n, rate + LIMIT) <= level].sum())


def needed(power: object, *about: float) -> int:
    """The least n, to about 1 %, with the wanted power."""
    low, high = 50, 100
    while power(high, *about) < POWER:  # type: ignore[operator]
        low, high = high, 2 * high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle, *about) >= POWER else (middle, high)  # type: ignore[operator]
    return high


def main() -> None:
    print("| n | 1 look | one of 12 looks |\n|---|---|---|")
    for n in (25, 50, 100, 150, 200, 250, 300):
        print(f"| {n} | {100 * worst(n, 0.05):.2f} % | {100 * 12 * worst(n, 0.05 / 12):.2f} % |", flush=True)
    for looks in (1, 12):
        print(f"\n{looks} looks\n| error rate, changed | paired | unpaired |\n|---|---|---|")
        level = 0.05 / looks
        for rate, changed in ((0.05, 0.02), (0.05, 0.05), (0.1, 0.05), (0.1, 0.1), (0.2, 0.2)):
            both = needed(paired_power, changed, level), needed(unpaired_power, rate, level)
            print(f"| {rate:.0%}, {changed:.0%} | {both[0]:,} | {both[1]:,} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
