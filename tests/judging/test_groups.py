"""Samples of one group (a patient, a speaker) are alike: intervals that count groups hold, those that don't fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pdcl.errors import UsageError
from pdcl.judging.verdicts import judge_task
from pdcl.limits.limit import Limit

GROUPS, SIZE, TRIALS = 40, 8, 200
SHARE, RISE = Limit("30%", value=0.3), Limit("+2pt", rise=0.02)
MEMBERS = np.repeat(np.arange(GROUPS), SIZE)


def _outcomes(rng: np.random.Generator) -> tuple[Any, Any]:
    """Errors then at 20 %. Now a quarter of the groups is wrong in 80 % of its samples, the others as before: 35 %."""
    then = (rng.random(GROUPS * SIZE) < 0.2).astype(float)
    hit = np.repeat(rng.random(GROUPS) < 0.25, SIZE)
    return then, np.where(hit, rng.random(GROUPS * SIZE) < 0.8, then).astype(float)


def _coverage(limit: Limit, groups: Any, trials: int = TRIALS) -> float:
    """How often the interval of `now` covers the truth: .35, or what was seen then and the true change of .15."""
    rng, covered = np.random.default_rng(5), 0
    for _ in range(trials):
        then, now = _outcomes(rng)
        row = judge_task("ward", limit, then, now, groups=groups)
        truth = 0.35 if limit is SHARE else row.then + 0.15
        covered += row.low <= truth <= row.high
    return covered / trials


@pytest.mark.parametrize("limit", [SHARE, RISE], ids=["share", "rise"])
def test_intervals_over_groups_cover_where_samples_of_a_group_are_alike(limit: Limit) -> None:
    """True coverage is at least .95: 200 trials fall below .93 less than once in ten, with this seed they don't."""
    assert _coverage(limit, MEMBERS) >= 0.93


@pytest.mark.parametrize("limit", [SHARE, RISE], ids=["share", "rise"])
def test_ignoring_groups_they_would_not(limit: Limit) -> None:
    assert _coverage(limit, None, 60) < 0.9


def test_a_group_counts_once_whatever_its_size() -> None:
    now = np.array([1.0] * 90 + [0.0] * 10)
    row = judge_task("a", SHARE, None, now, groups=["big"] * 90 + [f"small {i}" for i in range(10)])
    assert row.now == pytest.approx(1 / 11)
    assert (row.samples, row.groups) == (100, 11)
    assert row.sentence.startswith("undecided: 100 witnesses of 11 groups; about ")
    assert row.sentence.endswith(" groups would decide")
    assert row.wants is not None
    assert row.wants > 11


def test_groups_of_one_sample_are_judged_as_samples_are() -> None:
    then, now = np.repeat([1.0, 0.0], [10, 190]), np.repeat([1.0, 0.0], [30, 170])
    for limit in (SHARE, RISE):
        assert judge_task("a", limit, then, now, groups=np.arange(200)) == judge_task("a", limit, then, now)


def test_errors_that_are_shares_are_judged_as_means() -> None:
    """Of texts, say: .1 of the tokens of each are wrong, far below 30 %, as exactly as one can tell from 200."""
    row = judge_task("a", SHARE, None, np.full(200, 0.1))
    assert (row.verdict, row.now) == ("kept", pytest.approx(0.1))
    assert judge_task("a", RISE, np.full(400, 0.1), np.full(400, 0.5)).verdict == "BROKEN"


def test_a_group_for_every_outcome_is_asked_for() -> None:
    with pytest.raises(UsageError, match="2 groups for 3 outcomes"):
        judge_task("a", SHARE, None, [0.0, 1.0, 0.0], groups=[1, 1])
