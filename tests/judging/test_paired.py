"""The exact bounds of a change: against enumeration of all outcomes, and against what they promise."""

import bisect

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlogy

from pdcl.judging.bounds import rate_lower, rate_upper
from pdcl.judging.paired import NUISANCE, STEP, change_above, change_lower, change_upper, likeliest, signed_root


def outcomes(n):
    """All (newly wrong, newly right) of n samples: [2, m]."""
    return np.array([(b, c) for b in range(n + 1) for c in range(n + 1 - b)]).T


def probabilities(n, p01, p10):
    """Of each of `outcomes(n)`."""
    b, c = outcomes(n)
    rest = max(0.0, 1 - p01 - p10)
    ways = gammaln(n + 1) - gammaln(b + 1) - gammaln(c + 1) - gammaln(n - b - c + 1)
    return np.exp(ways + xlogy(b, p01) + xlogy(c, p10) + xlogy(n - b - c, rest))


def worst(n, decided, change):
    """The largest probability of `decided` [m] over the models whose change is `change`."""
    low, high = max(0.0, -change), (1 - change) / 2
    return max(probabilities(n, p + change, p)[decided].sum() for p in low + (high - low) * np.linspace(0, 1, 201) ** 2)


def decided(n, says):
    """Mask of `outcomes(n)`, where `says(b, c)` holds for small b alone: for each c the last such b is searched."""
    b, c = outcomes(n)
    last = np.array(
        [bisect.bisect_left(range(n - each + 1), True, key=lambda k: not says(k, each)) for each in range(n + 1)]
    )
    return b < last[c]


@pytest.mark.parametrize(("n", "limit"), [(8, 0.2), (25, 0.02), (40, 0.1), (60, 0.05)])
def test_kept_and_broken_are_each_wrong_with_at_most_the_level_by_enumeration(n, limit):
    level = 0.05
    kept = decided(n, lambda b, c: change_upper(b, c, n, level) <= limit)
    broken = ~decided(n, lambda b, c: change_lower(b, c, n, level) <= limit)
    assert kept.any() or n * limit < 3
    assert broken.any()
    for change in (limit, limit + 0.01, limit + 0.05):
        assert worst(n, kept, change) <= level
    for change in (limit, limit - 0.01, limit - 0.05):
        assert worst(n, broken, change) <= level


@pytest.mark.parametrize("level", [0.05, 0.0025])
def test_bounds_miss_the_truth_with_at_most_the_level_by_enumeration(level):
    n = 18
    upper = np.array([change_upper(b, c, n, level) for b, c in outcomes(n).T])
    missed = [worst(n, upper < change, change) for change in np.linspace(-0.6, 0.9, 76)]
    assert max(missed) <= level
    # Not by being lax: somewhere nearly the whole level is spent.
    assert max(missed) > 0.7 * level


@pytest.mark.parametrize(("b", "c"), [(0, 0), (1, 2), (2, 1), (0, 4), (5, 1)])
def test_a_bound_is_where_the_largest_tail_of_its_outcomes_meets_the_level(b, c):
    n, level = 6, 0.05
    bounds = np.array([change_upper(*each, n, level) for each in outcomes(n).T])
    own = change_upper(b, c, n, level)
    beta = NUISANCE * level
    low, high = float(rate_lower(c, n, beta / 2)), float(rate_upper(c, n, beta / 2))
    # Outcomes are ordered by an approximate bound, and exact ones nearly keep that order; equal ones may be in or out.
    tails = []
    for region in (bounds < own - 0.02, bounds <= own + 0.02):
        region |= (outcomes(n) == [[b], [c]]).all(axis=0)
        grid = np.linspace(max(low, -own), min(high, (1 - own) / 2), 2001)
        tails.append(beta + max(probabilities(n, p + own, p)[region].sum() for p in grid))
    assert tails[0] * 0.99 <= level <= tails[1] * 1.01


@pytest.mark.parametrize(("b", "c", "n", "change"), [(3, 5, 40, 0.02), (9, 1, 50, -0.1), (0, 4, 30, 0.3)])
def test_a_claim_is_judged_by_its_likeliest_model(b, c, n, change):
    def unlikely(p):
        return -(xlogy(b, p + change) + xlogy(c, p) + xlogy(n - b - c, 1 - 2 * p - change))

    low, high = max(0.0, -change), (1 - change) / 2
    p = minimize_scalar(unlikely, bounds=(low, high), method="bounded", options={"xatol": 1e-10}).x
    best = -xlogy(b, b / n) - xlogy(c, c / n) - xlogy(n - b - c, 1 - (b + c) / n)
    expected = np.sign(b - c - n * change) * np.sqrt(2 * (unlikely(p) - best))
    assert float(likeliest(np.float64(b), np.float64(c), n, change)) == pytest.approx(p, abs=1e-6)
    assert float(signed_root(np.float64(b), np.float64(c), n, change)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("change", [-0.5, -0.02, 0.0, 0.02, 0.3])
def test_the_order_of_outcomes_rises_with_the_newly_wrong_and_falls_with_the_newly_right(change):
    n = 25
    for fixed in range(n):
        moving, still = np.arange(n - fixed + 1.0), np.full(n - fixed + 1, float(fixed))
        assert (np.diff(signed_root(moving, still, n, change)) >= -1e-9).all()
        assert (np.diff(signed_root(still, moving, n, change)) <= 1e-9).all()


@pytest.mark.parametrize(("b", "c", "n"), [(0, 0, 1), (1, 0, 1), (0, 0, 20), (3, 1, 30), (20, 30, 400), (60, 20, 5000)])
def test_bounds_enclose_what_was_seen_and_mirror_each_other(b, c, n):
    low, high = change_lower(b, c, n, 0.025), change_upper(b, c, n, 0.025)
    assert -1 <= low <= (b - c) / n <= high <= 1
    assert low == -change_upper(c, b, n, 0.025)
    assert change_upper(b, c, n, 0.05) <= high <= change_upper(b, c, n, 0.01)
    assert b + c == n or change_upper(b + 1, c, n, 0.025) >= high - STEP


def test_a_bound_is_not_far_from_normal_theory_where_there_are_many_samples():
    half = 1.96 * np.sqrt(0.2 / 5000)
    assert change_upper(500, 500, 5000, 0.025) == pytest.approx(half, rel=0.02)
    separate = float(rate_upper(500, 5000, 0.0125) - rate_lower(500, 5000, 0.0125))
    assert change_upper(500, 500, 5000, 0.025) < 0.65 * separate


def test_ten_rows_of_few_changes_are_decided_with_as_few_samples_as_counting_errors_takes():
    assert change_upper(0, 0, 298, 0.0025) <= 0.02
    assert float(rate_upper(0, 297, 0.0025)) <= 0.02


@pytest.mark.parametrize(("b", "c", "n"), [(3, 3, 5), (-1, 0, 5), (0, -1, 5), (0, 0, 0)])
def test_impossible_counts_are_refused(b, c, n):
    with pytest.raises(ValueError, match=f"{b} newly wrong and {c} newly right of {n} samples is impossible"):
        change_upper(b, c, n, 0.05)


def test_no_change_that_is_not_below_the_limit_speaks_against_one_above_it():
    assert [change_above(b, 1, 10, 0.2, 0.05) for b in (3, 4, 9)] == [1.0] * 3
    assert change_above(2, 1, 10, 0.2, 0.05) < 1
