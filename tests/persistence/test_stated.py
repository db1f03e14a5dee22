"""What is stated for a living learner has an effect, or is refused before anything is done."""

from __future__ import annotations

import numpy as np
import pytest

import pdcl
from pdcl.errors import UsageError

pytestmark = pytest.mark.filterwarnings("ignore::pdcl.promises.LimitBroken")


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


def test_a_name_that_is_no_text_is_taken_as_its_text(tmp_path) -> None:
    learner = pdcl.PDCL("linear", memory=20, tolerance={"2026": "40%", "*": "+5pt"})
    assert learner.learn(*blobs(0), name=2026, epochs=1)["name"] == "2026"
    assert learner.adopt(*blobs(0, seed=1), name=2027)["name"] == "2027"
    assert "40" in {row.task: row.written for row in learner.promises}["2026"]
    learner.save(tmp_path / "m")
    assert [entry["name"] for entry in pdcl.load(tmp_path / "m").lineage.tasks] == ["2026", "2027"]
