"""Losses are unbounded: a row says "kept" only where no loss is beyond what the bounds count."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pdcl.judging.clipping import LEAST, clip_of
from pdcl.judging.table import Promises
from pdcl.judging.verdicts import Question, judge, judge_task
from pdcl.limits.limit import Limit

ONE, FOUR = Limit("1.0", "loss", value=1.0), Limit("4.0", "loss", value=4.0)


def wrong_in(share: float, loss: float, n: int = 400) -> np.ndarray:
    """Losses of a classifier that is sure of itself: a share of the samples at `loss`, the others at 0."""
    return np.where(np.arange(n) < share * n, loss, 0.0)


def test_a_confident_classifier_above_its_limit_is_broken_though_losses_up_to_ln_100_are_below() -> None:
    """The mean is 2.0; clipped at ln 100 it would be .92."""
    row = judge_task("a", ONE, None, wrong_in(0.2, 10.0))
    assert (row.verdict, row.now) == ("BROKEN", pytest.approx(2.0))


def test_losses_that_reach_the_clip_are_never_kept_whatever_their_number() -> None:
    """One loss in 400 is 100, so that the mean is .25, far below the limit of 1; nobody knows how large others are."""
    row = judge_task("a", ONE, None, wrong_in(1 / 400, 100.0))
    assert (row.verdict, row.wants, row.high) == ("undecided", None, None)
    assert row.sentence == "undecided: 1 of 400 losses are 20 or more; what lies beyond can't be bounded"
    assert judge_task("a", ONE, None, wrong_in(1 / 400, 19.0)).verdict == "kept"
    assert judge_task("a", ONE, None, wrong_in(1 / 400, 100.0), kind="new").verdict == "undecided"


def test_the_mean_is_that_of_the_losses_and_not_of_the_clipped_ones() -> None:
    row = judge_task("a", ONE, wrong_in(0.1, 80.0), wrong_in(0.1, 90.0))
    assert (row.then, row.now, row.over) == pytest.approx((8.0, 9.0, 8.0))
    groups = judge_task("a", ONE, None, wrong_in(0.1, 90.0), groups=np.arange(400) // 4)
    assert (groups.now, groups.beyond) == (pytest.approx(9.0), 40)


def test_what_is_not_a_number_counts_as_the_clip_and_breaks_the_limit() -> None:
    row = judge_task("a", ONE, None, [0.1] * 50 + [np.inf, np.nan] * 25)
    assert (row.verdict, row.now, row.beyond) == ("BROKEN", pytest.approx((0.1 + 10) / 2), 50)


def test_the_clip_of_a_multiple_is_that_of_the_loss_that_it_allows() -> None:
    """1.1 × .2 is .22: 20 times that, for 400 samples, is less than ln 100."""
    assert clip_of(Limit("1.1x", "loss", factor=1.1), 400, typical=0.2) == LEAST
    assert clip_of(Limit("1.1x>=3", "loss", factor=1.1, value=3.0), 400, typical=0.2) == 60


def test_no_interval_of_clipped_losses_reaches_beyond_the_clip() -> None:
    """Three samples say next to nothing: what they had then and the largest rise are more than the clip together."""
    row = judge_task("a", Limit("1.1x", "loss", factor=1.1), np.full(3, 4.0), np.full(3, 4.0), typical=4.0)
    assert row.clip is not None
    assert row.high == row.clip
    assert row.low == 0


@pytest.mark.parametrize("value", [6.0, 900.0, 1e38])
def test_limits_of_any_size_can_be_kept_and_broken(value: float) -> None:
    limit = Limit(str(value), "loss", value=value)
    assert judge_task("a", limit, None, np.full(400, min(0.2 * value, 1e6))).verdict == "kept"
    assert judge_task("a", limit, None, np.full(400, np.inf)).verdict == "BROKEN"


def test_a_limit_that_is_large_to_mean_none_is_kept_without_a_fuss() -> None:
    assert judge_task("a", Limit("1e308", "loss", value=1e308), None, np.full(400, 7.0)).verdict == "kept"


def test_the_clip_of_the_caller_holds_unless_the_limit_is_above_it() -> None:
    """A language model that guesses has a loss of ln 50,000 = 10.8: a limit above that is judged too."""
    assert judge_task("a", ONE, None, np.full(400, 0.2), clip=10.8).clip == 10.8
    row = judge_task("a", Limit("12.0", "loss", value=12.0), None, np.full(400, 3.0), clip=10.8)
    assert (row.clip, row.verdict) == (240.0, "kept")


def test_a_clip_widens_with_the_samples_but_slower_than_their_number() -> None:
    """Otherwise some sample reaches it sooner or later, or bounds never become narrow."""
    clips = [clip_of(ONE, n) for n in (50, 100, 10_000, 1_000_000)]
    assert clips == [10, 10, 100, 1000]
    assert clip_of(Limit("0.05", "loss", value=0.05), 100) == LEAST


def test_rare_large_losses_exactly_at_the_limit_are_seldom_called_kept() -> None:
    """One in fifty has a loss of 50. 200 samples hold none with probability .018, so 12 of 200 come once in a thousand.

    By the clipped mean alone, more than half of the trials are kept.
    """
    rng = np.random.default_rng(0)
    limit, clipped, kept = Limit("at", "loss", value=0.98 * 0.1 + 0.02 * 50), 0, 0
    for _ in range(200):
        losses = np.where(rng.random(200) < 0.02, 50.0, 0.1)
        kept += judge_task("a", limit, None, losses).verdict == "kept"
        below = np.minimum(losses, 0.999 * clip_of(limit, 200))
        clipped += judge_task("a", limit, None, below).verdict == "kept"
    assert kept <= 12
    assert clipped > 80


def test_a_multiple_of_what_was_is_judged_at_its_own_scale() -> None:
    """Squared errors of about 100: without a typical loss nearly all of them are beyond ln 100."""
    rng, limit = np.random.default_rng(1), Limit("1.5x", "loss", value=0.01, factor=1.5)
    then = 100 * rng.normal(size=400) ** 2
    assert judge_task("a", limit, then, 0.9 * then, typical=100.0).verdict == "kept"
    assert judge_task("a", limit, then, 4.0 * then, typical=100.0).verdict == "BROKEN"
    assert judge_task("a", limit, then, 0.9 * then).verdict == "undecided"


def test_a_clipped_reference_breaks_no_limit() -> None:
    """The mean halved, from 10 to 5. Of losses clipped at ln 100 it would have risen from .46 to .92."""
    then, now = wrong_in(0.1, 100.0), wrong_in(0.2, 25.0)
    limit = Limit("1.1x", "loss", value=0.01, factor=1.1)
    assert judge_task("a", limit, then, now).verdict == "undecided"
    # 1.1 times the mean of 1 as it was, which losses of 4 are above, however large the clipped one was.
    assert judge_task("a", limit, wrong_in(0.01, 100.0), np.full(400, 4.0)).verdict == "BROKEN"


def test_the_looser_limit_of_a_broken_row_would_be_kept_with_its_own_clip() -> None:
    losses = 10 * np.random.default_rng(2).normal(size=400) ** 2
    row = judge_task("a", ONE, None, losses)
    value = float(row.advice[0].removeprefix("looser limit (").removesuffix(" would be kept)"))
    assert judge_task("a", Limit("l", "loss", value=value), None, losses).verdict == "kept"
    assert value < 30


def test_the_table_says_how_far_losses_count() -> None:
    small, large = np.full(400, 0.1), wrong_in(0.1, 500.0)
    table = judge([Question("a", ONE, small), Question("b", FOUR, large), Question("c", Limit("5%", value=0.05), [0])])
    assert table.notes == ["Losses count up to 20 (a), 80 (b): no number of samples bounds larger ones."]
    assert f" 50.000 (at least {table[1].low:.3f}) " in str(table)
    assert judge([Question("a", ONE, small)]).notes[0].startswith("Losses count up to 20: ")
    assert judge([Question("c", Limit("5%", value=0.05), [0])]).notes == []
    assert Promises.from_json(json.loads(json.dumps(table.as_json(), allow_nan=False))) == table
