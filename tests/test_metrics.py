from __future__ import annotations

import math
import random

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pdcl import metrics
from pdcl.errors import UsageError

RAGGED = [[0.99], [0.90, 0.95], [0.80, 0.85, 0.97]]
SQUARE = [[0.99, 0.1, 0.2], [0.90, 0.95, 0.15], [0.80, 0.85, 0.97]]

shares = st.floats(0, 1)
matrices = st.integers(1, 6).flatmap(
    lambda t: st.lists(st.lists(shares, min_size=t, max_size=t), min_size=t, max_size=t)
)


@pytest.mark.parametrize("matrix", [RAGGED, SQUARE, np.array(SQUARE)], ids=["ragged", "square", "array"])
def test_worked_example_seven(matrix):
    assert metrics.forgetting(matrix) == pytest.approx([0.19, 0.10])
    assert metrics.mean_forgetting(matrix) == pytest.approx(0.145)
    assert metrics.mean_accuracy(matrix) == pytest.approx(0.8733, abs=5e-5)
    assert metrics.backward_transfer(matrix) == pytest.approx(((0.80 - 0.99) + (0.85 - 0.95)) / 2)


def test_forward_transfer_is_what_a_task_scores_before_its_turn_less_chance():
    assert metrics.forward_transfer(SQUARE, 0.1) == pytest.approx(((0.1 - 0.1) + (0.15 - 0.1)) / 2)
    assert metrics.forward_transfer(SQUARE, [0.9, 0.1, 0.2]) == pytest.approx(((0.1 - 0.1) + (0.15 - 0.2)) / 2)


@given(matrices)
def test_metrics_agree_with_their_definitions_written_out(matrix):
    last = len(matrix) - 1
    lost = [max(matrix[earlier][i] for earlier in range(last)) - matrix[last][i] for i in range(last)]
    assert metrics.forgetting(matrix) == pytest.approx(lost)
    assert metrics.mean_accuracy(matrix) == pytest.approx(sum(matrix[last]) / len(matrix))
    if last:
        assert metrics.mean_forgetting(matrix) == pytest.approx(sum(lost) / last)
        moved = sum(matrix[last][i] - matrix[i][i] for i in range(last)) / last
        assert metrics.backward_transfer(matrix) == pytest.approx(moved)
        given_before = sum(matrix[i - 1][i] - 0.3 for i in range(1, last + 1)) / last
        assert metrics.forward_transfer(matrix, 0.3) == pytest.approx(given_before)


def test_one_task_forgets_nothing_and_transfers_nothing():
    assert metrics.forgetting([[0.5]]) == []
    assert metrics.mean_forgetting([[0.5]]) == 0
    assert metrics.backward_transfer([[0.5]]) == 0
    assert metrics.forward_transfer([[0.5]], 0.1) == 0


def test_half_a_run_speaks_of_the_tasks_it_learned():
    half = SQUARE[:2]
    assert metrics.mean_accuracy(half) == pytest.approx((0.90 + 0.95) / 2)
    assert metrics.forgetting(half) == pytest.approx([0.09])


def test_a_missing_score_stays_missing_instead_of_becoming_a_number():
    assert math.isnan(metrics.mean_accuracy([[1.0, 0.0], [None, 0.5]]))
    assert math.isnan(metrics.mean_forgetting([[None, 0.0], [0.9, 0.5]]))


@pytest.mark.parametrize(
    "matrix", [[], [[]], [[1.0], [1.0]], [[[1.0]]]], ids=["empty", "no scores", "short row", "deep"]
)
def test_what_is_no_accuracy_matrix_is_refused(matrix):
    with pytest.raises(UsageError, match="accuracy matrix"):
        metrics.mean_accuracy(matrix)


def test_forward_transfer_refuses_a_matrix_that_never_looked_ahead():
    with pytest.raises(UsageError, match="before it was learned"):
        metrics.forward_transfer(RAGGED, 0.1)
    with pytest.raises(UsageError, match="2 values for 3 tasks"):
        metrics.forward_transfer(SQUARE, [0.1, 0.1])


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=12), st.floats(0.5, 0.999))
def test_interval_is_students(values, level):
    mean, half = metrics.interval(values, level)
    error = scipy.stats.sem(values)
    assert mean == pytest.approx(np.mean(values))
    assert half == pytest.approx(error * scipy.stats.t.ppf((1 + level) / 2, len(values) - 1))


def test_interval_covers_the_truth_as_often_as_it_says():
    # 4,000 intervals at 95 %: outside ±4 binomial standard deviations once in 15,000 seeds.
    generator = np.random.default_rng(0)
    trials = 4000
    hits = sum(abs(m) <= h for m, h in (metrics.interval(generator.normal(size=4)) for _ in range(trials)))
    assert abs(hits / trials - 0.95) < 4 * math.sqrt(0.95 * 0.05 / trials)


def test_one_value_has_a_mean_and_no_known_width():
    mean, half = metrics.interval([0.7])
    assert mean == 0.7
    assert math.isnan(half)


@pytest.mark.parametrize(("values", "level"), [([], 0.95), ([[1.0]], 0.95), ([1.0, 2.0], 95), ([1.0, 2.0], 0)])
def test_interval_refuses_nonsense(values, level):
    with pytest.raises(UsageError, match="interval"):
        metrics.interval(values, level)


def test_paired_difference_is_the_paired_t_test_over_shared_seeds():
    draw = random.Random(3)
    a = {seed: draw.random() for seed in range(8)}
    b = {seed: draw.random() for seed in range(2, 11)}
    shared = range(2, 8)
    oracle = scipy.stats.ttest_rel([a[s] for s in shared], [b[s] for s in shared])
    ours = metrics.paired_difference(a, b)
    low, high = oracle.confidence_interval(0.95)
    assert (ours.low, ours.high, ours.p) == pytest.approx((low, high, oracle.pvalue))
    assert ours.n == 6
    assert ours.mean == pytest.approx((low + high) / 2)


def test_paired_difference_without_spread_or_without_pairs():
    same = metrics.paired_difference({0: 0.5, 1: 0.7}, {0: 0.5, 1: 0.7})
    assert (same.mean, same.low, same.high, same.p, same.clear) == (0, 0, 0, 1, False)
    lead = metrics.paired_difference({0: 1.0, 1: 2.0}, {0: 0.0, 1: 1.0})
    assert (lead.mean, lead.low, lead.p, lead.clear) == (1, 1, 0, True)
    alone = metrics.paired_difference({0: 1.0}, {0: 0.5})
    assert (alone.mean, alone.n, alone.clear) == (0.5, 1, False)
    assert math.isnan(alone.low)
    apart = metrics.paired_difference({0: 1.0}, {1: 1.0})
    assert apart.n == 0
    assert math.isnan(apart.mean)
