"""What a learner's table advises could help this very learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pdcl

pytestmark = pytest.mark.filterwarnings("ignore::pdcl.LimitBroken")


def pair(n: int, first: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(first)
    y = np.arange(n) % 2 + first
    return rng.normal(size=(n, 8)).astype("float32") + 4 * np.eye(8, dtype="float32")[y], y


@pytest.mark.parametrize("groups", [None, "one"])
def test_a_task_too_small_to_hold_any_back_is_not_told_to_use_more_memory(groups: str | None) -> None:
    n = 9 if groups is None else 40
    learner = pdcl.PDCL("mlp:8", memory=400, tolerance="+2pt")
    learner.learn(*pair(n), name="a", epochs=1, groups=None if groups is None else ["one"] * n)
    row = learner.learn(*pair(400, 2), name="b", epochs=1).promises[0]
    why = "that is none" if groups is None else "the smallest of its groups has 40"
    assert row.sentence == f"undecided: no witnesses; at most a tenth of its {n} samples may be held back, and {why}"


def test_a_task_that_could_have_witnesses_is_told_how() -> None:
    learner = pdcl.PDCL("mlp:8", memory=100, tolerance="+2pt")
    learner.learn(*pair(200), name="a", epochs=1)
    row = learner.learn(*pair(200, 2), name="b", epochs=1).promises[0]
    assert row.sentence == "undecided: no witnesses; more memory, or witness=, gives some"


@pytest.mark.parametrize(
    ("tasks", "options", "lighter"),
    [(1, {}, False), (3, {}, True), (3, {"base": 0.0}, False), (3, {"base_most": 1.0}, False)],
)
def test_lighter_past_tasks_are_advised_only_where_they_can_be_lighter(
    tasks: int, options: dict[str, float], lighter: bool
) -> None:
    """Labels without a pattern, so that no task reaches 1 % error."""
    learner = pdcl.PDCL("mlp:8", memory=800, witness=60, tolerance={"*": "+50pt", "new": "1%"}, **options)
    for task in range(tasks):
        x = np.random.default_rng(task).normal(size=(600, 8)).astype("float32")
        y = np.arange(600) % 2 + 2 * task
        row = learner.learn(x, y, name=str(task), epochs=1).promises[-1]
    assert row.verdict == "NOT LEARNED"
    assert ("base_most" in row.sentence) == lighter


def test_a_squared_error_far_above_its_limit_is_broken_and_any_limit_can_be_stated() -> None:
    """Targets of deviation 70 that one pass can't learn; squared errors beyond ln 100 used to count as that."""
    rng = np.random.default_rng(0)

    def task(seed: int, n: int = 600) -> tuple[Any, Any]:
        x = rng.normal(size=(n, 6)).astype("float32") + seed
        return x, (x @ (30 * np.random.default_rng(seed).normal(size=6))).astype("float32")

    for limit, verdict in ((4.7, "BROKEN"), (1e6, "kept")):
        learner = pdcl.PDCL("mlp:16", memory=400, tolerance=limit, witness=60)
        learner.learn(*task(0), name="a", kind="regression", epochs=2)
        x, y = task(0, 2000)
        row = learner.learn(*task(1), name="b", kind="regression", epochs=1).promises[0]
        assert row.verdict == verdict
        assert row.now == pytest.approx(-learner.evaluate(x, y), rel=0.6)


@pytest.mark.parametrize(("memory", "epochs", "by_heart"), [(250, 30, True), (1200, 1, False)])
def test_a_network_that_knows_its_memory_by_heart_is_told_apart_from_one_that_cannot(
    memory: int, epochs: int, by_heart: bool
) -> None:
    """A fifth of the labels is wrong, so no network is below 20 % on new samples. Few samples seen often are learned
    all the same; many seen once are not."""
    chance = np.random.default_rng(3)
    learner = pdcl.PDCL("mlp:128", memory=memory, tolerance="5%", witness=100, lr=0.005)
    for task in range(2):
        x, y = pair(600, 2 * task)
        y = np.where(chance.random(len(y)) < 0.2, 4 * task + 1 - y, y)
        row = learner.learn(x, y, name=str(task), epochs=epochs, batch=32).promises[0]
    assert row.verdict == "BROKEN"
    assert ("learned by heart" in row.sentence) == by_heart
    if by_heart:
        assert row.stored is not None
        assert row.stored < 0.05 < row.now
