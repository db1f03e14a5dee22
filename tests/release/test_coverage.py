"""Over thousands of simulated audits, a PASS (or a FAIL) is wrong at most as often as stated.

Each test counts wrong verdicts among A independent audits and fails if they are more than the 1 − 10⁻⁶ quantile of
Bin(A, 0.05): a correct gate fails one such test in a million. Worst cases are simulated: rates exactly at the limit.
"""

import numpy as np
import pytest
from scipy.stats import binom

from pdcl.judging import bounds
from pdcl.release.deciding import FAIL, PASS, Row, decide, holm, passes
from pdcl.release.estimates import Mean, Rate

LEVEL, LIMIT, FALSE_ALARM = 0.05, 0.05, 1e-6
AUDITS = 4000


def most(audits, level=LEVEL):
    return binom.ppf(1 - FALSE_ALARM, audits, level)


def patients(generator, audits, count, images, rate, correlation):
    """Error rates of `count` patients with `images` each, [audits, count]; errors of one patient are correlated."""
    if correlation == 0:
        return generator.binomial(images, rate, (audits, count)) / images
    spread = (1 - correlation) / correlation
    own = generator.beta(rate * spread, (1 - rate) * spread, (audits, count))
    return generator.binomial(images, own) / images


@pytest.mark.parametrize("groups", [1, 5, 20])
@pytest.mark.parametrize("rate", [0.05, 0.055])
def test_a_pass_is_rarely_wrong_when_every_group_is_at_or_just_over_the_limit(groups, rate):
    errors = np.random.default_rng(groups).binomial(400, rate, (AUDITS, groups))
    above = bounds.rate_above(errors, 400, LIMIT)
    assert passes(above, LEVEL).sum() <= most(AUDITS)
    assert holm(above, LEVEL).any(axis=1).sum() <= most(AUDITS)
    assert (holm(above, LEVEL).any(axis=1) | passes(above, LEVEL)).sum() <= most(AUDITS)


@pytest.mark.parametrize("groups", [5, 20])
def test_a_pass_is_rarely_wrong_when_one_group_of_many_is_over_the_limit(groups):
    """The worst case of the intersection–union test: all others pass for sure."""
    rates = np.array([LIMIT + 1e-9] + [0.001] * (groups - 1))
    errors = np.random.default_rng(groups).binomial(600, rates, (AUDITS, groups))
    wrong = passes(bounds.rate_above(errors, 600, LIMIT), LEVEL).sum()
    assert wrong <= most(AUDITS)
    assert wrong >= binom.ppf(FALSE_ALARM, AUDITS, 0.02), "the test has power: it is not merely never passing"


@pytest.mark.parametrize("groups", [1, 5, 20])
@pytest.mark.parametrize("rate", [0.05, 0.045])
def test_a_fail_is_rarely_wrong(groups, rate):
    errors = np.random.default_rng(groups).binomial(400, rate, (AUDITS, groups))
    assert holm(bounds.rate_below(errors, 400, LIMIT), LEVEL).any(axis=1).sum() <= most(AUDITS)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6])
def test_patients_instead_of_images_keep_the_level(correlation):
    rates = patients(np.random.default_rng(7), AUDITS, 200, 5, LIMIT, correlation)
    assert (bounds.mean_above(rates, LIMIT, LEVEL) <= LEVEL).sum() <= most(AUDITS)
    assert (bounds.mean_below(rates, LIMIT, LEVEL) <= LEVEL).sum() <= most(AUDITS)


def test_counting_correlated_images_as_independent_would_pass_too_often():
    rates = patients(np.random.default_rng(8), AUDITS, 200, 5, LIMIT, 0.3)
    naive = (bounds.rate_above(np.rint(rates.sum(1) * 5), 1000, LIMIT) <= LEVEL).mean()
    assert 0.10 < naive < 0.15


def test_twelve_looks_until_one_passes_keep_the_level_together():
    errors = np.random.default_rng(9).binomial(600, LIMIT, (AUDITS, 12))
    above = bounds.rate_above(errors, 600, LIMIT)
    assert (above <= LEVEL / 12).any(axis=1).sum() <= most(AUDITS)
    assert 0.30 < (above <= LEVEL).any(axis=1).mean() < 0.46, "without a ledger"


@pytest.mark.parametrize("shape", ["two points", "skewed", "uniform"])
@pytest.mark.parametrize("n", [20, 300])
def test_a_bound_on_a_clipped_loss_keeps_the_level(shape, n):
    generator = np.random.default_rng(n)
    values, mean = {
        "two points": (lambda size: (generator.random(size) < 0.03) * 1.0, 0.03),
        "skewed": (lambda size: generator.beta(0.1, 1.9, size), 0.05),
        "uniform": (lambda size: generator.random(size), 0.5),
    }[shape]
    drawn = values((AUDITS, n))
    assert (bounds.mean_above(drawn, mean, LEVEL) <= LEVEL).sum() <= most(AUDITS)
    assert (bounds.mean_below(drawn, mean, LEVEL) <= LEVEL).sum() <= most(AUDITS)


def test_printed_bounds_hold_for_all_groups_at_once():
    errors = np.random.default_rng(11).binomial(300, 0.04, (AUDITS, 10))
    outside = bounds.rate_upper(errors, 300, LEVEL / 10) < 0.04
    assert outside.any(axis=1).sum() <= most(AUDITS)


def test_a_good_model_passes_and_a_bad_one_fails():
    good, bad = Row("error", "a", LIMIT, Rate(2, 400), 400), Row("error", "b", LIMIT, Rate(60, 400), 400)
    assert decide([good, good], LEVEL).verdict == PASS
    found = decide([good, bad], LEVEL)
    assert (found.verdict, [row.verdict for row in found.rows]) == (FAIL, [PASS, FAIL])


def test_patients_with_small_errors_pass():
    rates = patients(np.random.default_rng(12), 500, 200, 5, 0.02, 0.3)
    power = np.mean([Mean(each).above(0.06, LEVEL) <= LEVEL for each in rates])
    assert power > 0.85


def test_all_groups_may_pass_together_where_none_would_alone():
    """p = 0.04 in both: intersection–union passes the model, Holm neither group on its own."""
    row = Row("error", "a", 0.01, Rate(0, 321), 321)
    found = decide([row, row], LEVEL)
    assert found.verdict == PASS
    assert [judged.verdict for judged in found.rows] == [PASS, PASS]
    assert not any(judged.alone for judged in found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("groups", [1, 5, 20])
def test_the_whole_gate_keeps_its_level_over_a_hundred_thousand_audits(groups, correlation):
    """Patients, several groups of which one is at the limit, and twelve looks, all together."""
    audits, wrong = 2000, 0
    generator = np.random.default_rng(groups)
    for _ in range(50):
        rates = patients(generator, audits, 300, 4, LIMIT, correlation)
        others = np.full((audits, groups - 1), 1e-9)
        above = np.column_stack([bounds.mean_above(rates, LIMIT, LEVEL), others])
        wrong += int(passes(above, LEVEL).sum())
    assert wrong <= most(50 * audits)
