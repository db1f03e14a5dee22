"""What is read off an accuracy matrix, and what may be said about several seeds.

A matrix holds acc_i(j) as `matrix[j][i]`: the score on task i after learning task j. Rows are the tasks learned so far;
columns may reach beyond them, to tasks that are still to come. Rows that stop at the diagonal are fine where nothing
asks for the future.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdcl.errors import UsageError

Matrix = Sequence[Sequence[float | None]] | NDArray[Any]


def mean_accuracy(matrix: Matrix) -> float:
    """Average over the T tasks learned of acc_i(T)."""
    scores = _learned(matrix)
    return float(scores[-1, : len(scores)].mean())


def forgetting(matrix: Matrix) -> list[float]:
    """max over l < T of acc_i(l) − acc_i(T), for every task i < T; negative where a task ended at its best."""
    scores = _learned(matrix)
    past = scores[:-1, : len(scores) - 1]
    # A ragged matrix doesn't say how well a task did before it was learned; what is known decides.
    best = np.fmax.reduce(past, axis=0, initial=np.nan)
    return [float(value) for value in best - scores[-1, : len(scores) - 1]]


def mean_forgetting(matrix: Matrix) -> float:
    """Average of `forgetting`; 0 after one task, which nothing could have displaced."""
    values = forgetting(matrix)
    return float(np.mean(values)) if values else 0.0


def backward_transfer(matrix: Matrix) -> float:
    """Average over i < T of acc_i(T) − acc_i(i): what later tasks did to earlier ones; 0 after one task."""
    scores = _learned(matrix)
    change = scores[-1, : len(scores)] - np.diagonal(scores)
    return float(change[:-1].mean()) if len(change) > 1 else 0.0


def forward_transfer(matrix: Matrix, chance: float | Sequence[float]) -> float:
    """Average over i > 1 of acc_i(i − 1) − chance_i: what earlier tasks gave to one not yet seen; 0 after one task."""
    scores = _learned(matrix)
    tasks = len(scores)
    before = np.diagonal(scores, offset=1)[: tasks - 1]
    if len(before) < tasks - 1 or np.isnan(before).any():
        raise UsageError(
            "forward transfer needs every task's score before it was learned; the matrix stops at its diagonal"
        )
    guess = np.asarray(chance, dtype=float)
    if guess.ndim and len(guess) != tasks:
        raise UsageError(f"chance has {len(guess)} values for {tasks} tasks; give one for all or one per task")
    return float((before - np.broadcast_to(guess, (tasks,))[1:]).mean()) if tasks > 1 else 0.0


def _learned(matrix: Matrix) -> NDArray[np.float64]:
    """The matrix as T × K floats, K ≥ T, with NaN where a ragged row ends or a score is missing (None)."""
    rows = [np.asarray(row, dtype=float) for row in matrix]
    if not rows or any(row.ndim != 1 for row in rows):
        raise UsageError("an accuracy matrix has one row of scores per learned task; this one has none")
    scores = np.full((len(rows), max(len(row) for row in rows)), np.nan)
    for j, row in enumerate(rows):
        if len(row) <= j:
            raise UsageError(
                f"row {j} of the accuracy matrix has {len(row)} scores; it needs one for each of tasks 0 to {j}"
            )
        scores[j, : len(row)] = row
    return scores


def interval(values: Sequence[float] | NDArray[Any], level: float = 0.95) -> tuple[float, float]:
    """Mean and half the width of Student's t interval for it; the width of one value is unknown (NaN)."""
    sample = np.asarray(values, dtype=float)
    if sample.ndim != 1 or not len(sample):
        raise UsageError("an interval needs at least one value")
    if not 0 < level < 1:
        raise UsageError(f"an interval's level lies between 0 and 1, not at {level}")
    if len(sample) == 1:
        return float(sample[0]), math.nan
    return float(sample.mean()), quantile(level, len(sample)) * _standard_error(sample)


@dataclass(frozen=True)
class Paired:
    """A mean difference over n shared seeds, its t interval, and the two-sided p-value of "there is none"."""

    mean: float
    low: float
    high: float
    n: int
    p: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def paired_difference(a: Mapping[int, float], b: Mapping[int, float], level: float = 0.95) -> Paired:
    """a − b over the seeds that both have. Without a shared seed all but `n` is NaN, with one the interval is."""
    seeds = sorted(a.keys() & b.keys())
    if not seeds:
        return Paired(math.nan, math.nan, math.nan, 0, math.nan)
    differences = np.array([a[seed] - b[seed] for seed in seeds])
    mean, half = interval(differences, level)
    return Paired(mean, mean - half, mean + half, len(seeds), _p_value(differences))


def _p_value(sample: NDArray[np.float64]) -> float:
    """Two-sided p-value of Student's t for a mean of 0."""
    from scipy.special import stdtr

    mean = float(sample.mean())
    if len(sample) == 1 or math.isnan(mean):
        return math.nan
    error = _standard_error(sample)
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return 2 * float(stdtr(len(sample) - 1, -abs(mean / error)))


def quantile(level: float, n: int) -> float:
    # scipy.special costs a tenth of what scipy.stats does to import.
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + level) / 2))


def _standard_error(sample: NDArray[np.float64]) -> float:
    return float(sample.std(ddof=1)) / math.sqrt(len(sample))
