"""Which samples memory keeps. Random claims use a fixed seed; each states how often a sound sampler would fail."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from pdcl.algorithm.selection import select_each
from pdcl.duality import (
    balanced_quota,
    herding,
    ring_slots,
    robust_weights,
    sample_without_replacement,
    select,
    uniform_selection,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def inclusion(draw, items: int, runs: int) -> np.ndarray:
    """How often each item was among the drawn ones."""
    drawn = torch.cat([draw() for _ in range(runs)])
    return torch.bincount(drawn, minlength=items).numpy() / runs


def uniformity(share: np.ndarray, runs: int) -> float:
    """Q = Σ (O_i − Rπ)² / (Rπ(1−π) N/(N−1)), χ² with N − 1 degrees for equal inclusion without replacement."""
    pi, n = share.mean(), len(share)
    return runs * ((share - pi) ** 2).sum() / (pi * (1 - pi) * n / (n - 1))


@pytest.mark.parametrize(
    ("weights", "n", "expected"),
    [
        ([3, 1, 1], 2, [0.9, 0.55, 0.55]),
        ([4, 3, 2, 1], 2, [0.715873, 0.608333, 0.441270, 0.234524]),
        ([8, 1, 1, 0], 3, [1, 1, 1, 0]),
        ([4e-300, 3e-300, 2e-300, 1e-300], 2, [0.715873, 0.608333, 0.441270, 0.234524]),
    ],
)
def test_w5_inclusion_probabilities(weights, n, expected):
    """|z| < 4.5 for each of up to four items: false alarms below 3e-5 a case."""
    runs, generator = 6000, seeded()
    weights = torch.tensor(weights, dtype=torch.float64)
    share = inclusion(lambda: sample_without_replacement(weights, n, generator), len(weights), runs)
    error = np.sqrt(np.array(expected) * (1 - np.array(expected)) / runs)
    assert (np.abs(share - expected) <= 4.5 * error + 1e-12).all()


def test_w5_whole_subsets_come_with_their_probabilities():
    """Ordered draws from (4, 3, 2, 1): P(i, j) = w_i/10 · w_j/(10 − w_i). χ² with 11 degrees, false alarms 1e-5."""
    weights, runs, generator = torch.tensor([4.0, 3, 2, 1]), 6000, seeded(1)
    drawn = torch.stack([sample_without_replacement(weights, 2, generator) for _ in range(runs)])
    statistic = 0.0
    for i, j in itertools.permutations(range(4), 2):
        expected = runs * weights[i] / 10 * weights[j] / (10 - weights[i])
        statistic += (((drawn == torch.tensor([i, j])).all(dim=1).sum() - expected) ** 2 / expected).item()
    assert statistic < chi2.isf(1e-5, 11)


def test_zero_weights_fill_in_uniformly_only_when_the_others_run_out():
    """Inclusion of the six zeros, two of them a draw: Q test, false alarms 1e-5 on either side."""
    weights, runs, generator = torch.tensor([0.0, 5, 0, 0, 1, 0, 0, 0]), 4000, seeded()
    share = inclusion(lambda: sample_without_replacement(weights, 4, generator), 8, runs)
    assert share[1] == share[4] == 1
    zeros = share[[0, 2, 3, 5, 6, 7]]
    assert zeros.mean() == pytest.approx(1 / 3)
    assert chi2.ppf(1e-5, 5) < uniformity(zeros, runs) < chi2.isf(1e-5, 5)


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-300, 1e300)), max_size=20), st.data())
def test_draws_are_distinct_and_spend_positive_weights_first(weights, data):
    n = data.draw(st.integers(0, len(weights)))
    drawn = sample_without_replacement(weights, n, seeded()).tolist()
    assert len(set(drawn)) == n
    assert sum(weights[i] > 0 for i in drawn) == min(n, sum(weight > 0 for weight in weights))


def test_the_same_seed_draws_the_same():
    weights = torch.rand(100, generator=seeded())
    draws = [sample_without_replacement(weights, 30, seeded(7)) for _ in range(2)]
    assert torch.equal(*draws)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sample_without_replacement([1.0, 2.0], 3, seeded()), "3 of 2"),
        (lambda: sample_without_replacement([1.0, -2.0], 1, seeded()), "not negative"),
        (lambda: sample_without_replacement([1.0, float("nan")], 1, seeded()), "finite"),
        (lambda: select([1.0, 2.0], 3, seeded(), [0, 1]), "3 of 2"),
        (lambda: select([1.0, 2.0], 1, seeded(), [0]), "2 weights but 1 labels"),
        (lambda: uniform_selection(4, 5, seeded()), "5 of 4"),
        (lambda: robust_weights([1.0], quantile=1.5), "quantile .* 1.5"),
        (lambda: robust_weights([1.0], uniform=-0.5), "uniform .* -0.5"),
        (lambda: ring_slots(torch.tensor([0]), torch.tensor([0]), 0), "quota .* 0"),
        (lambda: herding(torch.ones(3, 2), 4), "4 of 3"),
    ],
)
def test_nonsense_is_named(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_robust_weights_clip_at_the_quantile_and_mix_in_the_uniform_share():
    duals = torch.tensor([1.0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100])
    weights = robust_weights(duals, quantile=0.9, uniform=0.5)
    torch.testing.assert_close(weights, torch.full((11,), 1 / 11, dtype=torch.float64))
    raw = robust_weights(duals, quantile=1.0, uniform=0.5)
    assert raw[-1].item() == pytest.approx(0.5 * 100 / 110 + 0.5 / 11)


def test_the_literal_rule_is_selectable():
    weights = robust_weights(torch.tensor([3.0, 1.0, 0.0]), quantile=1.0, uniform=0.0)
    assert weights.tolist() == [0.75, 0.25, 0.0]


def test_a_few_positive_duals_among_many_zeros_keep_their_say():
    weights = robust_weights(torch.tensor([0.0] * 97 + [2.0, 2.0, 2.0]), uniform=0.4)
    assert weights[-1].item() == pytest.approx(0.6 / 3 + 0.004)
    assert weights[0].item() == pytest.approx(0.004)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_robust_weights_are_probabilities_in_the_order_of_the_duals(duals, quantile, uniform):
    weights = robust_weights(duals, quantile, uniform)
    assert weights.sum().item() == pytest.approx(1.0)
    assert (weights >= 0).all()
    order = sorted(range(len(duals)), key=duals.__getitem__)
    assert (weights[order].diff() >= -1e-15).all()


def test_duals_that_are_all_zero_weigh_the_same():
    assert robust_weights([0.0, 0.0, 0.0, 0.0]).tolist() == [0.25] * 4
    assert len(robust_weights([])) == 0


@given(st.lists(st.integers(0, 5), max_size=60), st.data())
def test_classes_are_as_balanced_as_availability_allows(labels, data):
    n = data.draw(st.integers(0, len(labels)))
    quota = balanced_quota(torch.tensor(labels, dtype=torch.long), n)
    chosen = select(torch.ones(len(labels)), n, seeded(), torch.tensor(labels, dtype=torch.long))
    picked = [labels[i] for i in chosen.tolist()]
    assert len(set(chosen.tolist())) == n
    assert {label: picked.count(label) for label in set(labels)} == quota
    free = [count for label, count in quota.items() if count < labels.count(label)]
    assert not free or max(quota.values()) <= min(free) + 1


def test_inside_a_class_the_weights_decide():
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    chosen = select([0.0, 9.0, 0.0, 0.0, 0.0, 9.0], 2, seeded(), labels)
    assert sorted(chosen.tolist()) == [1, 5]
    assert select([0.0, 9.0, 0.0], 1, seeded()).tolist() == [1]


@pytest.mark.parametrize("by_class", [True, False])
def test_many_sets_at_once_draw_what_each_would_draw_alone(by_class):
    given = torch.Generator().manual_seed(3)
    sizes, counts = [7, 1, 0, 30, 12], [3, 1, 0, 11, 12]
    weights = torch.rand(50, generator=given, dtype=torch.float64)
    weights[torch.rand(50, generator=given) < 0.4] = 0
    labels = torch.randint(0, 4, (50,), generator=given) if by_class else None
    alone, start = [], 0
    one, all_of_them = (torch.Generator().manual_seed(9) for _ in range(2))
    for size, count in zip(sizes, counts, strict=True):
        own = slice(start, start + size)
        alone.append(start + select(weights[own], count, one, None if labels is None else labels[own]))
        start += size
    assert torch.equal(select_each(weights, sizes, counts, all_of_them, labels), torch.cat(alone))
    assert torch.equal(one.get_state(), all_of_them.get_state())


def test_uniform_selection_is_uniform():
    """Q test with 9 degrees: false alarms 1e-4 on either side together."""
    generator = seeded()
    share = inclusion(lambda: uniform_selection(10, 3, generator), 10, 5000)
    assert share.mean() == pytest.approx(0.3)
    assert chi2.ppf(5e-5, 9) < uniformity(share, 5000) < chi2.isf(5e-5, 9)


@given(st.lists(st.lists(st.integers(0, 4), max_size=15), max_size=4), st.integers(1, 4))
def test_a_ring_holds_the_newest_of_each_group(batches, quota):
    held, counters, history = {}, torch.zeros(2, dtype=torch.long), []
    for batch in batches:
        positions, slots, counters = ring_slots(torch.tensor(batch, dtype=torch.long), counters, quota)
        assert len(set(slots.tolist())) == len(slots)
        for position, slot in zip(positions.tolist(), slots.tolist(), strict=True):
            held[slot] = len(history) + position
        history += batch
    assert counters.tolist() == [history.count(g) for g in range(len(counters))]
    for group in set(history):
        newest = [i for i, g in enumerate(history) if g == group][-quota:]
        assert sorted(i for slot, i in held.items() if slot // quota == group) == newest


def test_a_ring_writes_around_in_order():
    positions, slots, counters = ring_slots(torch.tensor([0, 1, 0, 0, 1]), torch.tensor([1, 0]), 2)
    assert dict(zip(slots.tolist(), positions.tolist(), strict=True)) == {0: 2, 1: 3, 2: 1, 3: 4}
    assert counters.tolist() == [4, 2]


def test_herding_is_the_greedy_argmin_of_the_distance_between_means():
    for seed in range(10):
        features = torch.randn(15, 4, generator=seeded(seed), dtype=torch.float64)
        mean, chosen = features.mean(dim=0), []
        for k in range(8):
            distance = [
                (mean - (features[i] + features[chosen].sum(dim=0)) / (k + 1)).norm() if i not in chosen else np.inf
                for i in range(15)
            ]
            chosen.append(int(np.argmin(distance)))
        assert herding(features, 8).tolist() == chosen


def test_herding_takes_every_sample_once_even_if_all_are_alike():
    assert sorted(herding(torch.ones(6, 3), 6).tolist()) == list(range(6))
    assert herding(torch.ones(6, 3), 0).tolist() == []
