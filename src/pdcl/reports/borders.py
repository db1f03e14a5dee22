"""Where large duals lie: at the border between classes or inside them, as the network's last layer sees it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pdcl.reports.holdings import Holdings

NEIGHBOURS = 10
LARGE = 0.1
FEWEST = 20


@dataclass(frozen=True)
class Borders:
    """Shares of stored samples that lie at a class border: of those with large duals, and of all."""

    large: float
    all: float


def borders(held: Holdings) -> Borders | None:
    """A sample is at a border if one of its ten nearest stored samples has another label.

    Large duals are the highest tenth, zeros left out. None where there are no features, no duals or too few samples.
    """
    if held.features is None or len(held.y) < FEWEST or held.y.ndim != 1 or not (held.dual > 0).any():
        return None
    at_border = near_another_class(held.features, held.y)
    count = min(max(1, round(LARGE * len(held.dual))), int((held.dual > 0).sum()))
    highest = np.argsort(-held.dual, kind="stable")[:count]
    return Borders(float(at_border[highest].mean()), float(at_border.mean()))


def near_another_class(features: NDArray[np.floating], labels: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether one of the ten nearest others has another label."""
    points = np.nan_to_num(features.astype(np.float64))
    squares = (points**2).sum(1)
    distance = squares[:, None] + squares - 2 * points @ points.T
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, : min(NEIGHBOURS, len(points) - 1)]
    return np.asarray((labels[nearest] != labels[:, None]).any(1))
