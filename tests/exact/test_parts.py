"""What a solved head is made of, each part against a plain account of it: words, sums, margins."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from pdcl.algorithm.guard_search import UNSEEN, Guards, margins
from pdcl.errors import UsageError
from pdcl.features.ngrams import FIRST, SECOND, NGrams
from pdcl.features.vectors import column_spreads
from pdcl.methods.squared_loss import squared
from pdcl.past.quadratics import cell_weights
from pdcl.past.sets import Sets, widest
from pdcl.past.statistics import Moments, Running, check_finite, gram_bytes, without_empty
from pdcl.ragged import Ragged
from pdcl.storage.serialize import same

DOUBLE = torch.float64


def moments(task: int, targets: list[int], outputs: int = 4, width: int = 3) -> Moments:
    sums = Running(width, outputs, exact=True)
    random = torch.Generator().manual_seed(task)
    sums.include(torch.randn(len(targets), width, generator=random, dtype=DOUBLE), torch.tensor(targets))
    return sums.moments(task)


def test_a_text_is_its_hashed_words_and_pairs_counted_one_by_one() -> None:
    """1 + log(count) in each bucket, of length 1; texts don't share pairs, and one without words has none."""
    texts, width = [[5, 9, 5, 9, 5], [7], [], [9, 9, 9]], 50
    found = NGrams(width).compute(
        Ragged(torch.tensor([token for each in texts for token in each]), torch.tensor([len(each) for each in texts]))
    )

    def bucket(value: int) -> int:
        mixed = (value * SECOND + 2**63) % 2**64 - 2**63
        return (mixed >> 20) % width

    for text, row in zip(texts, found, strict=True):
        counts = np.zeros(width)
        for number in [*text, *(a * FIRST + b + 1 for a, b in pairwise(text))]:
            counts[bucket(number)] += 1
        expected = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0)
        assert row.tolist() == pytest.approx(list(expected / max(np.linalg.norm(expected), 1e-12)), abs=1e-6)


def test_pixels_of_any_scale_are_divided_by_their_spread_and_blank_ones_by_no_zero() -> None:
    x = torch.rand(40, 5, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(column_spreads(1e-3 * x, one_unit=True), 1e-3 * column_spreads(x, one_unit=True))
    assert bool((column_spreads(torch.zeros(4, 5), one_unit=True) > 0).all())


def test_features_that_are_not_finite_are_named_by_their_row() -> None:
    features = torch.ones(5, 2)
    features[3, 1] = math.nan
    with pytest.raises(UsageError, match="row 3 of a batch"):
        check_finite(features)


def test_what_one_sample_is_left_of_stays_and_what_none_is_left_of_goes() -> None:
    found = moments(2, [0, 1, 1, 3])
    counts = found.counts.clone()
    counts[0, 1] = 0
    left = without_empty(Moments(found.tasks, found.columns, counts, found.gram, found.cross, 2, 2.0))
    assert (left.tasks, left.columns.tolist(), left.counts.tolist()) == ((2,), [0, 3], [[1, 1]])
    assert torch.equal(left.cross, found.cross[[0, 2]])


def test_a_task_that_was_never_learned_has_no_statistics() -> None:
    sets = Sets()
    for task in (0, 1):
        with pytest.raises(UsageError, match=f"task {task} was never learned here"):
            sets.holder(task)
        sets.add(moments(0, [0, 1]), alone=False)
    assert sets.holder(0) is sets.common


def test_sets_are_saved_with_those_of_segments() -> None:
    first, second = Sets(), Sets()
    first.add(moments(0, [0, 1]), alone=True)
    first.add(moments(1, [2, 2]), alone=False)
    first.add_segment("plan=old", moments(0, [0]))
    second.load_state_dict(first.state_dict())
    assert same(second.state_dict(), first.state_dict())
    assert [*second.segments] == ["plan=old"]


@pytest.mark.parametrize("memory", [10, 37, 1000, 123_457])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("limited", "gram", "both"), [(True, 1 / 2, 3 / 4), (False, 3 / 4, 7 / 8)])
def test_the_widest_features_leave_room_for_classes_and_guards(
    memory: int, dtype: torch.dtype, limited: bool, gram: float, both: float
) -> None:
    fit = [
        width
        for width in range(1, 600)
        if gram_bytes(width, dtype) <= gram * memory
        and gram_bytes(width, dtype) + 10 * (width * dtype.itemsize + 16) <= both * memory
    ]
    assert widest(memory, dtype, 10, limited) == max(fit, default=1)


@pytest.mark.parametrize("targets", [[[0, 0]], [[0, 1, 1], [2, 0, 0, 0]], [[3], [3, 3], [0, 1, 2]]])
def test_every_class_weighs_the_same_and_all_of_them_as_much_as_there_are_tasks(targets: list[list[int]]) -> None:
    sets = [moments(task, own) for task, own in enumerate(targets)]
    by_class = torch.zeros(4, dtype=DOUBLE)
    for each, weights in zip(sets, cell_weights(sets, 4), strict=True):
        by_class[each.columns] += weights
    assert float(by_class.sum()) == pytest.approx(len(targets))
    assert by_class[by_class > 0].tolist() == pytest.approx([float(by_class.max())] * int((by_class > 0).sum()))


def test_the_squared_loss_counts_an_output_that_was_never_seen_as_zero() -> None:
    scores, targets = torch.tensor([[0.5, UNSEEN, 0.2], [0.1, UNSEEN, 1.0]]), torch.tensor([0, 2])
    assert squared(scores, targets).tolist() == pytest.approx([0.25 + 0.04, 0.01])
    assert squared(scores, targets, blank=True).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("limit", [0.0, 0.3, 1.0])
def test_a_limit_is_steered_to_half_a_standard_error_below_it(limit: float) -> None:
    sets = torch.tensor([[True] * 16 + [False] * 4])
    guards = Guards(torch.zeros(20, 2, dtype=DOUBLE), torch.zeros(20).long(), torch.zeros(20).long(), sets)
    wrong = torch.tensor([1.0, 0.0, 0.0, 0.0] * 5, dtype=DOUBLE)
    rate = min(max(limit, 0.002), 0.998)
    absolute = margins(torch.tensor([limit]), guards, wrong, None)
    assert absolute.tolist() == pytest.approx([max(0.0, limit - 0.5 * math.sqrt(rate * (1 - rate) / 16))])
    paired = margins(torch.tensor([limit]), guards, wrong, torch.zeros(1, 20, dtype=DOUBLE))
    assert paired.tolist() == pytest.approx([max(0.0, limit - 0.5 * math.sqrt(0.25 * 0.75 / 16))])
