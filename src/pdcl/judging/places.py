"""How a task's error falls with its places in memory: error(n) = a + c · n^(-0.6), a ≥ 0, c ≥ 0.

a is what more memory can't mend. The power is that of the streams at hand; a curve through few points is a rough one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

POWER = 0.6


@dataclass(frozen=True)
class Curve:
    """error(n) = a + c · n^(-0.6), through `points` of (places, error). off: the largest distance from one of them."""

    a: float
    c: float
    off: float
    points: tuple[tuple[float, float], ...]

    @property
    def falls(self) -> bool:
        """Whether more places gave less error at all."""
        return self.c > 0

    def places(self, error: float) -> float | None:
        """The smallest n with error(n) ≤ error; None where no n is enough, or none can be told.

        >>> round(Curve(0.02, 1.0, 0.0, ()).places(0.07))
        147
        """
        if not self.falls:
            return min(n for n, _ in self.points) if all(found <= error for _, found in self.points) else None
        return (self.c / (error - self.a)) ** (1 / POWER) if error > self.a else None


def fit(points: Sequence[tuple[float, float]]) -> Curve:
    """Least squares through (places, error)."""
    n, errors = (np.asarray(column, dtype=float) for column in zip(*points, strict=True))
    shape = np.stack([np.ones_like(n), n**-POWER], axis=1)
    (a, c), _ = nnls(shape, errors)
    return Curve(float(a), float(c), float(np.abs(shape @ [a, c] - errors).max()), tuple(points))
