"""Error rates whose outcomes are shares: of a sample's tokens some are wrong."""

import numpy as np
import pytest

from pdcl.judging.verdicts import judge_task
from pdcl.limits.limit import Limit

FIVE, TWO_POINTS = Limit("5%", value=0.05), Limit("+2pt", rise=0.02)


def shares(rate, count, seed, tokens=20):
    return np.random.default_rng(seed).binomial(tokens, rate, count) / tokens


@pytest.mark.parametrize(("rise", "verdict"), [(0.0, "kept"), (0.1, "BROKEN")])
def test_a_rise_of_shares_is_decided_on_the_same_samples(rise, verdict):
    then = shares(0.3, 400, 0)
    change = np.random.default_rng(1).choice([-0.05, 0.05], 400) * 0.5
    row = judge_task("chat", TWO_POINTS, then, np.clip(then + change + rise, 0, 1))
    assert row.verdict == verdict
    assert row.low <= row.now <= row.high
    assert row.over == pytest.approx(100 * max(0.0, row.now - row.then - 0.02))


@pytest.mark.parametrize(("rate", "verdict"), [(0.01, "kept"), (0.15, "BROKEN")])
def test_an_absolute_limit_of_shares_is_decided(rate, verdict):
    assert judge_task("chat", FIVE, None, shares(rate, 300, 2)).verdict == verdict


def test_few_shares_leave_it_undecided_and_say_how_many_would_do():
    row = judge_task("chat", TWO_POINTS, shares(0.3, 10, 3), shares(0.3, 10, 4))
    assert row.verdict == "undecided"
    assert row.wants > 10


def test_at_the_limit_itself_a_verdict_is_rare():
    """Both verdicts are wrong there: 5 % of 100 are allowed, more than 12 come with probability 0.001."""
    decided = 0
    for seed in range(100):
        chance = np.random.default_rng(seed)
        then = chance.binomial(20, 0.3, 80) / 20
        now = np.clip(then + chance.choice([-0.05, 0.09], 80), 0, 1)
        decided += judge_task("chat", TWO_POINTS, then, now).verdict != "undecided"
    assert decided <= 12
