"""Two learners with their own labels, tasks, guards and segments, added: every guard stays what it was."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.errors import UsageError
from pdcl.methods.exact_limits import known_past

Drawn = Callable[..., tuple[Any, Any]]
pytestmark = pytest.mark.filterwarnings("ignore::pdcl.LearningWarning")


def _named(drawn: Drawn, names: str, each: int, seed: int) -> tuple[Any, Any]:
    """Classes far apart, called by letters: class k of the plane is the k-th letter."""
    x, y = drawn(["abcdef".index(name) for name in names], each, seed, distance=9)
    return x, np.array(list("abcdef"))[y]


def _pair(drawn: Drawn, **options: Any) -> tuple[Any, Any]:
    """The first knows a to f, and its task "old"; the second met them in another order, "old" among its tasks."""
    one: Any = pdcl.learner("exact", features="raw", rho=1e-3, erasable=True, **options)
    one.learn(*_named(drawn, "abcdef", 60, 0), name="old", columns={"plan": ["x"] * 360})
    two: Any = pdcl.learner("exact", features=one.phi, rho=1e-3, erasable=True, **options)
    two.learn(*_named(drawn, "fd", 80, 1), name="new", columns={"plan": ["x", "y"] * 80})
    two.learn(*_named(drawn, "bc", 70, 2), name="old", columns={"plan": ["y"] * 140})
    return one, two


def test_guards_keep_their_labels_and_their_tasks(drawn: Drawn) -> None:
    one, two = _pair(drawn, guard=20, witness=20)
    before = len(one.held.memory), len(two.held.memory)
    one.merge(two)
    assert len(one.held.memory) == sum(before)
    guards = known_past(one).guards
    assert guards.tasks.unique(return_counts=True)[1].tolist() == [40, 20]
    assert not bool(guards.wrong(guards.features @ one.solution.W).any()), "classes are far apart"
    assert len(one.held.memory["id"].unique()) == sum(before)
    assert one.held.memory["id"].max() < one.samples_seen == 360 + 160 + 140
    assert one.evaluate(*_named(drawn, "abcdef", 50, 9)) == 1


def test_sums_are_those_of_one_learner_that_saw_all(drawn: Drawn) -> None:
    one, two = _pair(drawn, guard=0)
    one.merge(two)
    all_of: Any = pdcl.learner("exact", features=one.phi, rho=1e-3, erasable=True, guard=0)
    for name, (x, y) in {
        "first": _named(drawn, "abcdef", 60, 0), "old": _named(drawn, "bc", 70, 2), "new": _named(drawn, "fd", 80, 1),
    }.items():  # fmt: skip
        all_of.learn(x, y, name=name)
    (mine,), (theirs,) = one.sets.parts, all_of.sets.parts
    assert (mine.samples, mine.squares) == (theirs.samples, theirs.squares) == (660, 660)
    np.testing.assert_allclose(mine.gram, theirs.gram, atol=1e-8)
    np.testing.assert_allclose(mine.cross, theirs.cross, atol=1e-8)
    assert mine.tasks == (0, 1)
    assert mine.counts.tolist() == [[60, 130, 130, 60, 60, 60], [0, 0, 0, 80, 0, 80]]
    assert one.registry.task_samples == [360, 160]
    assert [entry["name"] for entry in one.lineage.tasks] == ["old", "new"]
    last = one.lineage.entries[-1]
    assert (last["task"], last["name"], last["how"], last["result"]) == (1, "new", "merged", {"merged": 300})


def test_limits_hold_for_the_tasks_that_came_with_the_other(drawn: Drawn) -> None:
    one, two = _pair(drawn, tolerance={"*": "+3pt", "plan=y": "+5pt"}, guard=20, witness=20)
    one.merge(two)
    assert one.sets.own.keys() == {0, 1}
    assert one.sets.own[0].samples + one.sets.own[1].samples == 660 - len(one.held.memory)
    assert one.sets.segments["plan=y"].samples == two.sets.segments["plan=y"].samples > 100
    x, y = _named(drawn, "ae", 100, 5)
    one.learn(x, y, name="later", columns={"plan": ["x"] * 200})
    assert [(row.task, row.samples) for row in one.promises][:2] == [("old", 34), ("new", 16)]


def test_learners_of_other_segments_or_columns_are_refused(drawn: Drawn) -> None:
    one, _ = _pair(drawn, tolerance={"plan=y": "+5pt"}, guard=20)
    _, two = _pair(drawn, guard=20)
    with pytest.raises(UsageError, match="other learner"):
        one.merge(two)
    assert one.tasks_learned == 1


def test_of_some_known_and_some_unknown_samples_none_is_erased(drawn: Drawn) -> None:
    one, _ = _pair(drawn, guard=20)
    x, y = _named(drawn, "abcdef", 60, 0)
    W = one.solution.W.clone()
    with pytest.raises(UsageError, match="row 2 of x, y was never learned"):
        one.forget(np.concatenate([x[:2], x[:1] + 1]), [*y[:2], y[0]])
    assert torch.equal(one.solution.W, W)


def test_a_sample_that_came_three_times_is_taken_out_three_times(drawn: Drawn) -> None:
    x, y = _named(drawn, "abc", 40, 0)
    often = [0, 0, 0, *range(1, 120)]
    learned: Any = pdcl.learner("exact", features="raw", rho=1e-3, erasable=True, guard=0)
    learned.learn(x[often], y[often])
    without: Any = pdcl.learner("exact", features=learned.phi, rho=1e-3, erasable=True, guard=0)
    without.learn(x[1:], y[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned.forget(x[[0, 0]], y[[0, 0]])
    assert sum(each.samples for each in learned.sets.parts) == 119
    np.testing.assert_allclose(learned.solution.W, without.solution.W, atol=1e-9)


def test_an_erased_sample_leaves_its_segment_too(drawn: Drawn, tmp_path: Path) -> None:
    """Of learners that were saved, stated more for and merged: the sums of a segment are those of what is left."""
    options: Any = {"features": "raw", "rho": 1e-3, "erasable": True, "guard": 0, "witness": 0}
    stated = {"plan=gold": "0.9", "site=north": "0.9"}
    x, y = drawn([0, 1], 90, 0)
    plan, site = np.array(["gold", "free", "gold"] * 60), np.array(["north", "south"] * 90)
    half = np.arange(180) % 4 < 2
    first: Any = pdcl.learner("exact", tolerance={"plan=gold": "0.9"}, **options)
    first.learn(x[:2], y[[0, -1]], name="labels", columns={"plan": ["free"] * 2})
    first.save(tmp_path / "first")
    one: Any = pdcl.load(tmp_path / "first", tolerance=stated)
    two: Any = pdcl.learner("exact", tolerance=stated, **(options | {"features": one.phi}))
    for learner, rows in ((one, half), (two, ~half)):
        learner.learn(x[rows], y[rows], name="first", columns={"plan": plan[rows], "site": site[rows]})
    one.merge(two)
    gone, stays = np.arange(180) < 50, np.arange(180) >= 50
    assert one.forget(x[gone], y[gone]) == 50
    for name, inside in (("plan=gold", plan == "gold"), ("site=north", site == "north")):
        left = one.represent(torch.as_tensor(x[inside & stays])).double()
        assert one.sets.segments[name].samples == len(left)
        np.testing.assert_allclose(one.sets.segments[name].full_gram(), left.T @ left, atol=1e-8)


def test_sums_of_a_task_under_way_are_saved(drawn: Drawn) -> None:
    one, _ = _pair(drawn, guard=0)
    one.begin_sums(5)
    features = torch.randn(3, one.width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    one.sums.include(torch.tensor([0, 2, 4]), features, torch.tensor([1, 0, 1]), one.held.segments.blank(3))
    state = one.state_dict()
    other, _ = _pair(drawn, guard=0)
    other.load_state_dict(state)
    other.sums.include(torch.tensor([2, 3]), features[:2], torch.tensor([5, 5]), one.held.segments.blank(2))
    sums, _ = other.sums.finished(other.peers)
    assert sums.samples == 4
    assert sums.counts.tolist() == [1, 2, 0, 0, 0, 1]
    rows = features[[0, 1, 2, 1]]
    np.testing.assert_allclose(sums.gram.triu(), (rows.T @ rows).triu(), atol=1e-12)
