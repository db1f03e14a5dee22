"""What a task's errors are: confusion within what was known before, or taken by classes that came later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdcl.errors import UsageError


class Split(NamedTuple):
    """Shares of all samples. Their sum is the error rate, or the share of newly wrong samples where `then` is given."""

    within: float
    taken_by_new: float


def split_errors(
    targets: npt.ArrayLike,
    predictions: npt.ArrayLike,
    known: Iterable[int | str],
    then: npt.ArrayLike | None = None,
) -> Split:
    """Errors now, split by whether the predicted class was known when the task was learned.

    targets, predictions: class of each sample, [n]. known: the classes known then, the task's own included. then: 1
    where a sample was wrong then; such samples were not forgotten and don't count.

    >>> split_errors([0, 0, 1, 1], [0, 1, 5, 1], known=[0, 1])
    Split(within=0.25, taken_by_new=0.25)
    """
    truth, said = np.asarray(targets), np.asarray(predictions)
    if truth.shape != said.shape or truth.ndim != 1:
        raise UsageError(f"targets {truth.shape} and predictions {said.shape} must be one class per sample each")
    wrong = truth != said
    if then is not None:
        before = np.asarray(then, dtype=bool)
        if before.shape != truth.shape:
            raise UsageError(f"then has {before.shape} values for {truth.shape} targets: give one per sample")
        wrong &= ~before
    if not len(truth):
        return Split(0.0, 0.0)
    new = ~np.isin(said, np.asarray(list(known)))
    return Split(float((wrong & ~new).mean()), float((wrong & new).mean()))
