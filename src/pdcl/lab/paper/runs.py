"""The runs that claims are judged by, found by stream, method, memory and options that a study added to a preset."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pdcl.lab.figures.selecting import options_given
from pdcl.metrics import Paired, interval, paired_difference, quantile
from pdcl.records import Row

BySeed = Mapping[int, float]
HELD, NOT_HELD, UNDECIDED, NOT_RUN = "held", "not held", "undecided", "not run"
# The memory of every claim that names no other.
SIZE = 500
# Of correlations: z of ±1 is infinite.
LARGEST = 0.99
LEVEL = 0.95
CORRELATION = "correlation"


def _open(low: float, high: float) -> str:
    return UNDECIDED


@dataclass(frozen=True)
class Finding:
    """What runs say of a claim: a number, its 95 % interval over seeds (NaN: unknown), and whether it held.

    decide: the verdict of an interval; one of counts has none.
    """

    verdict: str
    number: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    unit: str = "points"
    decide: Callable[[float, float], str] = _open

    def widened(self, rows: int) -> Finding:
        """The same with an interval so wide that so many together are right in 95 % (Bonferroni). Counts stay."""
        if math.isnan(self.low) or self.n < 2:
            return self
        longer = quantile(1 - (1 - LEVEL) / rows, self.n) / quantile(LEVEL, self.n)
        bend, back = (math.atanh, math.tanh) if self.unit == CORRELATION else (float, float)
        middle = bend(self.number)
        low, high = (back(middle + longer * (bend(end) - middle)) for end in (self.low, self.high))
        return replace(self, low=low, high=high, verdict=self.decide(low, high))


ABSENT = Finding(NOT_RUN)


class Runs:
    """Runs of one family of presets."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = [(row, options_given(row)) for row in rows]

    def find(self, stream: str, label: str, memory: int, **options: Any) -> dict[int, Row]:
        """Runs by seed to which exactly these options were given, on top of their preset."""
        return {
            row.seed: row
            for row, given in self.rows
            if (row.stream, row.label, row.memory) == (stream, label, memory)
            and given == frozenset(options)
            and all(_value(row, name) == value for name, value in options.items())
        }

    def settings(self) -> list[tuple[str, int]]:
        """Streams and sizes of memory that plain runs have."""
        found = {(row.stream, row.memory) for row, given in self.rows if not given and isinstance(row.memory, int)}
        return sorted(found, key=str)


def _value(row: Row, name: str) -> Any:
    return row.options.get(name, row.options.get(f"stream.{name}"))


def metric(rows: Mapping[int, Row], name: str) -> dict[int, float]:
    """One of a row's numbers in percent, by seed."""
    return {seed: 100 * getattr(row, name) for seed, row in rows.items()}


def measured(rows: Mapping[int, Row], measure: Callable[[Row], float | None]) -> dict[int, float]:
    """A number of each run that has it, by seed."""
    found = {seed: measure(row) for seed, row in rows.items()}
    return {seed: value for seed, value in found.items() if value is not None}


def more(a: BySeed, b: BySeed, unit: str = "points") -> Finding:
    """Held if a − b is above 0 on the seeds that both have, beyond its 95 % interval."""
    return _judged(paired_difference(a, b), lambda low, high: (low > 0, high < 0), unit)


def no_more(a: BySeed, b: BySeed, margin: float) -> Finding:
    """Held if a − b stays below a margin; not held if it is above 0 for sure."""
    return _judged(paired_difference(a, b), lambda low, high: (high < margin, low > 0))


def no_less(a: BySeed, b: BySeed, margin: float) -> Finding:
    """Held if a − b stays above minus a margin; not held if it is below 0 for sure."""
    return _judged(paired_difference(a, b), lambda low, high: (low > -margin, high < 0))


def within(a: BySeed, b: BySeed, margin: float, unit: str = "points") -> Finding:
    """Held if a and b differ by less than a margin, not held if by more."""
    found = paired_difference(a, b)
    return _judged(found, lambda low, high: (-margin < low and high < margin, low > margin or high < -margin), unit)


def above(values: BySeed, bound: float, unit: str) -> Finding:
    """Held if the mean over seeds is above a bound."""
    mean, half = interval(list(values.values())) if values else (math.nan, math.nan)
    found = Paired(mean, mean - half, mean + half, len(values), math.nan)
    return _judged(found, lambda low, high: (low > bound, high < bound), unit)


def correlated(values: BySeed) -> Finding:
    """Held if the mean correlation over seeds is above 0; the interval is that of Fisher's z, so it stays within ±1."""
    clipped = {seed: min(max(value, -LARGEST), LARGEST) for seed, value in values.items()}
    found = above({seed: math.atanh(value) for seed, value in clipped.items()}, 0, CORRELATION)
    number, low, high = (math.tanh(each) for each in (found.number, found.low, found.high))
    return replace(found, number=number, low=low, high=high)


def _judged(found: Paired, ask: Callable[[float, float], tuple[bool, bool]], unit: str = "points") -> Finding:
    """ask: whether an interval says that a claim held, and whether it says that it didn't."""

    def decide(low: float, high: float) -> str:
        held, not_held = ask(low, high)
        return HELD if held else NOT_HELD if not_held else UNDECIDED

    if not found.n:
        return ABSENT
    return Finding(decide(found.low, found.high), found.mean, found.low, found.high, found.n, unit, decide)
