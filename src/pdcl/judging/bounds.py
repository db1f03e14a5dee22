"""Confidence bounds that hold for every sample size: nothing here is asymptotic.

Error rates, n independent 0–1 outcomes with k ones (Clopper, Pearson 1934):
    upper = the p with P(Bin(n, p) ≤ k) = δ        lower = the p with P(Bin(n, p) ≥ k) = δ

Means of n independent values in [0, 1] (losses clipped and scaled, error rates of patients): betting against the claim
"the mean is at least m" (Waudby-Smith, Ramdas 2024). A gambler with capital 1 stakes λ_i, chosen before x_i is seen:
    K_t(m) = Π_{i ≤ t} (1 + λ_i (m − x_i)),    0 ≤ λ_i < 1/(1 − m)
If the claim is true, K is a supermartingale, so P(max_t K_t ≥ 1/δ) ≤ δ (Ville); upper is the least m so refuted. The
stakes λ_i = sqrt(2 ln(1/δ) / (n σ²_{i−1})) follow the variance seen so far, as in an empirical Bernstein bound.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv

Floats = npt.NDArray[np.float64]

# The largest part of the capital that a stake may lose at once.
BOLDEST = 0.9
BISECTIONS = 50


def rate_upper(errors: npt.ArrayLike, n: npt.ArrayLike, level: float) -> Floats:
    """The upper Clopper–Pearson bound at one-sided confidence 1 − level.

    >>> f"{rate_upper(0, 59, 0.05):.4f} {rate_upper(0, 299, 0.05):.4f}"
    '0.0495 0.0100'
    """
    k, size = np.asarray(errors, dtype=float), np.asarray(n, dtype=float)
    return np.where(k >= size, 1.0, betaincinv(k + 1, np.maximum(size - k, 1), 1 - level))


def rate_lower(errors: npt.ArrayLike, n: npt.ArrayLike, level: float) -> Floats:
    """The lower Clopper–Pearson bound at one-sided confidence 1 − level."""
    k, size = np.asarray(errors, dtype=float), np.asarray(n, dtype=float)
    return np.where(k <= 0, 0.0, betaincinv(np.maximum(k, 1), size - k + 1, level))


def rate_above(errors: npt.ArrayLike, n: npt.ArrayLike, limit: npt.ArrayLike) -> Floats:
    """p of "the error rate is above the limit": P(Bin(n, limit) ≤ errors)."""
    k, size = np.asarray(errors, dtype=float), np.asarray(n, dtype=float)
    return np.where(k >= size, 1.0, betainc(np.maximum(size - k, 1), k + 1, 1 - np.asarray(limit)))


def rate_below(errors: npt.ArrayLike, n: npt.ArrayLike, limit: npt.ArrayLike) -> Floats:
    """p of "the error rate is at most the limit": P(Bin(n, limit) ≥ errors)."""
    k, size = np.asarray(errors, dtype=float), np.asarray(n, dtype=float)
    return np.where(k <= 0, 1.0, betainc(np.maximum(k, 1), size - k + 1, limit))


def mean_above(values: Floats, limit: float, level: float) -> Floats:
    """p of "the mean is above the limit". values: [..., n] in [0, 1], in an order that doesn't depend on them.

    Valid as a p-value whatever it is compared with; the stakes are the best for `level`.
    """
    if limit >= 1:
        return np.zeros(values.shape[:-1])
    stakes = np.minimum(_stakes(values, level), BOLDEST / (1 - limit))
    capital = np.cumsum(np.log1p(stakes * (limit - values)), axis=-1)
    return np.asarray(np.exp(-np.maximum(capital.max(axis=-1), 0.0)))


def mean_below(values: Floats, limit: float, level: float) -> Floats:
    """p of "the mean is at most the limit"."""
    return mean_above(1 - values, 1 - limit, level)


def mean_upper(values: Floats, level: float) -> float:
    """The upper betting bound of the mean at one-sided confidence 1 − level. values: [n]."""
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if float(mean_above(values, middle, level)) <= level:
            high = middle
        else:
            low = middle
    return high


def mean_lower(values: Floats, level: float) -> float:
    """The lower betting bound of the mean at one-sided confidence 1 − level."""
    return 1 - mean_upper(1 - values, level)


def _stakes(values: Floats, level: float) -> Floats:
    """λ_i before truncation: from the variance of the values before i, with a prior of one value at 1/2."""
    count = np.arange(1, values.shape[-1] + 1)
    mean = (0.5 + np.cumsum(values, axis=-1)) / (count + 1)
    seen = (0.25 + np.cumsum(np.square(values - mean), axis=-1)) / (count + 1)
    before = np.concatenate([np.full((*values.shape[:-1], 1), 0.25), seen[..., :-1]], axis=-1)
    return np.asarray(np.sqrt(2 * np.log(1 / level) / (values.shape[-1] * before)))
