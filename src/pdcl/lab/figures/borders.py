"""Where large duals lie: at the border between a task's classes or inside them, as the network's last layer sees it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pdcl.lab.reports.holdings import Holdings

NEIGHBOURS = 10
LARGE = 0.1
FEWEST = 20


@dataclass(frozen=True)
class Borders:
    """Shares of stored samples that lie at a class border (or are marked otherwise): of large duals, and of all."""

    large: float
    all: float


def borders(held: Holdings) -> Borders | None:
    """A sample is at a border if one of the ten nearest stored samples of its task has another label.

    None where there are no features, no duals or too few samples.
    """
    if held.features is None or len(held.y) < FEWEST or held.y.ndim != 1:
        return None
    at_border = np.zeros(len(held.y), bool)
    for rows in _by_task(held):
        at_border[rows] = near_another_class(held.features[rows], held.y[rows])
    return among_large(at_border, held)


def among_large(marked: NDArray[np.bool_], held: Holdings) -> Borders | None:
    """The share of marked samples among large duals and among all; None without duals.

    Large are the highest tenth of each task, zeros left out: duals of different tasks have different scales, and those
    of the newest task are no prices of limits. A task counts in both shares by how many large duals it has.
    """
    large, everywhere, counts = [], [], []
    for rows in _by_task(held):
        count = min(max(1, round(LARGE * len(rows))), int((held.dual[rows] > 0).sum()))
        if count:
            highest = rows[np.argsort(-held.dual[rows], kind="stable")[:count]]
            large.append(marked[highest].mean())
            everywhere.append(marked[rows].mean())
            counts.append(count)
    if not counts:
        return None
    return Borders(float(np.average(large, weights=counts)), float(np.average(everywhere, weights=counts)))


def near_another_class(features: NDArray[np.floating], labels: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether one of the ten nearest others has another label."""
    points = np.nan_to_num(features.astype(np.float64))
    squares = (points**2).sum(1)
    distance = squares[:, None] + squares - 2 * points @ points.T
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, : min(NEIGHBOURS, len(points) - 1)]
    return np.asarray((labels[nearest] != labels[:, None]).any(1))


def _by_task(held: Holdings) -> list[NDArray[np.intp]]:
    return [np.flatnonzero(held.task == task) for task in np.unique(held.task)]
