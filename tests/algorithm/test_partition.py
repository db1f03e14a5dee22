"""PB and BP: worked examples, invariants, and independent solvers as oracles."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from pdcl.algorithm.rules import rule
from pdcl.duality import affine_partition, distance_from_uniform, generalization_partition, uniform_partition

INF = math.inf
duals_lists = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-9, 1e6), st.integers(0, 5).map(float)), min_size=1, max_size=8
)


@st.composite
def problems(draw):
    duals = draw(duals_lists)
    available = draw(st.none() | st.lists(st.integers(0, 60), min_size=len(duals), max_size=len(duals)))
    return duals, draw(st.integers(0, 200)), draw(st.floats(0, 1)), available


@pytest.mark.parametrize(
    ("options", "counts"),
    [
        ({}, [38, 21, 12, 29]),
        ({"available": [25, 40, 25, INF]}, [25, 25, 15, 35]),
        ({"alpha": 1.0}, [50, 17, 0, 33]),
        ({"alpha": 0.0}, [25, 25, 25, 25]),
    ],
)
def test_w4_affine_partition(options, counts):
    assert affine_partition([3, 1, 0, 2], 100, **options) == counts


@pytest.mark.parametrize("duals", [[0, 0, 0], [1e-12, 0, 0], torch.zeros(3)])
def test_w4_without_duals_the_partition_is_uniform(duals):
    assert affine_partition(duals, 100) == [34, 33, 33]
    assert uniform_partition(3, 100) == [34, 33, 33]


def test_small_duals_count_once_they_are_more_than_noise():
    assert affine_partition([3e-5, 1e-5, 0, 2e-5], 100) == [38, 21, 12, 29]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_rounding_noise_breaks_no_tie(dtype):
    # In binary, the remainders of 37.5 and 12.5 would differ in the last digit and the tie would go astray.
    duals = torch.tensor([0.3, 0.1, 0.0, 0.2], dtype=dtype)
    if dtype == torch.bfloat16:
        duals = duals * 10
    assert affine_partition(duals, 100) == [38, 21, 12, 29]


def test_gradients_on_duals_are_no_obstacle():
    assert affine_partition(torch.tensor([1.0, 1.0], requires_grad=True), 5) == [3, 2]


@given(problems())
def test_every_partition_sums_exactly_and_stays_within_what_is_stored(problem):
    duals, capacity, alpha, available = problem
    caps = [capacity] * len(duals) if available is None else available
    for counts in (
        affine_partition(duals, capacity, alpha, available),
        affine_partition(duals, capacity, alpha, available, current_cap=0.3),
        uniform_partition(len(duals), capacity, available),
        generalization_partition(duals, capacity, available=available),
    ):
        assert sum(counts) == min(capacity, sum(caps))
        assert all(0 <= n <= cap for n, cap in zip(counts, caps, strict=True))


@given(problems())
def test_with_alpha_below_one_every_task_keeps_a_sample(problem):
    duals, capacity, alpha, available = problem
    if alpha < 1 and capacity >= len(duals):
        counts = affine_partition(duals, capacity, alpha, available)
        assert all(n >= 1 for k, n in enumerate(counts) if available is None or available[k] >= 1)


def test_what_tasks_without_a_share_keep_is_taken_from_the_largest_in_turn():
    assert affine_partition([1, 1, 0, 0], 10, 0.99) == [4, 4, 1, 1]
    assert affine_partition([3, 3, 2, 0, 0, 0], 16, 0.99) == [5, 4, 4, 1, 1, 1]


@given(problems(), st.randoms(use_true_random=False))
def test_permuting_tasks_permutes_their_partition(problem, random):
    """Up to ties: equal shares may swap the last sample, so pairs (share, count) are compared as multisets."""
    duals, capacity, alpha, available = problem
    order = random.sample(range(len(duals)), len(duals))
    moved = [duals[k] for k in order]
    caps = None if available is None else [available[k] for k in order]
    affine = [affine_partition(d, capacity, alpha, a) for d, a in ((duals, available), (moved, caps))]
    bounded = [generalization_partition(d, capacity, available=a) for d, a in ((duals, available), (moved, caps))]
    by_alpha = alpha if sum(duals) > 1e-8 else 0.0
    by_bound = 1 if capacity >= 5 * len(duals) else 0
    for (here, there), scale in ((affine, by_alpha), (bounded, by_bound)):
        pairs = [sorted((scale * d, n) for d, n in zip(*p, strict=True)) for p in ((duals, here), (moved, there))]
        assert pairs[0] == pairs[1]


@given(duals_lists, st.integers(0, 500), st.sampled_from([0.25, 0.5, 0.75, 1.0]))
def test_integers_stay_within_one_of_the_formula(duals, capacity, alpha):
    counts = affine_partition(duals, capacity, alpha)
    total, t = sum(map(Fraction, duals)), len(duals)
    kept = alpha < 1 and capacity >= t
    for dual, n in zip(duals, counts, strict=True):
        share = Fraction(dual) / total if total > 1e-8 else Fraction(1, t)
        ideal = capacity * (Fraction(alpha) * share + (1 - Fraction(alpha)) / t)
        # Keeping a sample of each task may take one from the largest for every other.
        assert ideal - 1 - (t if kept else 0) < n < ideal + 1 + 1e-6


@given(st.integers(1, 12), st.integers(0, 300), st.data())
def test_a_uniform_partition_is_as_even_as_storage_allows(tasks, capacity, data):
    available = data.draw(st.lists(st.integers(0, 50), min_size=tasks, max_size=tasks))
    counts = uniform_partition(tasks, capacity, available)
    free = [n for n, cap in zip(counts, available, strict=True) if n < cap]
    assert not free or max(counts) <= min(free) + 1


@given(duals_lists.filter(lambda duals: sum(duals) > 1e-8), st.integers(40, 300))
def test_a_larger_dual_never_gets_less(duals, capacity):
    for counts in (affine_partition(duals, capacity), generalization_partition(duals, capacity)):
        for j, k in itertools.permutations(range(len(duals)), 2):
            assert duals[j] <= duals[k] or counts[j] >= counts[k]


def water_filling(shares: list[Fraction], total: int, caps: list[int]) -> list[Fraction]:
    """The quotas by definition: tasks in the order in which they fill up; those without a share come last."""
    quotas = [Fraction(0)] * len(shares)
    for own, weights in ((lambda share: share > 0, shares), (lambda share: share == 0, [Fraction(1)] * len(shares))):
        group = [k for k, share in enumerate(shares) if own(share)]
        rest, left = sum(weights[k] for k in group), total - sum(quotas)
        for k in sorted(group, key=lambda k: caps[k] / weights[k]):
            quotas[k] = min(Fraction(caps[k]), left * weights[k] / rest)
            rest, left = rest - weights[k], left - quotas[k]
    return quotas


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.5, 1e-6]), st.integers(0, 12)), min_size=1, max_size=9),
    st.integers(0, 60),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_whole_numbers_give_what_fractions_give(tasks, capacity, alpha):
    duals, stored = [dual for dual, _ in tasks], [min(n, capacity) for _, n in tasks]
    exact, share = [Fraction(str(dual)) for dual in duals], Fraction(str(alpha))
    even = Fraction(1, len(tasks))
    shares = [share * dual / sum(exact) + (1 - share) * even for dual in exact] if sum(exact) else [even] * len(tasks)
    total = min(capacity, sum(stored))
    quotas = water_filling(shares, total, stored)
    counts = [math.floor(quota) for quota in quotas]
    order = sorted(range(len(tasks)), key=lambda k: (counts[k] - quotas[k], -shares[k], k))
    for k in order[: total - sum(counts)]:
        counts[k] += 1
    for k in [k for k, n in enumerate(counts) if not n and stored[k] and alpha < 1 and capacity >= len(tasks)]:
        giver = min(range(len(tasks)), key=lambda j: (-counts[j], shares[j], -j))
        counts[giver], counts[k] = counts[giver] - 1, 1
    assert affine_partition(duals, capacity, alpha, [n for _, n in tasks]) == counts


def test_a_task_with_a_single_sample_left_keeps_it():
    assert affine_partition([100, 0, 0], 3, 0.9, available=[3, 1, 1]) == [1, 1, 1]


@pytest.mark.parametrize(("total", "even"), [(0.9e-8, True), (1.1e-8, False)])
def test_duals_count_from_a_hundred_millionth_on(total, even):
    assert (affine_partition([total, 0, 0], 30) == [10, 10, 10]) == even


def test_surplus_of_a_capped_task_goes_to_the_others_in_proportion():
    assert affine_partition([6, 2, 1, 0], 90, 1.0, available=[10, INF, INF, INF]) == [10, 53, 27, 0]


def test_tasks_without_a_share_take_what_nobody_else_can_store():
    assert affine_partition([1, 0, 0], 20, 1.0, available=[4, INF, INF]) == [4, 8, 8]


def test_a_cap_on_the_current_task_hands_the_rest_to_the_past():
    assert affine_partition([1, 1, 8], 100) == [22, 21, 57]
    assert affine_partition([1, 1, 8], 100, current_cap=0.4) == [30, 30, 40]


@pytest.mark.parametrize(("cap", "counts"), [(1, [30, 30, 30]), (1.5, [23, 22, 45]), (4, [0, 0, 90]), (0, [0, 0, 90])])
def test_the_rules_cap_is_in_even_shares_and_0_is_none(cap, counts):
    assert rule("partition", f"affine:alpha=1,current_cap={cap}").counts([0.0, 0.0, 1.0], 90, [90] * 3) == counts


def test_a_cap_on_the_current_task_yields_where_the_past_has_nothing_to_keep():
    assert affine_partition([1, 1, 8], 100, current_cap=0.4, available=[20, 20, 500]) == [20, 20, 60]
    assert affine_partition([5.0], 100, current_cap=0.1) == [100]


@pytest.mark.parametrize(
    ("duals", "capacity", "available", "counts"),
    [
        ([4, 2, 1], 100, None, [53, 30, 17]),
        ([4, 2, 1], 30, None, [17, 8, 5]),
        ([4, 2, 1], 1000, None, [508, 307, 185]),
        ([10, 1, 1, 0], 60, None, [45, 5, 5, 5]),
        ([4, 2, 1], 100, [40, INF, INF], [40, 38, 22]),
        # Five for each, of which the last task has one; with a place less it is divided evenly.
        ([9, 1, 1], 15, [INF, INF, 1], [9, 5, 1]),
        ([9, 1, 1], 14, [INF, INF, 1], [7, 6, 1]),
    ],
)
def test_w6_generalization_partition(duals, capacity, available, counts):
    assert generalization_partition(duals, capacity, available=available) == counts


def bound(duals, counts):
    return sum(dual * math.sqrt(math.log(n) / n) for dual, n in zip(duals, counts, strict=True) if n)


def test_w6_value_of_the_bound():
    assert bound([4, 2, 1], generalization_partition([4, 2, 1], 100)) == pytest.approx(2.17645471, abs=5e-9)


def best_by_brute_force(duals, capacity, lows, highs):
    ranges = [range(low, high + 1) for low, high in zip(lows, highs, strict=True)]
    return min(bound(duals, counts) for counts in itertools.product(*ranges) if sum(counts) == capacity)


def test_no_partition_beats_the_greedy_one():
    random = np.random.default_rng(0)
    for _ in range(150):
        t, minimum = random.integers(2, 5), random.integers(4, 8)
        capacity = int(random.integers(t * minimum, t * minimum + 20))
        duals = random.exponential(10.0 ** random.integers(-5, 3), t) * (random.random(t) > 0.2)
        highs = random.integers(1, 40, t)
        highs[-1] = 1000
        lows = np.minimum(minimum, highs)
        counts = generalization_partition(duals, capacity, minimum=int(minimum), available=highs)
        assert sum(counts) == capacity
        assert all(low <= n <= high for low, n, high in zip(lows, counts, highs, strict=True))
        best = best_by_brute_force(duals, capacity, lows, np.minimum(highs, capacity))
        assert bound(duals, counts) == pytest.approx(best, rel=1e-12, abs=0)


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_the_greedy_partition_agrees_with_slsqp_on_a_scaled_problem(scale):
    random = np.random.default_rng(1)
    for _ in range(5):
        duals, capacity = random.exponential(size=5) * scale, 2000
        weights = duals / duals.sum()

        def relaxed(share, weights=weights, capacity=capacity):
            n = share * capacity
            return float((weights * np.sqrt(np.log(n) / n)).sum())

        answer = minimize(
            relaxed,
            np.full(5, 0.2),
            method="SLSQP",
            bounds=[(5 / capacity, 1)] * 5,
            constraints={"type": "eq", "fun": lambda share: share.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        counts = generalization_partition(duals, capacity)
        assert answer.success
        assert np.abs(answer.x * capacity - counts).max() < 1.5
        assert relaxed(np.array(counts) / capacity) == pytest.approx(answer.fun, rel=1e-6)


def test_generalization_partition_ignores_the_scale_of_duals():
    assert generalization_partition([4e-6, 2e-6, 1e-6], 100) == [53, 30, 17]


def test_too_little_memory_or_no_duals_give_the_uniform_partition():
    assert generalization_partition([4, 2, 1], 14) == [5, 5, 4]
    assert generalization_partition([0, 0, 0], 100) == [34, 33, 33]


def test_zero_duals_share_evenly_what_the_others_cannot_store():
    assert generalization_partition([1, 0, 0], 40, available=[8, 50, 50]) == [8, 16, 16]


def test_distance_from_uniform_is_a_total_variation():
    assert distance_from_uniform([5, 5, 5]) == 0
    assert distance_from_uniform([10, 0]) == 0.5
    assert distance_from_uniform([0, 0]) == 0
    assert distance_from_uniform(torch.tensor([75, 25])) == 0.25


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: affine_partition([1, 2], 10, alpha=1.5), "alpha .* 1.5"),
        (lambda: affine_partition([1, -2], 10), "not negative"),
        (lambda: affine_partition([1, math.nan], 10), "finite"),
        (lambda: affine_partition([], 10), "one number per task"),
        (lambda: affine_partition([1, 2], -1), "capacity .* -1"),
        (lambda: affine_partition([1, 2], 10, available=[3]), "1 entries for 2 tasks"),
        (lambda: affine_partition([1, 2], 10, available=[3, -1]), "available .* negative"),
        (lambda: affine_partition([1, 2], 10, current_cap=0.0), "current_cap"),
        (lambda: generalization_partition([1, 2], 10, minimum=3), "at least 4, not 3"),
    ],
)
def test_nonsense_is_named(call, says):
    with pytest.raises(ValueError, match=says):
        call()
