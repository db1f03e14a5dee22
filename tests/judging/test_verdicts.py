"""Verdicts are right as often as they say, one by one and together, and say so when samples can't tell."""

import functools
import itertools

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from pdcl.errors import UsageError
from pdcl.judging import paired
from pdcl.judging.bounds import rate_lower, rate_upper
from pdcl.judging.promise import Split
from pdcl.judging.verdicts import Question, half_way, judge, judge_task
from pdcl.limits.limit import Limit

TWO_POINTS = Limit("+2pt", rise=0.02)
FIVE = Limit("5%", value=0.05)


@pytest.fixture(autouse=True, scope="module")
def _each_count_once():
    """Simulations see the same counts again and again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired, "change_upper", functools.cache(paired.change_upper))
        yield


def first(k, n):
    """n outcomes, the first k of them wrong."""
    return (np.arange(n) < k).astype(float)


def drawn(rng, n, before, worse, better):
    """Outcomes then and now: wrong then with `before`; of all samples, `worse` newly wrong, `better` newly right."""
    then, change = rng.random(n) < before, rng.random(n)
    now = np.where(then, change >= better / before, change < worse / (1 - before))
    return then.astype(float), now.astype(float)


def allowed_misses(runs, rate=0.05):
    """Exceeded with probability 1/1000 if each run misses with `rate`: the false-alarm rate of the tests below."""
    return binom.ppf(0.999, runs, rate)


def test_a_network_that_memorised_is_found_out_with_200_witnesses_and_not_with_5():
    many = judge_task("legacy", TWO_POINTS, first(4, 200), first(60, 200))
    assert (many.verdict, many.wants, round(many.over, 1)) == ("BROKEN", None, 26.0)
    assert many.limit == pytest.approx(0.04)
    few = judge_task("legacy", TWO_POINTS, first(0, 5), first(2, 5))
    assert few.verdict == "undecided"
    assert few.wants > 5


def test_a_change_is_judged_on_pairs_and_not_on_two_rates():
    """A tenth is wrong both times, the same samples: nothing changed. Other samples: much may have."""
    same = judge_task("a", TWO_POINTS, first(40, 400), first(40, 400))
    other = judge_task("a", TWO_POINTS, first(40, 400), first(40, 400)[::-1])
    assert (same.verdict, other.verdict) == ("kept", "undecided")
    assert other.high - other.low > 3 * (same.high - same.low)
    assert judge_task("a", Limit("12%", value=0.12), None, first(40, 400)).verdict == "undecided"


def test_one_interval_holds_the_true_change_in_95_of_100():
    rng, runs, missed = np.random.default_rng(0), 400, 0
    for _ in range(runs):
        then, now = drawn(rng, 150, before=0.1, worse=0.05, better=0.03)
        row = judge_task("a", TWO_POINTS, then, now)
        missed += not row.low <= row.then + 0.02 <= row.high
    assert missed <= allowed_misses(runs)


def test_ten_intervals_hold_together_in_95_of_100_reports():
    rng, runs, missed, alone = np.random.default_rng(1), 120, 0, 0
    for _ in range(runs):
        pairs = [drawn(rng, 80, before=0.1, worse=0.06, better=0.04) for _ in range(5)]
        # Segments overlap tasks; absolute limits stand beside those in points.
        questions = [Question("p", TWO_POINTS, now, then) for then, now in pairs]
        questions += [Question("r", FIVE, now, kind="segment") for _, now in pairs]
        truths = [then.mean() + 0.02 for then, _ in pairs] + [0.12] * 5
        report = judge(questions)
        missed += not all(row.low <= truth <= row.high for row, truth in zip(report, truths, strict=True))
        single = [judge_task(q.task, q.limit, q.then, q.now) for q in questions]
        alone += not all(row.low <= truth <= row.high for row, truth in zip(single, truths, strict=True))
    assert missed <= allowed_misses(runs)
    # The test can tell: intervals of single rows don't hold together.
    assert alone > allowed_misses(runs)


def test_ten_limits_met_exactly_are_rarely_called_kept_or_broken():
    rng, runs, wrong = np.random.default_rng(2), 100, 0
    for _ in range(runs):
        pairs = [drawn(rng, 100, before=0.1, worse=0.07, better=0.05) for _ in range(10)]
        report = judge([Question("p", TWO_POINTS, now, then) for then, now in pairs])
        wrong += len(report.undecided) < 10
    assert wrong <= allowed_misses(runs)


def test_absolute_limits_have_exact_binomial_intervals():
    row = judge_task("a", FIVE, None, first(20, 1000), level=0.10)
    assert (row.low, row.high) == (pytest.approx(rate_lower(20, 1000, 0.09)), pytest.approx(rate_upper(20, 1000, 0.01)))
    assert (row.verdict, row.then, row.paired) == ("kept", None, False)
    assert judge_task("a", FIVE, None, first(12, 100)).verdict == "BROKEN"
    assert judge_task("a", FIVE, None, first(0, 20)).verdict == "undecided"


@pytest.mark.parametrize("limit", [0.05, 0.1, 0.3])
def test_an_interval_misses_every_truth_with_at_most_its_level_by_enumeration(limit):
    """All outcomes of 60 samples, 400 truths on both sides of the limit. Nearly all of the level is spent."""
    rows = [judge_task("a", Limit("p", value=limit), None, first(k, 60)) for k in range(61)]
    missed = []
    for truth in np.linspace(0.001, 0.6, 400):
        out = [not row.low <= truth <= row.high for row in rows]
        wrong = [row.verdict == ("kept" if truth > limit else "BROKEN") for row in rows]
        missed.append(binom.pmf(np.arange(61), 60, truth) @ (np.array(out) | np.array(wrong)))
    assert 0.04 < max(missed) <= 0.05


@pytest.mark.parametrize("limit", [0.0, 0.1])
def test_an_interval_of_a_change_misses_with_at_most_its_level_by_enumeration(limit):
    n, missed = 16, []
    outcomes = [(worse, better) for worse in range(n + 1) for better in range(n + 1 - worse)]
    rows = [judge_task("a", Limit("+", rise=limit), first(c, n), first(b, n)[::-1]) for b, c in outcomes]
    changes = [(row.low - row.then, row.high - row.then) for row in rows]
    for worse, better in itertools.product((0.02, 0.05, 0.1, 0.2, 0.4), repeat=2):
        chance = multinomial(n, [worse, better, 1 - worse - better]).pmf([[b, c, n - b - c] for b, c in outcomes])
        # What lies outside [0, 1] as a rate is cut off.
        cut = [(row.low == 0, row.high == 1) for row in rows]
        out = [
            (low > worse - better and not bottom) or (high < worse - better and not top)
            for (low, high), (bottom, top) in zip(changes, cut, strict=True)
        ]
        missed.append(chance @ np.array(out))
    assert max(missed) <= 0.05


@pytest.mark.parametrize("truth", [0.0999, 0.1, 0.1001])
def test_rows_that_overlap_are_wrong_together_with_at_most_the_level_by_enumeration(truth):
    """Two tasks and a segment of both, all outcomes of 40 samples each: some verdict or interval is wrong."""
    n, ten, chance = 40, Limit("10%", value=0.1), binom.pmf(np.arange(41), 40, truth)

    def wrong(rows):
        false = "kept" if truth > 0.1 else "BROKEN"
        return any(row.verdict == false or not row.low <= truth <= row.high for row in rows)

    single = functools.cache(lambda k, size, level: judge_task("a", ten, None, first(k, size), level=level))
    total = dict.fromkeys((0.05 / 3, 0.05), 0.0)
    for i, j in itertools.product(range(n + 1), repeat=2):
        for level in total:
            rows = [single(i, n, level), single(j, n, level), single(i + j, 2 * n, level)]
            total[level] += chance[i] * chance[j] * wrong(rows)
    together = judge([Question("a", ten, first(k, size)) for k, size in ((9, n), (3, n), (12, 2 * n))])
    assert list(together) == [single(9, n, 0.05 / 3), single(3, n, 0.05 / 3), single(12, 2 * n, 0.05 / 3)]
    # Each at 95 % by itself, they are not.
    assert total[0.05 / 3] <= 0.05 < total[0.05]


def test_a_new_task_is_said_to_be_over_its_own_limit_with_the_level_of_its_row():
    """By enumeration: in one of ten rows, at most a tenth of 5 % may say so of an error that is exactly the limit."""
    said = {}
    for level in (0.05, 0.005):
        rows = [judge_task("n", half_way(0.9, 0.1), None, first(k, 60), level, kind="new", own=FIVE) for k in range(61)]
        over = ["over its own limit of 5% from the start" in row.advice for row in rows]
        said[level] = binom.pmf(np.arange(61), 60, 0.05) @ np.array(over)
    assert 0.005 < said[0.05] <= 0.05
    assert 0 < said[0.005] <= 0.005


def test_a_verdict_needs_only_the_bound_that_it_hangs_on():
    """With half of the level on each side this row would be undecided."""
    wrong = next(k for k in range(200) if rate_upper(k, 200, 0.025) > 0.1 >= rate_upper(k, 200, 0.045))
    row = judge_task("a", Limit("10%", value=0.1), None, first(wrong, 200))
    assert (row.verdict, row.high) == ("kept", 0.1)
    row = judge_task("a", Limit("90%", value=0.9), None, first(200 - wrong, 200))
    assert (row.verdict, row.low, row.high) == ("BROKEN", 0.9, pytest.approx(1 - rate_lower(wrong, 200, 0.045)))


@pytest.mark.parametrize(("worse", "verdict"), [(1.0, "kept"), (1.6, "BROKEN"), (1.1, "undecided")])
def test_a_multiple_of_the_loss_is_judged_on_pairs(worse, verdict):
    limit, rng = Limit("1.1x", "loss", value=0.01, factor=1.3 if worse == 1 else 1.1), np.random.default_rng(3)
    then = rng.gamma(2.0, 0.4, 4000)
    row = judge_task("a", limit, then, worse * then, typical=0.8)
    assert row.verdict == verdict
    assert row.low <= row.now <= row.high
    assert row.limit == pytest.approx(limit.factor * row.then)


def test_a_multiple_of_the_loss_counts_the_noise_of_its_reference():
    """Then and now are different draws of one law: with a known reference, 1.0x would be wrong half of the time."""
    limit, rng, wrong = Limit("1.0x", "loss", value=0.0, factor=1.0), np.random.default_rng(4), 0
    for _ in range(60):
        wrong += judge_task("a", limit, rng.gamma(1.0, 0.5, 200), rng.gamma(1.0, 0.5, 200)).verdict != "undecided"
    assert wrong <= allowed_misses(60)


def test_a_floor_decides_where_the_reference_is_near_nothing():
    limit = Limit("1.1x>=0.5", "loss", value=0.5, factor=1.1)
    assert judge_task("a", limit, np.full(400, 1e-4), np.full(400, 0.05)).verdict == "kept"
    assert judge_task("a", limit, np.full(400, 1e-4), np.full(400, 1.0)).verdict == "BROKEN"


def test_the_number_that_would_decide_does_in_most_cases():
    rng, undecided, settled = np.random.default_rng(5), 0, 0
    for _ in range(40):
        row = judge_task("a", Limit("+5pt", rise=0.05), *drawn(rng, 60, before=0.1, worse=0.04, better=0.04))
        if row.verdict == "undecided" and row.wants and row.wants < 3000:
            undecided += 1
            seen = row.now - row.then
            again = drawn(rng, row.wants, before=0.1, worse=0.04 + max(seen, 0), better=0.04 - min(seen, 0))
            settled += judge_task("a", Limit("+5pt", rise=0.05), *again).verdict != "undecided"
    assert undecided >= 10
    assert settled >= 0.6 * undecided


def test_a_new_task_is_learned_or_not_by_its_limit_or_half_way():
    assert judge_task("n", Limit("10%", value=0.1), None, first(2, 200), kind="new").verdict == "learned"
    assert judge_task("n", Limit("10%", value=0.1), None, first(68, 200), kind="new").verdict == "NOT LEARNED"
    assert judge_task("n", Limit("10%", value=0.1), None, first(20, 200), kind="new").verdict == "undecided"
    default = half_way(chance=0.9, attainable=0.1)
    row = judge_task("n", default, None, first(136, 200), stated=False, past_weight=4.0, kind="new")
    assert (row.verdict, row.written, row.limit, row.kind) == ("NOT LEARNED", None, 0.5, "new")
    assert "more epochs" in row.sentence
    assert "or past tasks that weigh less (base_most=1), teach" in row.sentence
    assert judge_task("n", default, None, first(30, 200), stated=False, kind="new").verdict == "learned"


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_past_tasks_that_weigh_no_more_than_the_new_one_are_not_to_blame(weight):
    row = judge_task("n", Limit("10%", value=0.1), None, first(136, 200), past_weight=weight, kind="new")
    assert row.advice == ("more epochs teach it better",)


def test_a_limit_of_everything_is_undecided_and_no_number_of_samples_is_asked_for():
    row = judge_task("b", Limit("+5pt", rise=0.05), then=[1] * 40, now=[1] * 38 + [0] * 2)
    assert row.verdict == "undecided"
    says = "undecided: its limit allows every error (it had 100.0 % then); a stricter one can be judged"
    assert (row.sentence, row.wants) == (says, None)
    wide = judge_task("b", Limit("+60pt", rise=0.6), then=first(11, 20), now=first(14, 20))
    assert "(it had 55.0 % then)" in wide.sentence
    assert wide.wants is None
    assert "allows every error; a" in judge_task("n", Limit("100%", value=1.0), None, first(3, 20), kind="new").sentence


def test_samples_that_the_network_may_have_seen_can_break_a_limit_and_keep_none():
    few, many = [0] * 300, [1] * 150 + [0] * 150
    assert judge_task("a", Limit("10%", value=0.1), None, few).verdict == "kept"
    row = judge_task("a", Limit("10%", value=0.1), None, few, perhaps_seen=True)
    assert (row.verdict, row.wants) == ("undecided", None)
    assert "may have been trained on these samples" in row.sentence
    assert judge_task("a", Limit("10%", value=0.1), None, many, perhaps_seen=True).verdict == "BROKEN"


def test_no_number_of_samples_is_asked_for_where_a_row_that_may_have_been_seen_can_never_be_kept():
    few = judge_task("a", FIVE, None, first(0, 18))
    assert few.wants > 18
    row = judge_task("a", FIVE, None, first(0, 18), perhaps_seen=True)
    assert (row.verdict, row.wants) == ("undecided", None)
    assert "may have been trained on these samples" in row.sentence
    above = judge_task("a", FIVE, None, first(2, 18), perhaps_seen=True)
    assert (above.verdict, above.wants > 18) == ("undecided", True)


def test_rows_without_witnesses_say_so_and_cost_the_others_nothing():
    report = judge([Question("a", TWO_POINTS, first(0, 90), first(0, 90)), Question("b", TWO_POINTS, [], [])])
    assert report[1].verdict == "no witnesses"
    assert (report[1].now, report[1].low, report[1].limit, report[1].samples) == (None, None, None, 0)
    assert report[0] == judge_task("a", TWO_POINTS, first(0, 90), first(0, 90))


def test_what_the_caller_knows_stands_in_the_row():
    row = judge_task(
        "gold", FIVE, None, first(30, 90), kind="segment", split=Split(0.1, 0.2), steered=True, advice=["more memory"]
    )
    assert (row.kind, row.within, row.taken_by_new, row.steered) == ("segment", 0.1, 0.2, True)
    assert row.advice[0] == "more memory"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: judge_task("a", TWO_POINTS, None, [0, 1]), r"\+2pt needs what the same samples gave at the reference"),
        (lambda: judge_task("a", TWO_POINTS, [0], [0, 1]), "1 outcomes then, 2 now"),
        (lambda: judge_task("a", FIVE, None, [1.5]), "5% is an error rate: outcomes now must be 0"),
        (lambda: judge_task("a", FIVE, None, [[0]]), r"one outcome per sample, but has shape \(1, 1\)"),
        (lambda: judge_task("a", Limit("0.1", "loss", value=0.1), None, [0.5, -1.0]), "-1 is negative"),
        (lambda: judge_task("a", FIVE, None, [0], kind="class"), "not 'class'"),
        (lambda: judge_task("a", TWO_POINTS, None, [0], kind="new"), r"is new and has no value from before: \+2pt"),
        (lambda: half_way(0.5, 0.6), "attainable=0.6 must be below chance=0.5"),
        (lambda: half_way(0.5, 0.5), "attainable=0.5 must be below chance=0.5"),
        (lambda: Limit("x", "points", value=1.0), "not 'points'"),
        (lambda: Limit("x"), "a value, a rise, a factor"),
        (lambda: Limit("x", value=0.1, rise=0.1), "a value, a rise, a factor"),
        (lambda: Limit("+2pt", "loss", rise=0.1), "a rise in points, which error rates have"),
    ],
)
def test_nonsense_is_refused_before_any_work(make, says):
    with pytest.raises(UsageError, match=says):
        make()
