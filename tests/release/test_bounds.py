"""Bounds against published values, against scipy's own, and against each other."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from pdcl.judging import bounds
from pdcl.release.estimates import Mean, Rate, certifiable, decides, further, wanted


@pytest.mark.parametrize(
    ("errors", "n", "level", "published"),
    [(0, 59, 0.05, 0.0495), (0, 299, 0.05, 0.0100), (20, 1000, 0.05, 0.029), (20, 1000, 0.05 / 10, 0.034)],
)
def test_clopper_pearson_gives_the_published_bounds(errors, n, level, published):
    digits = 4 if errors == 0 else 3
    assert round(float(bounds.rate_upper(errors, n, level)), digits) == published


@pytest.mark.parametrize("n", [1, 7, 59, 1000])
def test_clopper_pearson_equals_scipys_exact_interval(n):
    for errors in sorted({0, 1, n // 3, n - 1, n}):
        for level in (0.05, 0.004):
            exact = binomtest(errors, n).proportion_ci(1 - 2 * level, method="exact")
            assert float(bounds.rate_upper(errors, n, level)) == pytest.approx(exact.high, abs=1e-12)
            assert float(bounds.rate_lower(errors, n, level)) == pytest.approx(exact.low, abs=1e-12)


def test_p_values_are_binomial_tails():
    errors, limits = np.meshgrid(np.arange(0, 41), [0.01, 0.3, 0.97])
    assert bounds.rate_above(errors, 40, limits) == pytest.approx(binom.cdf(errors, 40, limits), rel=1e-9)
    assert bounds.rate_below(errors, 40, limits) == pytest.approx(binom.sf(errors - 1, 40, limits), rel=1e-9)


def test_a_bound_is_below_the_limit_exactly_where_the_test_refutes():
    errors, limits = np.meshgrid(np.arange(0, 60), np.linspace(0.01, 0.6, 60))
    upper, lower = bounds.rate_upper(errors, 60, 0.05), bounds.rate_lower(errors, 60, 0.05)
    assert ((upper <= limits) == (bounds.rate_above(errors, 60, limits) <= 0.05)).all()
    assert ((lower >= limits) == (bounds.rate_below(errors, 60, limits) <= 0.05)).all()


def test_no_mean_of_values_up_to_1_is_above_1():
    ones = np.ones((2, 5))
    assert bounds.mean_above(ones, 1.0, 0.05).tolist() == bounds.mean_below(0 * ones, 0.0, 0.05).tolist() == [0.0, 0.0]
    assert bounds.mean_upper(ones[0], 0.05) == 1.0


def test_betting_bounds_enclose_the_mean_and_agree_with_their_tests():
    values = np.random.default_rng(1).beta(0.3, 4, 250)
    upper, lower = bounds.mean_upper(values, 0.05), bounds.mean_lower(values, 0.05)
    assert 0 < lower < values.mean() < upper < 1
    assert bounds.mean_above(values, upper + 1e-6, 0.05) <= 0.05 < bounds.mean_above(values, upper - 1e-6, 0.05)
    assert bounds.mean_below(values, lower - 1e-6, 0.05) <= 0.05 < bounds.mean_below(values, lower + 1e-6, 0.05)


@pytest.mark.parametrize("limit", [0.05, 0.3, 0.9])
def test_the_p_of_a_mean_is_what_the_stated_gambler_wins_bet_by_bet(limit):
    """λ = √(2 ln(1/δ) / (n σ²)), σ² of the values before with one at 1/2 added, and 9/10 staked at most."""
    values, level = np.random.default_rng(3).beta(0.5, 6, 60), 0.05
    capital = best = 1.0
    for i, x in enumerate(values):
        means = [(0.5 + values[: j + 1].sum()) / (j + 2) for j in range(i)]
        variance = (0.25 + sum((v - m) ** 2 for v, m in zip(values[:i], means, strict=True))) / (i + 1)
        stake = min(np.sqrt(2 * np.log(1 / level) / (len(values) * variance)), 0.9 / (1 - limit))
        capital *= 1 + stake * (limit - x)
        best = max(best, capital)
    assert float(bounds.mean_above(values, limit, level)) == pytest.approx(1 / best)


def test_betting_profits_from_small_variance_where_counting_cannot():
    values = np.full(100, 0.1)
    assert bounds.mean_upper(values, 0.05) < 0.16 < float(bounds.rate_upper(10, 100, 0.05))


def test_the_capital_grows_with_the_limit_so_that_bisection_finds_the_bound():
    values = np.random.default_rng(2).random((20, 50))
    capital = np.stack([bounds.mean_above(values, m, 0.05) for m in np.linspace(0.01, 0.99, 99)])
    assert (np.diff(capital, axis=0) <= 1e-12).all()


def test_299_samples_without_an_error_certify_one_per_cent_at_95():
    assert Rate(0, 299).above(0.01, 0.05) <= 0.05 < Rate(0, 298).above(0.01, 0.05)
    assert wanted(0.01, 0.05) == 299
    assert certifiable(299, 0.05) <= 0.01 < certifiable(298, 0.05)


@pytest.mark.parametrize("estimate", [Rate(0, 100), Rate(9, 200), Rate(15, 200), Rate(60, 1200)])
def test_the_number_of_further_samples_decides_and_one_less_does_not(estimate):
    more = further(estimate, 0.06, 0.05)
    assert more is not None
    if not decides(estimate, 0.06, 0.05):
        assert decides(estimate.grown(estimate.units + more), 0.06, 0.05)
        if estimate.units <= 1000:
            assert not decides(estimate.grown(estimate.units + more - 1), 0.06, 0.05)


def test_no_number_of_samples_decides_a_rate_that_sits_on_its_limit():
    assert further(Rate(5, 100), 0.05, 0.05) is None
    assert further(Mean(np.full(50, 0.25)), 0.25, 0.05) is None


def test_the_order_of_an_audit_set_does_not_follow_its_values():
    values = np.sort(np.random.default_rng(3).beta(0.5, 5, 400))
    assert Mean(values).shuffled.tolist() != values.tolist()
    assert abs(np.corrcoef(Mean(values).shuffled, np.arange(400))[0, 1]) < 0.2
