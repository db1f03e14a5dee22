"""Where large duals lie."""

from __future__ import annotations

import numpy as np
import pytest

from pdcl.lab.figures.borders import Borders, among_large, borders, near_another_class
from pdcl.lab.reports.holdings import Holdings


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


def two_tasks(scale: float) -> Holdings:
    """Two such tasks on the same line; duals of the second are larger by a factor, and largest far from the border."""
    one = two_clusters(np.zeros(100))
    places = np.concatenate([one.features, one.features])
    far = np.abs(one.features[:, 0])
    dual, task = np.concatenate([1 / far, scale * far]), np.repeat([0, 1], 100)
    return Holdings(np.zeros((200, 1)), np.concatenate([one.y, one.y + 2]), task, dual, places)


def test_large_duals_and_borders_are_those_of_each_task() -> None:
    found = borders(two_tasks(1.0))
    assert found == borders(two_tasks(1000.0)), "the scale of a task's duals counts for nothing"
    assert 0.45 <= found.large <= 0.5, "ten of each task: one's lie at its border, the other's far from it"
    assert found.all < 0.15, "a class of another task makes no border"


def test_a_task_whose_duals_are_zero_counts_on_neither_side() -> None:
    held = two_tasks(0.0)
    marked = held.task == 1
    assert among_large(marked, held) == Borders(0.0, 0.0)


def test_without_duals_or_features_there_is_nothing_to_say() -> None:
    assert borders(two_clusters(np.zeros(100))) is None
    held = two_clusters(np.ones(100))
    assert borders(Holdings(held.x, held.y, held.task, held.dual, None)) is None


def test_a_few_positive_duals_are_all_that_count_as_large() -> None:
    dual = np.zeros(100)
    dual[50] = 1.0  # at place 1, next to the other class
    assert borders(two_clusters(dual)).large == pytest.approx(1.0)
