"""From p-values to verdicts: per row, and for the model as a whole.

A row PASSES if "above the limit" is refuted by Holm's procedure over all rows, and FAILS if "at most the limit" is.
Some such PASS is wrong, or some FAIL, with probability at most `level` each, however the rows hang together. The model
passes iff "above" is refuted at `level` in every row (intersection–union needs no correction); its rows pass with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.judging.bounds import Floats
from pdcl.release.estimates import Estimate, Mean, further

PASS, FAIL, UNDECIDED = "PASS", "FAIL", "UNDECIDED"
Mask = npt.NDArray[np.bool_]


def holm(p: Floats, level: float) -> Mask:
    """Which of the claims [..., m] Holm's step-down procedure refutes.

    >>> holm(np.array([0.01, 0.04, 0.03]), 0.05).tolist()
    [True, False, False]
    """
    order = np.argsort(p, axis=-1)
    thresholds = level / np.arange(p.shape[-1], 0, -1)
    refuted = np.logical_and.accumulate(np.take_along_axis(p, order, axis=-1) <= thresholds, axis=-1)
    found = np.zeros(p.shape, dtype=bool)
    np.put_along_axis(found, order, refuted, axis=-1)
    return found


def passes(above: Floats, level: float) -> Mask:
    """Whether the whole passes, from the p-values [..., m] of "above the limit"."""
    return np.asarray((above <= level).all(axis=-1))


@dataclass(frozen=True)
class Row:
    """One question: does `group` keep `limit`?

    before, now: the two error rates, where the limit is on a drop. task: the one whose memory and dual the advice is
    about.
    """

    criterion: str
    group: str
    limit: float
    estimate: Estimate
    samples: int
    before: float | None = None
    now: float | None = None


@dataclass(frozen=True)
class Judged:
    """A row with its verdict. `lower` and `upper` hold for all rows at once (Bonferroni).

    clip: losses count up to here in the bounds. beyond: samples that reach it; then there is no `upper`, no `loosest`.
    `alone`: it would pass whatever the other rows say (Holm). `loosest`: the least limit under which this row lets the
    model pass. `needed`: further samples (groups, where there are) that would decide it if they are like those here.
    """

    criterion: str
    group: str
    limit: float
    estimate: float
    samples: int
    units: int
    lower: float
    upper: float | None
    p_above: float
    p_below: float
    verdict: str
    alone: bool
    loosest: float | None
    needed: int | None
    method: str
    before: float | None = None
    now: float | None = None
    clip: float | None = None
    beyond: int = 0

    def as_json(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True)
class Decision:
    verdict: str
    level: float
    rows: list[Judged]


def decide(rows: Sequence[Row], level: float) -> Decision:
    """The verdict on every row and on the whole, wrong PASSes and wrong FAILs each with probability ≤ `level`."""
    share = level / len(rows)
    above = np.array([row.estimate.above(row.limit, share) for row in rows])
    below = np.array([row.estimate.below(row.limit, share) for row in rows])
    alone, failed, whole = holm(above, level), holm(below, level), bool(passes(above, level))
    verdicts = [_verdict(whole or bool(a), bool(f)) for a, f in zip(alone, failed, strict=True)]
    judged = [
        _judged(row, verdicts[i], bool(alone[i]), (float(above[i]), float(below[i])), level, share)
        for i, row in enumerate(rows)
    ]
    return Decision(FAIL if failed.any() else PASS if whole else UNDECIDED, level, judged)


def _verdict(passed: bool, failed: bool) -> str:
    return FAIL if failed else PASS if passed else UNDECIDED


def _judged(row: Row, verdict: str, alone: bool, p: tuple[float, float], level: float, share: float) -> Judged:
    estimate = row.estimate
    return Judged(
        row.criterion,
        row.group,
        row.limit,
        estimate.mean,
        row.samples,
        estimate.units,
        estimate.lower(share),
        _finite(estimate.upper(share)),
        *p,
        verdict,
        alone,
        _finite(estimate.upper(level)),
        _needed(row, level, share) if verdict == UNDECIDED else None,
        estimate.method,
        row.before,
        row.now,
        *_clipping(row),
    )


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def _clipping(row: Row) -> tuple[float | None, int]:
    estimate = row.estimate
    return (estimate.scale, estimate.beyond) if row.criterion == "loss" and isinstance(estimate, Mean) else (None, 0)


def _needed(row: Row, level: float, share: float) -> int | None:
    """To let the model pass (or fail it); where this row already lets it pass, to pass whatever the others say."""
    enough = row.estimate.above(row.limit, share) <= level
    return further(row.estimate, row.limit, share if enough else level, share)
