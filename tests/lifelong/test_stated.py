"""What is stated for a living learner has an effect, or is refused before anything is done."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pdcl
from pdcl.algorithm.rules import rule
from pdcl.errors import UsageError
from pdcl.learning.events import DualsMoved
from pdcl.past.held_back import GUARD
from pdcl.streams.transform import Transform

pytestmark = pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")


def blobs(first: int, n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = random.integers(first, first + 2, n)
    return (random.normal(size=(n, 6)) + 3 * np.eye(4, 6)[y]).astype("float32"), y


def test_limits_of_a_learner_are_not_changed_by_assignment() -> None:
    learner = pdcl.PDCL("mlp:8", memory=200, tolerance="+2pt")
    with pytest.raises(UsageError, match=r"pdcl.load\(directory, tolerance='\+60pt'\)"):
        learner.tolerance = "+60pt"
    assert learner.tolerance == "+2pt"


def test_a_reference_that_is_moved_says_from_where_to_where_and_no_old_verdict_stands() -> None:
    learner = pdcl.PDCL("mlp:8", memory=200, tolerance="+2pt", witness=15)
    learner.learn(*blobs(0), name="a", epochs=1)
    learner.learn(*blobs(2), name="b", epochs=1)
    told = repr(learner.rebase("a"))
    assert "+2pt was " in told
    assert " % error and is now " in told
    row = next(each for each in learner.promises if each.task == "a")
    assert row.verdict == "rebased: judged after the next task"
    assert row.then == row.now
    assert row.limit == pytest.approx(row.now + 0.02)
    learner.learn(*blobs(0, seed=5), name="c", epochs=1)
    row = next(each for each in learner.promises if each.task == "a")
    assert "rebased" not in row.verdict


def test_of_two_tasks_with_one_name_the_one_is_rebased_that_is_meant(tmp_path) -> None:
    learner = pdcl.PDCL("mlp:8", memory=200, tolerance="+2pt", witness=15)
    for first, name in ((0, "m"), (2, "m2"), (0, "new")):
        learner.learn(*blobs(first, seed=first + len(name)), name=name, epochs=1)
    # Models of older versions may hold one name twice.
    learner.lineage.entries[1]["name"] = "m"
    before = list(learner.promises)
    learner.rebase(1)
    for table in (learner.promises, pdcl.load(learner.save(tmp_path / "model")).promises):
        assert table[0] == before[0]
        assert table[1].verdict == "rebased: judged after the next task"
    assert [row.number for row in before] == [0, 1, 2]


def test_an_error_rate_for_numbers_is_refused_before_the_first_task(monkeypatch) -> None:
    x, y = blobs(0)
    monkeypatch.setattr(pdcl.PDCL, "step", None)
    with pytest.raises(UsageError, match="regression has none; state a loss"):
        pdcl.PDCL("mlp:8", memory=200, tolerance="+2pt").learn(x, y.astype("float32"), kind="regression")
    with pytest.raises(UsageError, match="regression has none; state a loss"):
        pdcl.PDCL("mlp:8", memory=200).learn(x, y.astype("float32"), kind="regression", tolerance="5%")


def test_a_task_takes_its_own_limit_by_name_too() -> None:
    learner = pdcl.PDCL("mlp:8", memory=200, witness=10)
    learner.learn(*blobs(0), name="legacy", epochs=1, tolerance={"legacy": "+1pt"})
    learner.learn(*blobs(2), name="next", epochs=1)
    assert learner.promises[0].written == "+1pt"
    with pytest.raises(UsageError, match="names another task, and this one is called 'third'"):
        learner.learn(*blobs(0), name="third", tolerance={"legacy": "+1pt"})
    with pytest.raises(UsageError, match=r"PDCL\(…, tolerance=\{\"new\": \"10%\"\}\)"):
        learner.learn(*blobs(0), name="third", tolerance={"new": "10%"})


@pytest.mark.parametrize(("own", "rules"), [("+2pt", ("capped", "room:power=1")), ("1.1x", ("ascent", "affine"))])
def test_a_task_with_a_limit_of_its_own_is_held_to_it_by_the_rules_of_such_limits(tmp_path, own, rules) -> None:
    learner = pdcl.PDCL("mlp:8", memory=200)
    learner.learn(*blobs(0), name="a", epochs=1, tolerance=own)
    stated = pdcl.PDCL("mlp:8", memory=200, dual_lr=0.3, partition="uniform")
    stated.learn(*blobs(0), name="a", epochs=1, tolerance=own)
    loaded = pdcl.load(learner.save(tmp_path / "model"))
    for core in (learner.core, loaded.core):
        assert core.dual == core.algorithm.duals.rule == rule("dual", rules[0])
        assert core.partition == rule("partition", rules[1])
    assert stated.core.dual == rule("dual", "ascent:lr=0.3")
    assert stated.core.partition == rule("partition", "uniform")


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("first", [None, "1.1x", "40%"])
def test_limits_stated_on_load_hold_for_the_next_task_at_once(tmp_path, monkeypatch, first, older) -> None:
    learner = pdcl.PDCL("mlp:8", memory=200, tolerance=first, guard=10)
    learner.learn(*blobs(0), name="a", epochs=1)
    if older:
        state = learner.core.tolerances.state_dict()
        del state["stated"]
        monkeypatch.setattr(learner.core.tolerances, "state_dict", lambda: state)
    place = learner.save(tmp_path / "model")
    assert np.array_equal(pdcl.load(place).core.tolerances.values, learner.core.tolerances.values, equal_nan=True)
    loaded = pdcl.load(place, tolerance={"a": "+2pt", "*": "1.1x"})
    had = float(loaded.held["wrong"][loaded.held["role"] == GUARD].double().mean())
    assert loaded.core.tolerances.values == pytest.approx([had + 0.02])
    heard = []
    loaded.learn(*blobs(2), name="b", epochs=1, listener=heard.append)
    steered = [event.tolerances for event in heard if isinstance(event, DualsMoved)]
    assert steered[0] == pytest.approx([had + 0.02])
    assert np.isnan(pdcl.load(place, tolerance=None).core.tolerances.values).all()


def test_a_limit_that_stays_keeps_its_value_to_the_bit_where_another_is_restated(tmp_path) -> None:
    learner = pdcl.PDCL("mlp:8", memory=200, tolerance={"a": "1.1x", "b": "+2pt"})
    for first, name in ((0, "a"), (2, "b")):
        learner.learn(*blobs(first), name=name, epochs=1)
    learner.store.keep(torch.arange(3, len(learner.store)))
    loaded = pdcl.load(learner.save(tmp_path / "model"), tolerance={"a": "1.1x", "b": "30%"})
    assert loaded.core.tolerances.values == [learner.core.tolerances.values[0], 0.3]


def test_what_only_the_first_task_can_say_is_refused_later_unless_it_is_the_same() -> None:
    learner = pdcl.PDCL("mlp:8", memory=50)
    learner.learn(*blobs(0), name="a", epochs=1)
    for stated in ({"kind": "nonsense"}, {"kind": "regression"}, {"transform": Transform(scale=2.0)}):
        for call in (learner.learn, learner.adopt):
            with pytest.raises(UsageError, match=f"{next(iter(stated))}=.* has no effect after the first task: it is "):
                call(*blobs(0, seed=1), **stated)
    with pytest.raises(UsageError, match=r"labels=\['a', 'b'\] has no effect after the first task: it is \[0, 1\]"):
        learner.adopt(*blobs(0, seed=1), labels=["a", "b"])
    assert learner.tasks_learned == 1
    learner.adopt(*blobs(0, seed=1), labels=[0, 1], kind="classification", transform=Transform())
    learner.learn(*blobs(2), kind="classification", epochs=1)
    assert learner.tasks_learned == 3


def test_weight_decay_stated_on_load_reaches_the_optimiser(tmp_path) -> None:
    learner = pdcl.PDCL("mlp:8", memory=50)
    learner.learn(*blobs(0), name="a", epochs=1)
    loaded = pdcl.load(learner.save(tmp_path / "model"), weight_decay=0.5)
    loaded.learn(*blobs(2), name="b", epochs=1)
    assert [group["weight_decay"] for group in loaded.optimiser.param_groups] == [0.5]


def test_a_name_that_is_no_text_is_taken_as_its_text(tmp_path) -> None:
    learner = pdcl.PDCL("linear", memory=20, tolerance={"2026": "40%", "*": "+5pt"})
    assert learner.learn(*blobs(0), name=2026, epochs=1)["name"] == "2026"
    assert learner.adopt(*blobs(0, seed=1), name=2027)["name"] == "2027"
    assert "40" in {row.task: row.written for row in learner.promises}["2026"]
    learner.save(tmp_path / "m")
    assert [entry["name"] for entry in pdcl.load(tmp_path / "m").lineage.tasks] == ["2026", "2027"]
