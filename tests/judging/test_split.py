"""Errors are split by what was predicted instead."""

import numpy as np
import pytest

from pdcl.errors import UsageError
from pdcl.judging import Split, split_errors


def test_the_parts_are_the_error_rate():
    rng = np.random.default_rng(0)
    targets, predictions = rng.integers(0, 4, 500), rng.integers(0, 8, 500)
    found = split_errors(targets, predictions, known=range(4))
    assert sum(found) == pytest.approx((targets != predictions).mean())
    assert found.taken_by_new == pytest.approx((predictions >= 4).mean())


def test_what_was_wrong_before_was_not_forgotten():
    assert split_errors([0, 0, 0, 1], [1, 5, 5, 1], [0, 1]) == Split(0.25, 0.5)
    assert split_errors([0, 0, 0, 1], [1, 5, 5, 1], [0, 1], then=[1, 0, 1, 0]) == Split(0.0, 0.25)


def test_classes_may_be_names():
    assert split_errors(["cat", "cat"], ["dog", "bird"], known=["cat", "dog"]) == Split(0.5, 0.5)


def test_no_samples_have_no_errors():
    assert split_errors([], [], [0]) == Split(0.0, 0.0)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match=r"targets \(2,\) and predictions \(3,\)"):
        split_errors([0, 1], [0, 1, 1], [0, 1])
    with pytest.raises(UsageError, match=r"then has \(1,\) values for \(2,\) targets"):
        split_errors([0, 1], [0, 1], [0, 1], then=[0])
