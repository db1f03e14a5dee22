"""Where large duals lie."""

from __future__ import annotations

import numpy as np
import pytest

from pdcl.reports.borders import borders, near_another_class
from pdcl.reports.holdings import Holdings


def two_clusters(dual: np.ndarray) -> Holdings:
    """Two classes of 50 on a line, −50 … −1 and 1 … 50: the border lies at 0."""
    places = np.concatenate([np.arange(-50, 0), np.arange(1, 51)]).astype(float)
    label = (places > 0).astype(np.int64)
    return Holdings(np.zeros((100, 1)), label, np.zeros(100, np.int64), dual, places[:, None])


def test_only_samples_next_to_the_other_class_are_at_the_border() -> None:
    held = two_clusters(np.zeros(100))
    at_border = near_another_class(held.features, held.y)
    places = held.features[:, 0]
    assert at_border[np.abs(places) <= 4].all()
    assert not at_border[np.abs(places) >= 7].any()


def test_large_duals_at_the_border_and_far_from_it_are_told_apart() -> None:
    places = two_clusters(np.zeros(100)).features[:, 0]
    near = borders(two_clusters(1.0 / np.abs(places)))
    far = borders(two_clusters(np.abs(places)))
    assert near.large >= 0.9
    assert far.large == 0.0
    assert near.all == far.all < 0.15


def test_without_duals_or_features_there_is_nothing_to_say() -> None:
    assert borders(two_clusters(np.zeros(100))) is None
    held = two_clusters(np.ones(100))
    assert borders(Holdings(held.x, held.y, held.task, held.dual, None)) is None


def test_a_few_positive_duals_are_all_that_count_as_large() -> None:
    dual = np.zeros(100)
    dual[50] = 1.0  # at place 1, next to the other class
    assert borders(two_clusters(dual)).large == pytest.approx(1.0)
