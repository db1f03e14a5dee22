"""What an exact learner refuses in one line: options, kinds of data, bounds, states; and what it just holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.errors import UsageError
from pdcl.features.ngrams import NGrams
from pdcl.methods.exact import Exact
from pdcl.past.statistics import gram_bytes
from pdcl.streams.task import Spec

Drawn = Callable[..., tuple[Any, Any]]
pytestmark = pytest.mark.filterwarnings("ignore::pdcl.LearningWarning")


def test_options_without_effect_and_tokens_are_refused() -> None:
    for said, options in {
        "network='mlp:8' has no effect": {"network": "mlp:8"},
        "give bytes": {"memory": "300"},
    }.items():
        with pytest.raises(UsageError, match=said):
            Exact(**options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not tokens; use pdcl or er"):
        Exact().prepare(Spec((12,), torch.int64, 5, "tokens"))
    with pytest.raises(UsageError, match="token numbers of unequal length"):
        NGrams(8).compute(torch.zeros(2, 3))
    learner = Exact(tolerance="5%")
    with pytest.raises(UsageError, match="are stated when it is made or loaded"):
        learner.tolerance = "9%"
    assert learner.tolerance == "5%"
    assert learner.report().duals == []


@pytest.mark.parametrize("erasable", [False, True])
def test_the_least_bound_holds_one_gram_and_the_sums_of_all_classes(erasable: bool, drawn: Drawn) -> None:
    """Upper half of 7 × 7, packed; 3 × 7; two whole numbers for each class."""
    x, y = drawn([0, 1, 2], 40, 0)
    size = 8 if erasable else 4
    least = gram_bytes(7, torch.float64 if erasable else torch.float32) + 3 * 7 * size + 3 * 2 * 8
    assert gram_bytes(7, torch.float32) == 4 * 4 * 8
    options: Any = {"features": "raw", "erasable": erasable, "guard": 0}
    learner: Any = pdcl.learner("exact", memory=f"{least}B", **options)
    learner.learn(x, y)
    assert learner.nbytes == least
    with pytest.raises(UsageError, match=re.escape(f"it takes {least:,} bytes; give more memory, or fewer features")):
        pdcl.learner("exact", memory=f"{least - 1}B", **options).learn(x, y)


def test_where_sums_need_the_room_fewer_samples_stay_held_back(drawn: Drawn) -> None:
    """Two more classes a task, each of them a column of sums: in the end nothing is held back."""
    learner: Any = pdcl.learner("exact", features="random:40", memory="9KB", tolerance="+5pt")
    held = []
    for task in range(6):
        learner.learn(*drawn([2 * task, 2 * task + 1], 200, task), name=str(task))
        assert learner.nbytes <= 9000
        held.append(len(learner.held.memory))
    assert held[0] > held[-1]
    assert len(learner.sets.parts) == 1


def test_a_task_of_copies_of_guards_is_refused(drawn: Drawn) -> None:
    x, y = drawn([0, 1], 400, 0)
    learner: Any = pdcl.learner("exact", features="raw")
    learner.learn(x, y)
    rows = learner.held.memory["id"].numpy()
    with pytest.raises(UsageError, match=r"held back|copies of guards"):
        learner.learn(x[rows], y[rows])
    assert learner.tasks_learned == 1


@pytest.mark.parametrize("spoiled", [float("nan"), float("inf")])
def test_damaged_statistics_are_refused_when_they_are_loaded(spoiled: float, drawn: Drawn) -> None:
    one, two = (pdcl.learner("exact", features="raw") for _ in range(2))
    for learner in (one, two):
        learner.learn(*drawn([0, 1], 100, 0))
    state = one.state_dict()
    state["method"]["sets"]["common"]["gram"][0, 3] = spoiled
    with pytest.raises(UsageError, match="damaged"):
        two.load_state_dict(state)


def test_texts_are_hashed_without_being_asked_for() -> None:
    random = np.random.default_rng(0)
    y = np.arange(120) % 2
    words = [7 * label + random.integers(0, 6, size=4 + label) for label in y]
    learner: Any = pdcl.learner("exact")
    learner.learn({"input_ids": words}, y)
    assert learner.phi.name == "ngrams:2048"
    assert learner.evaluate({"input_ids": words}, y) > 0.9


def test_without_guards_room_in_error_has_no_price(drawn: Drawn) -> None:
    learner: Any = pdcl.learner("exact", features="raw", tolerance="5%", guard=0)
    for task in range(2):
        learner.learn(*drawn([2 * task, 2 * task + 1], 200, task))
    assert learner.room_gains(0, 0.01) is None
