"""Planned numbers of samples decide as often as planned."""

import numpy as np
import pytest
from scipy.stats import binom

from pdcl.judging.bounds import mean_above, mean_below, mean_upper, rate_upper
from pdcl.judging.clipping import span_of
from pdcl.judging.paired import change_upper
from pdcl.judging.sample_sizes import samples_needed, samples_needed_for_mean, samples_needed_for_rate
from pdcl.judging.verdicts import judge_task
from pdcl.limits.limit import Limit
from pdcl.release.estimates import estimate_of, further


def share_kept(n, points, changed, level, change=0.0, runs=1000):
    """How often "at most `points` worse" is found where the error rate rose by `change`."""
    each = [(changed + change) / 2, (changed - change) / 2, 1 - changed]
    drawn = np.random.default_rng(0).multinomial(n, each, runs)[:, :2]
    pairs, counts = np.unique(drawn, axis=0, return_counts=True)
    kept = [change_upper(b, c, n, level) <= points / 100 for b, c in pairs.tolist()]
    return counts[kept].sum() / runs


@pytest.mark.parametrize("power", [0.5, 0.8])
@pytest.mark.parametrize(("points", "changed", "level"), [(5, 0.05, 0.05), (10, 0.2, 0.025)])
def test_so_many_paired_samples_decide_as_often_as_planned(points, changed, level, power):
    n = samples_needed(points, changed, power, level)
    assert share_kept(n, points, changed, level) == pytest.approx(power, abs=0.1)


@pytest.mark.parametrize(("points", "changed", "change"), [(5, 0.06, -0.05), (10, 0.06, -0.06), (10, 0.2, 0.05)])
def test_so_many_paired_samples_decide_where_something_rose_or_fell(points, changed, change):
    n = samples_needed(points, changed, change=change)
    assert share_kept(n, points, changed, 0.05, change) == pytest.approx(0.8, abs=0.08)


def test_two_points_want_hundreds_to_thousands():
    assert [samples_needed(2, q, power=0.5) for q in (0.05, 0.2)] == [381, 1361]
    assert [samples_needed(2, q) for q in (0.05, 0.2)] == [837, 3104]


def test_so_many_samples_decide_an_error_rate_as_often_as_planned():
    n = samples_needed_for_rate(0.1, 0.05, power=0.8, level=0.05)
    errors = np.arange(n + 1)
    kept = rate_upper(errors, n, 0.05) <= 0.1
    assert binom.pmf(errors, n, 0.05)[kept].sum() == pytest.approx(0.8, abs=0.1)


def test_without_any_error_the_exact_number_is_nearly_met():
    n = samples_needed_for_rate(0.01, 0.0, level=0.05)
    assert rate_upper(0, n, 0.05) <= 0.01
    assert n <= 1.05 * 299


def test_without_any_change_the_number_still_decides():
    n = samples_needed(2, 0.0, level=0.025)
    assert change_upper(0, 0, n, 0.025) <= 0.02


def test_so_many_samples_decide_a_mean_at_least_as_often_as_planned():
    rng = np.random.default_rng(1)
    n = samples_needed_for_mean(0.15, 0.1, 0.1, level=0.05)
    kept = [mean_upper(rng.beta(0.8, 7.2, n), 0.05) <= 0.15 for _ in range(100)]
    assert np.mean(kept) >= 0.8


@pytest.mark.parametrize("limit", [Limit("1.0", "loss", value=1.0), Limit("2x", "loss", value=0.01, factor=2.0)])
def test_losses_are_planned_with_the_maximum_that_so_many_have(limit):
    """From 100 samples on, more of them count losses up to a larger maximum. All are alike, so nothing is chance."""

    def row(n):
        return judge_task("a", limit, np.full(n, 0.5), np.full(n, 0.8), typical=0.5)

    wants = row(60).wants
    assert wants > 200
    assert row(wants).verdict == "kept"
    assert row(wants // 4).verdict == "undecided"


@pytest.mark.parametrize(("limit", "gap"), [(0.1, 0.02), (0.5, 0.02), (0.67, 0.01), (0.9, 0.01)])
@pytest.mark.parametrize("level", [0.045, 0.0045])
def test_a_mean_is_planned_by_where_its_limit_lies(limit, gap, level):
    """Values alike, so nothing is chance: what is planned decides, and less than a half of it doesn't. Either side."""
    for low, high in ((limit - gap, limit), (1 - limit + gap, 1 - limit)):
        n = samples_needed_for_mean(high, low, 0.0, level=level)
        decide = mean_above if low < high else mean_below
        assert decide(np.full(n, low), high, level) <= level < decide(np.full(int(0.45 * n), low), high, level)


def test_the_gate_plans_losses_with_the_maximum_that_so_many_have():
    one = Limit("1.0", "loss", value=1.0)

    def estimate(n):
        return estimate_of(np.full(n, 0.8), None, span_of(one, n))

    wants = 60 + further(estimate(60), 1.0, 0.05)
    assert estimate(wants).above(1.0, 0.05) <= 0.05 < estimate(wants - 5).above(1.0, 0.05)


def test_w_the_number_for_a_mean_by_hand():
    """ln 20 = 2.9957, √(2 ln 20) = 2.4477, z = .8416: 3.2894² · .3² / .1² + 1.3 · .9 · 2.9957 / .1 = 97.4 + 35.05."""
    assert samples_needed_for_mean(0.1, 0.0, 0.3, power=0.8, level=0.05) == 133
    assert samples_needed_for_mean(0.9, 1.0, 0.3, power=0.8, level=0.05) == 133
    assert samples_needed_for_mean(0.1, 0.0, 0.0, level=0.05) == 36


def test_a_truth_on_the_limit_is_never_decided():
    assert samples_needed(2, 0.05, change=0.02) is None
    assert samples_needed_for_rate(0.1, 0.1) is None
    assert samples_needed_for_mean(0.1, 0.1 + 1e-9, 0.5) is None
