"""Limits as people state them: kept on test data where they can be, named where they can't, and never a ruin."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import pdcl
from pdcl.algorithm.heads import temperature
from pdcl.errors import LearningWarning, LimitBroken
from pdcl.learning.events import DualsMoved, ignore
from pdcl.methods.exact_limits import known_past

Drawn = Callable[..., tuple[Any, Any]]
TASKS = {"first": [0, 1], "second": [2, 3], "third": [4, 5]}


def _learned(drawn: Drawn, tolerance: Any, seed: int = 0, listener: Any = ignore, **options: Any) -> Any:
    """Three tasks of two classes, 3,000 samples each, so that there are 300 guards a task."""
    learner: Any = pdcl.learner("exact", features="random:150", tolerance=tolerance, seed=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task, (name, classes) in enumerate(TASKS.items()):
            learner.learn(*drawn(classes, 1500, 10 * seed + task), name=name, listener=listener)
    return learner


def _errors(learner: Any, drawn: Drawn) -> dict[str, float]:
    """Test errors in percent."""
    tests = {name: drawn(classes, 2000, 1000) for name, classes in TASKS.items()}
    return {name: 100 * (1 - learner.evaluate(*test)) for name, test in tests.items()}


@pytest.fixture(scope="module")
def free(drawn: Drawn) -> dict[str, float]:
    found = [_errors(_learned(drawn, None, seed), drawn) for seed in range(3)]
    return {name: float(np.mean([each[name] for each in found])) for name in TASKS}


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_strict_limit_is_kept_on_test_data_and_costs_little(name: str, drawn: Drawn, free: dict[str, float]) -> None:
    """Three points less than equal weights give, three seeds: at most half of the excess is left."""
    limit = free[name] - 3
    found = [_errors(_learned(drawn, {name: f"{limit}%", "*": "60%"}, seed), drawn) for seed in range(3)]
    assert np.mean([max(0, each[name] - limit) for each in found]) <= 1.5
    assert np.mean([[*each.values()] for each in found]) <= np.mean([*free.values()]) + 1.5


def test_the_stricter_a_limit_the_smaller_the_error(drawn: Drawn, free: dict[str, float]) -> None:
    stated = [free["first"] - less for less in (-20, 4, 7)]
    found = [_errors(_learned(drawn, {"first": f"{limit}%"}), drawn)["first"] for limit in stated]
    assert found[0] > found[1] > found[2]


@pytest.mark.parametrize("tolerance", ["0.1%", {"first": "0%", "second": "0%"}, 0.001, {"first": 0.0001}])
def test_an_impossible_limit_destroys_nothing(tolerance: Any, drawn: Drawn, free: dict[str, float]) -> None:
    found = _errors(_learned(drawn, tolerance), drawn)
    assert np.mean(list(found.values())) <= np.mean(list(free.values())) + 4
    assert max(found.values()) <= max(free.values()) + 15


def test_an_impossible_limit_is_named(drawn: Drawn) -> None:
    learner: Any = pdcl.learner("exact", features="random:100", tolerance={"first": 0.0001})
    learner.learn(*drawn([0, 1], 500, 0), name="first")
    with pytest.warns(LearningWarning, match="limit of first was dropped"):
        learner.learn(*drawn([2, 3], 500, 1), name="second")
    assert learner.final_duals()[0] == 0


def test_a_limit_in_loss_is_kept_exactly(drawn: Drawn) -> None:
    """2x of what the task had: its loss over all samples that came, from statistics alone, is at its limit."""
    learner = _learned(drawn, {"first": "2x"}, guard=0, witness=0)
    then = learner.losses_then[0]
    x, y = drawn([0, 1], 1500, 0)
    assert learner.duals[0] > 0
    limit = learner.tolerances.values[0]
    assert limit == pytest.approx(2 * then)
    wanted = np.eye(6)[[list(learner.labels).index(k) for k in y]]
    losses = ((learner.raw_scores(torch.as_tensor(x)).numpy() - wanted) ** 2).sum(1)
    assert losses.mean() == pytest.approx(limit, rel=1e-3)
    assert learner.solution.residual <= 1e-8


def test_a_loss_limit_that_comes_later_compares_with_a_squared_loss(drawn: Drawn, tmp_path: Path) -> None:
    """Without limits the head is that of discriminant analysis, whose scores are no squared-loss fit."""
    learner: Any = pdcl.learner("exact", features="random:100")
    learner.learn(*drawn([0, 1], 500, 0), name="first")
    assert learner.solution.head == "lda"
    learner.save(tmp_path / "model")
    limited: Any = pdcl.load(tmp_path / "model", tolerance="1.5x")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        limited.learn(*drawn([2, 3], 500, 1), name="second")
    assert limited.solution.head == "ridge"
    x, y = drawn([0, 1], 500, 5)
    alone = pdcl.learner("exact", features="random:100", head="ridge")
    alone.learn(*drawn([0, 1], 500, 0))
    wanted = np.eye(2)[[list(alone.labels).index(k) for k in y]]
    squared = float(((alone.raw_scores(torch.as_tensor(x)).numpy() - wanted) ** 2).sum(1).mean())
    assert limited.promises[0].then == pytest.approx(squared, rel=0.5)
    assert sum("statistics were merged" in str(each.message) for each in heard) == 1
    assert not any("nan" in str(each.message) for each in heard)


def test_below_a_hundred_guards_limits_are_reported_and_not_steered(drawn: Drawn) -> None:
    few: Any = pdcl.learner("exact", features="random:100", tolerance={"first": "1%"}, guard=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, (name, classes) in enumerate(TASKS.items()):
            few.learn(*drawn(classes, 500, seed), name=name)
    assert few.duals.get(0, 0) == 0
    assert few.solution.lever == "none"
    assert few.promises[0].verdict in ("BROKEN", "undecided")


def test_broken_promises_are_warned_of_and_judged_on_witnesses(drawn: Drawn) -> None:
    learner: Any = pdcl.learner("exact", features="random:100", tolerance={"first": "+0pt", "*": "+2pt"})
    learner.learn(*drawn([0, 1], 1000, 0), name="first")
    with pytest.warns(LimitBroken, match="first"):
        learner.learn(*drawn([*range(2, 12)], 1000, 1), name="second")
    row = learner.promises[0]
    assert (row.task, row.samples, row.steered) == ("first", 200, False)


def test_a_segment_has_a_limit_of_its_own(drawn: Drawn) -> None:
    x, y = drawn([0, 1], 1500, 0)
    plan = np.where(np.arange(len(y)) % 3 == 0, "gold", "free")
    learner: Any = pdcl.learner("exact", features="random:100", tolerance={"plan=gold": "+1pt"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.learn(x, y, name="first", columns={"plan": plan})
        more, labels = drawn([2, 3], 1500, 1)
        learner.learn(more, labels, name="second", columns={"plan": ["free"] * len(labels)})
    assert learner.sets.segments["plan=gold"].samples == pytest.approx(1000 * 0.8, abs=60)
    assert [row.task for row in learner.promises][:1] == ["plan=gold"]


@pytest.mark.parametrize("memory", ["40KB", "120KB", "1MB"])
def test_memory_is_never_above_its_bound(memory: str, drawn: Drawn) -> None:
    learner: Any = pdcl.learner("exact", memory=memory, tolerance="+2pt")
    bound = int(memory.rstrip("KMB")) * (1000 if "K" in memory else 10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in range(6):
            learner.learn(*drawn([2 * task, 2 * task + 1], 300, task), name=str(task))
            assert learner.nbytes <= bound
    assert learner.nbytes > bound / 4, "most of the memory lies idle"
    assert learner.evaluate(*drawn([0, 1], 300, 50)) > 0.3


def test_sets_without_a_price_are_merged_first_and_it_is_said(drawn: Drawn) -> None:
    learner: Any = pdcl.learner("exact", memory="1MB", tolerance={"0": "1.3x", "*": 9.0}, features="random:350")
    told = []
    for task in range(5):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            learner.learn(*drawn([2 * task, 2 * task + 1], 1200, task), name=str(task))
        told += [str(each.message) for each in heard if "became part" in str(each.message)]
    assert told
    assert "statistics of 1 (weight 0)" in told[0]
    assert 0 in learner.sets.own


def test_numbers_and_labels_are_learned_too(drawn: Drawn) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(600, 5)).astype(np.float32)
    numbers = np.stack([np.sin(x[:, 0]) + x[:, 1], x[:, 2]], 1).astype(np.float32)
    learner: Any = pdcl.learner("exact", tolerance=0.05)
    learner.learn(x[:300], numbers[:300], kind="regression")
    learner.learn(x[300:], numbers[300:])
    assert -learner.evaluate(x, numbers) < 0.03
    assert learner.promises[0].unit == "loss"
    labels = np.stack([x[:, 0] > 0, x[:, 1] + x[:, 2] > 0], 1).astype(np.float32)
    several: Any = pdcl.learner("exact")
    several.learn(x[:300], labels[:300], kind="multilabel")
    several.learn(x[300:], labels[300:])
    assert several.evaluate(x, labels) > 0.9


def test_a_rare_class_keeps_its_recall(drawn: Drawn) -> None:
    """30 samples of a class among 4,000 of others, against joint training with balanced classes on the same inputs."""
    learner: Any = pdcl.learner("exact", features="raw")
    parts = [drawn([0, 1, 2, 3], 1000, 0), drawn([4], 30, 1)]
    for x, y in parts:
        learner.learn(x, y)
    x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    joint = LogisticRegression(class_weight="balanced", max_iter=1000).fit(x, y)
    test = drawn([4], 1000, 5)
    assert learner.evaluate(*test) >= joint.score(*test) - 0.1


def test_probabilities_are_calibrated(drawn: Drawn) -> None:
    learner = _learned(drawn, None)
    x, y = (np.concatenate(each) for each in zip(*(drawn(c, 1000, 77) for c in TASKS.values()), strict=True))
    probability = learner.predict_proba(x)
    sure, right = probability.max(1), learner.predict(x) == y
    bins = np.digitize(sure, np.linspace(0, 1, 11))
    gaps = [abs(sure[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins)]
    assert sum(gaps) < 0.05


def test_an_offset_is_shown_as_the_dual_that_it_is(drawn: Drawn, free: dict[str, float], tmp_path: Path) -> None:
    """1 + λ is what the odds of its task's classes are multiplied with: in reports, in events and after loading."""
    heard: list[Any] = []
    learner = _learned(drawn, {"first": f"{free['first'] - 4}%", "*": "60%"}, listener=heard.append)
    dual, solution = learner.final_duals()[0], learner.solution
    assert solution.lever == "offsets"
    before = solution.W.clone()
    before[-1] -= solution.offsets
    guards = known_past(learner).guards
    factor = temperature(guards.features @ before, guards.targets)
    odds = [torch.softmax(factor * guards.features @ W, 1) for W in (solution.W, before)]
    assert (odds[0] / odds[1])[:, 0].div((odds[0] / odds[1])[:, 2]).tolist() == pytest.approx([1 + dual] * len(odds[0]))
    assert dual > 0.2
    assert [each.duals[0] for each in heard if isinstance(each, DualsMoved)][-1] == dual
    learner.save(tmp_path / "model")
    assert pdcl.load(tmp_path / "model").report().duals == learner.report().duals == [dual, 0.0, 0.0]
