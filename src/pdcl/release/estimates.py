"""An estimate from audit data, with its bounds and its p-values against a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pdcl.judging import bounds
from pdcl.judging.bounds import Floats
from pdcl.judging.clipping import Span

# A search for a sample size ends here: more would not be collected.
Column = npt.NDArray[Any]
MOST = 10**9
MOST_VALUES = 10**6
BETTING = "betting (Waudby-Smith, Ramdas)"


class Estimate(Protocol):
    """An estimate in the unit of its limit. `units` is what was counted: samples, or groups of samples."""

    @property
    def mean(self) -> float: ...
    @property
    def units(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def most(self) -> int: ...
    def upper(self, level: float) -> float: ...
    def lower(self, level: float) -> float: ...
    def above(self, limit: float, level: float) -> float: ...
    def below(self, limit: float, level: float) -> float: ...
    def grown(self, units: int) -> Estimate: ...


@dataclass(frozen=True)
class Rate:
    """`errors` among `units` independent samples."""

    errors: int
    units: int
    method: str = "exact binomial (Clopper–Pearson)"
    most: int = MOST

    @property
    def mean(self) -> float:
        return self.errors / self.units

    def upper(self, level: float) -> float:
        return float(bounds.rate_upper(self.errors, self.units, level))

    def lower(self, level: float) -> float:
        return float(bounds.rate_lower(self.errors, self.units, level))

    def above(self, limit: float, level: float) -> float:
        return float(bounds.rate_above(self.errors, self.units, limit))

    def below(self, limit: float, level: float) -> float:
        return float(bounds.rate_below(self.errors, self.units, limit))

    def grown(self, units: int) -> Rate:
        """The same rate on more samples, rounded up."""
        return replace(self, errors=math.ceil(self.mean * units - 1e-9), units=units)


@dataclass(frozen=True)
class Mean:
    """The mean of independent values in [0, 1], times `scale`, plus `shift`: clipped losses, error rates of groups,
    or with 2 and −1 changes in [−1, 1].

    beyond: how many losses reach the clip, which is `scale`. Where some do, nothing bounds the mean of the losses from
    above; "above the limit" still follows from the clipped ones. raw: their mean as they are. widens: as of a `Span`.
    """

    values: Floats
    scale: float = 1.0
    method: str = BETTING
    most: int = MOST_VALUES
    beyond: int = 0
    raw: float | None = None
    shift: float = 0.0
    widens: float = math.inf

    @property
    def mean(self) -> float:
        return self.clipped if self.raw is None else self.raw

    @property
    def clipped(self) -> float:
        return float(self.values.mean()) * self.scale + self.shift

    @property
    def units(self) -> int:
        return len(self.values)

    @property
    def shuffled(self) -> Floats:
        """In an order that can't follow the values, however the audit set is sorted; the same in every repetition."""
        return self.values[np.random.default_rng(0).permutation(len(self.values))]

    def upper(self, level: float) -> float:
        return math.inf if self.beyond else bounds.mean_upper(self.shuffled, level) * self.scale + self.shift

    def lower(self, level: float) -> float:
        return bounds.mean_lower(self.shuffled, level) * self.scale + self.shift

    def above(self, limit: float, level: float) -> float:
        return 1.0 if self.beyond else float(bounds.mean_above(self.shuffled, (limit - self.shift) / self.scale, level))

    def below(self, limit: float, level: float) -> float:
        return float(bounds.mean_below(self.shuffled, (limit - self.shift) / self.scale, level))

    def grown(self, units: int) -> Mean:
        """The same values, repeated up to this many; the clip is that of so many."""
        wide = Span(self.scale, self.widens).at(units)
        return replace(self, values=np.resize(self.values * (self.scale / wide), units), scale=wide)


def decides(estimate: Estimate, limit: float, level: float, failing: float | None = None) -> bool:
    """Whether this much data settles the question: a PASS at `level`, or a FAIL at `failing` (default: the same)."""
    return estimate.above(limit, level) <= level or estimate.below(limit, failing or level) <= (failing or level)


def further(estimate: Estimate, limit: float, level: float, failing: float | None = None) -> int | None:
    """How many more samples (or groups) would decide it, if they turned out as those here did. None: no number would.

    >>> further(Rate(0, 100), 0.01, 0.05)
    199
    """
    if isinstance(estimate, Mean) and estimate.beyond and estimate.clipped <= limit:
        return None
    have, low = estimate.units, estimate.units
    high = 2 * have
    while not decides(estimate.grown(high), limit, level, failing):
        low, high = high, 2 * high
        if high > estimate.most:
            return None
    while high - low > max(1, low // 200 if have > 1000 else 0):
        middle = (low + high) // 2
        low, high = (low, middle) if decides(estimate.grown(middle), limit, level, failing) else (middle, high)
    return high - have


def certifiable(units: int, level: float) -> float:
    """The smallest error rate that so many samples can ever certify: with no error among them.

    >>> round(certifiable(59, 0.05), 4)
    0.0495
    """
    return float(bounds.rate_upper(0, units, level))


def wanted(limit: float, level: float) -> int:
    """How many samples without an error certify this limit."""
    return math.ceil(math.log(level) / math.log1p(-limit)) if 0 < limit < 1 else 0


def estimate_of(values: Floats, clusters: Column | None, span: Span | None = None) -> Estimate:
    """0–1 outcomes of independent samples are counted; anything else is a mean of values in [0, 1].

    With clusters (patients, speakers), each counts once, by the mean over its samples. span: losses count up to its
    end; those that reach it are counted, since no number of samples bounds them. What is no number counts as its end.
    """
    if span is not None:
        clip = span.top
        values = np.where(np.isfinite(values), values, clip)
        unit, beyond = each_once(np.minimum(values, clip) / clip, clusters), int((values >= clip).sum())
        raw = float(each_once(values, clusters).mean()) if beyond else None
        return Mean(unit, clip, beyond=beyond, raw=raw, widens=span.widens)
    unit = each_once(values, clusters)
    if np.isin(unit, (0.0, 1.0)).all() and (clusters is None or len(unit) == len(values)):
        return Rate(int(unit.sum()), len(unit))
    return Mean(unit)


def once(mask: Column, alike: Column) -> Column:
    """The first row of each kind among those of the mask; alike: a number per row, the same for copies."""
    chosen = np.flatnonzero(mask)
    _, first = np.unique(alike[chosen], return_index=True)
    found = np.zeros(len(mask), dtype=bool)
    found[chosen[first]] = True
    return found


def each_once(values: Floats, clusters: Column | None) -> Floats:
    """One value per cluster: the mean over its samples."""
    if clusters is None:
        return values
    _, member = np.unique(clusters, return_inverse=True)
    return np.asarray(np.bincount(member, values) / np.bincount(member))
