"""What a row says beside its verdict: the limit as a number, and how many samples would decide."""

import numpy as np
import pytest

import pdcl
from pdcl.judging.paired import STEP, change_above, change_upper
from pdcl.judging.places import Curve
from pdcl.judging.sample_sizes import samples_needed
from pdcl.judging.verdicts import judge_task
from pdcl.limits.limit import Limit

RATE, RISE = Limit("10%", value=0.1), Limit("+10pt", rise=0.1)
LOSS, RATIO = Limit("1.0", "loss", value=1.0), Limit("1.5x", "loss", value=0.01, factor=1.5)


def drawn(kind, n, seed=0):
    """(limit, then, now) of n samples that keep the limit, but not by far."""
    chance = np.random.default_rng(seed)
    if kind == "rate":
        return RATE, None, (chance.random(n) < 0.05).astype(float)
    if kind == "rise":
        then = (chance.random(n) < 0.2).astype(float)
        return RISE, then, np.where(chance.random(n) < 0.1, 1 - then, then)
    if kind == "shares":
        then = chance.uniform(0.2, 0.8, n)
        return RISE, then, np.clip(then + chance.choice([-0.1, 0.14], n), 0, 1)
    if kind == "loss":
        return LOSS, None, chance.exponential(0.3, n)
    then = chance.uniform(0.5, 1.5, n)
    return RATIO, then, then * chance.uniform(0.8, 1.2, n)


KINDS = pytest.mark.parametrize("kind", ["rate", "rise", "shares", "loss", "ratio"])


@pytest.mark.parametrize("kind", ["shares", "loss", "ratio"])
def test_as_many_samples_as_a_row_wants_decide_it(kind):
    """Planned to decide in 8 of 10, from what 30 samples show; a fifth of them must not be as good.

    30 outcomes that are right or wrong are too rough for such a plan.
    """
    plans = [judge_task("a", *drawn(kind, 30, seed)).wants for seed in range(9)]
    wants = int(np.median([plan for plan in plans if plan is not None]))
    shares = []
    for n in (wants, wants // 5):
        verdicts = [judge_task("a", *drawn(kind, n, 100 + seed)).verdict for seed in range(20)]
        assert "BROKEN" not in verdicts
        shares.append(verdicts.count("kept") / 20)
    assert shares[0] >= 0.6
    assert shares[1] <= 0.5


def test_a_rise_wants_what_half_a_change_more_than_was_seen_asks_for():
    for worse, n in ((0, 20), (3, 60)):
        row = judge_task("a", RISE, np.zeros(n), np.arange(n) < worse)
        changed = (worse + 0.5) / (n + 1)
        assert row.wants == samples_needed(100 * RISE.rise, changed, level=0.9 * 0.05, change=worse / n)


@KINDS
def test_a_row_of_many_wants_more_samples_than_a_row_alone(kind):
    alone, of_fifty = (judge_task("a", *drawn(kind, 20), level=level).wants for level in (0.05, 0.001))
    assert 1.2 * alone < of_fifty


@pytest.mark.parametrize("value", [0.5, 0.9, 1.3])
def test_an_undecided_row_wants_more_samples_than_it_has(value):
    undecided = 0
    for n in range(4, 240, 4):
        row = judge_task("a", LOSS, None, np.full(n, value))
        if row.verdict == "undecided":
            undecided += 1
            assert row.wants is None or row.wants > n
    assert undecided


def test_a_limit_on_errors_ends_at_all_of_them_and_one_on_losses_does_not():
    then, now = np.repeat([1.0, 0.0], [150, 50]), np.ones(200)
    row = judge_task("a", Limit("2x", factor=2.0), then, now)
    assert (row.limit, row.verdict) == (1.0, "undecided")
    assert judge_task("a", RISE, np.full(50, 0.97), np.full(50, 0.97)).limit == 1.0
    assert judge_task("a", RATIO, 4 * then, 4 * now).limit == pytest.approx(4.5)


def test_a_multiple_is_one_of_the_mean_as_it_was_though_large_losses_are_clipped():
    then = np.where(np.arange(400) < 40, 100.0, 0.0)
    assert judge_task("a", RATIO, then, then).limit == pytest.approx(15.0)


@pytest.mark.parametrize(("b", "c", "n"), [(1, 3, 5), (1, 3, 8), (3, 1, 8), (0, 0, 40), (4, 9, 60)])
@pytest.mark.parametrize("level", [0.2, 0.05, 0.0025])
def test_the_p_of_a_limit_meets_the_level_at_the_bound(b, c, n, level):
    bound = change_upper(b, c, n, level)
    assert change_above(b, c, n, bound - 2 * STEP, level) > level >= change_above(b, c, n, bound, level)


def test_more_memory_is_no_advice_where_it_never_helped():
    """Errors rise with the places: the fewest are enough where all points are good enough, and otherwise none is."""
    flat = Curve(0.1, 0.0, 0.05, ((40.0, 0.2), (20.0, 0.1)))
    assert [flat.places(error) for error in (0.05, 0.15, 0.2, 0.3)] == [None, None, 20.0, 20.0]


def test_a_task_that_is_over_its_own_limit_when_it_is_learned_says_so_then() -> None:
    """Labels of which nearly a third are wrong can't be learned to 5 %; a rise has nothing to be over yet."""
    random = np.random.default_rng(0)
    x = random.normal(size=(600, 6)).astype(np.float32)
    y = np.where(random.random(600) < 0.3, x[:, 0] <= 0, x[:, 0] > 0).astype(int)
    told = {}
    for limit in ("5%", "45%", "+5pt"):
        learner = pdcl.PDCL("mlp:16", memory=400, seed=0, tolerance={"*": limit})
        told[limit] = str(learner.learn(x, y, name="first", epochs=3))
    assert "over its own limit of 5% from the start" in told["5%"]
    assert "from the start" not in told["45%"] + told["+5pt"]
