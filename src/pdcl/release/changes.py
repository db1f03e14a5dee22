"""How much worse than another state, from the same samples judged by both: the estimates behind `--max-drop`.

Independent samples are counted: newly wrong and newly right ones give exact bounds of the change (`judging.paired`),
valid for every limit. McNemar's test would be valid for a limit of 0 alone.
Groups of samples (patients) count once each, by the mean change d in [−1, 1] over their samples: betting on (1 + d)/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pdcl.judging.bounds import Floats
from pdcl.judging.paired import change_above, change_lower, change_upper
from pdcl.release.estimates import BETTING, Estimate, Mean, each_once

if TYPE_CHECKING:
    from pdcl.streams.samples import Column

# The exact bounds take time in proportion to n.
MOST_PAIRED = 100_000


@dataclass(frozen=True)
class Change:
    """`newly_wrong` and `newly_right` among `units` independent samples."""

    newly_wrong: int
    newly_right: int
    units: int
    method: str = "exact, paired (Buehler)"
    most: int = MOST_PAIRED

    @property
    def mean(self) -> float:
        return (self.newly_wrong - self.newly_right) / self.units

    @property
    def _counts(self) -> tuple[int, int, int]:
        return self.newly_wrong, self.newly_right, self.units

    def upper(self, level: float) -> float:
        return change_upper(*self._counts, level)

    def lower(self, level: float) -> float:
        return change_lower(*self._counts, level)

    def above(self, limit: float, level: float) -> float:
        return change_above(*self._counts, limit, level)

    def below(self, limit: float, level: float) -> float:
        return change_above(self.newly_right, self.newly_wrong, self.units, -limit, level)

    def grown(self, units: int) -> Change:
        """The same shares of more samples, newly wrong ones rounded up and newly right ones down."""
        wrong = math.ceil(self.newly_wrong / self.units * units - 1e-9)
        right = math.floor(self.newly_right / self.units * units + 1e-9)
        return replace(self, newly_wrong=wrong, newly_right=min(right, units - wrong), units=units)


def change_of(new: Floats, old: Floats, clusters: Column | None) -> Estimate:
    """The change of the error rate. new, old: 0–1 errors of the same samples, [n]; clusters: who each sample is of."""
    change = each_once(new - old, clusters)
    if np.isin(change, (-1.0, 0.0, 1.0)).all() and (clusters is None or len(change) == len(new)):
        return Change(int((change > 0).sum()), int((change < 0).sum()), len(change))
    return Mean((1 + change) / 2, 2.0, f"{BETTING} on (1 + new − old) / 2", shift=-1.0)
