"""Everything other learners have, through the doors that people use: commands, update, gate, forget, prices."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.methods.exact_instead import exact_instead
from pdcl.streams.task import Spec

Drawn = Callable[..., tuple[Any, Any]]
pytestmark = pytest.mark.filterwarnings("ignore::pdcl.LearningWarning", "ignore::pdcl.LimitBroken")


def _month(drawn: Drawn, k: int, each: int = 400, seed: int = 0) -> tuple[Any, Any]:
    return drawn([2 * k, 2 * k + 1], each, 10 * seed + k, distance=4)


@pytest.fixture
def model(drawn: Drawn, tmp_path: Path) -> Path:
    """Two months, the second through `pdcl.update`."""
    learner: Any = pdcl.learner("exact", features="random:60", tolerance="+5pt", erasable=True)
    learner.learn(*_month(drawn, 0), name="jan", audit=tmp_path / "audit", audit_share=0.3)
    learner.save(tmp_path / "model")
    made = _update(tmp_path, _month(drawn, 1), "feb")
    assert made, str(made)
    return tmp_path / "model"


def _update(place: Path, data: Any, name: str) -> Any:
    return pdcl.update(place / "model", data, name=name, audit=place / "audit", audit_share=0.3, max_error=0.3, looks=4)


def test_a_month_passes_a_bad_one_is_refused_and_one_goes_back(model: Path, drawn: Drawn) -> None:
    assert [each["name"] for each in pdcl.load(model).lineage.tasks] == ["jan", "feb"]
    x, _ = _month(drawn, 2)
    before = pdcl.load(model).solution.W
    refused = _update(model.parent, (x, np.random.default_rng(0).integers(0, 4, len(x))), "mar")
    assert not refused
    assert torch.equal(pdcl.load(model).solution.W, before)
    pdcl.rollback(model)
    gone = pdcl.load(model)
    assert (gone.tasks_learned, len(gone.labels)) == (1, 2)


def test_the_gate_judges_and_the_report_is_written(model: Path, drawn: Drawn, tmp_path: Path) -> None:
    verdict = pdcl.gate(model, model.parent / "audit", max_error=0.4, by="task")
    assert verdict.verdict == "PASS"
    assert main(["report", str(model), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "jan" in page
    assert "+5pt" in page


def test_forget_takes_samples_out_of_the_model_and_of_the_one_before(model: Path, drawn: Drawn) -> None:
    """By their inputs alone: the model then equals one that never had them, and is solved anew."""
    x, y = _month(drawn, 0)
    learner: Any = pdcl.load(model)
    trained = sum(each.samples for each in learner.sets.parts)
    held = len(learner.held.memory)
    learner.forget(*(part[_known(learner, x, y)][:50] for part in (x, y)))
    made = pdcl.forget(model, samples=x[_known(pdcl.load(model), x, y)][:50], audit=model.parent / "audit")
    assert set(made.removed.values()) >= {50}
    after: Any = pdcl.load(model)
    assert sum(each.samples for each in after.sets.parts) + len(after.held.memory) == trained + held - 50
    np.testing.assert_allclose(after.solution.W, learner.solution.W, atol=1e-9)
    assert any("scale" in each for each in made.remains)
    assert not any("weights" in each for each in made.remains)


def _known(learner: Any, x: Any, y: Any) -> Any:
    from pdcl.methods.exact_editing import given_data, is_known

    return is_known(learner, given_data(learner, x, y)).numpy()


def test_what_forget_can_t_do_is_one_line_and_changes_nothing(model: Path, drawn: Drawn, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give the samples themselves"):
        pdcl.forget(model, group="patient=17")
    plain: Any = pdcl.learner("exact", features="raw")
    plain.learn(*_month(drawn, 0), name="jan")
    plain.save(tmp_path / "plain")
    with pytest.raises(UsageError, match=r"nothing was forgotten.*erasable=True"):
        pdcl.forget(tmp_path / "plain", samples=_month(drawn, 0)[0][:5])
    numbers: Any = pdcl.learner("exact", features="raw", erasable=True)
    x, y = _month(drawn, 0)
    numbers.learn(x, y.astype(np.float32) + 0.5, kind="regression", name="jan")
    numbers.save(tmp_path / "numbers")
    with pytest.raises(UsageError, match=r"give \(x, y\)"):
        pdcl.forget(tmp_path / "numbers", samples=x[:5])
    assert pdcl.forget(tmp_path / "numbers", samples=(x[:5], y[:5].astype(np.float32) + 0.5)).removed == {
        str(tmp_path / "numbers"): 5
    }


def test_one_command_runs_it_within_bytes(tmp_path: Path) -> None:
    options = ["digits", "exact", "--memory", "500KB", "--tolerance", "+2pt"]
    assert main(["run", *options, "--out", str(tmp_path / "runs")]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = pdcl.run("digits", "exact", memory="500KB", tolerance="+2pt", out=tmp_path / "two")
    learner: Any = result.learner
    assert learner.nbytes <= 500_000
    assert result.mean_accuracy > 0.95
    assert main(["prices", str(run)]) == 0
    assert main(["results", str(tmp_path / "runs")]) == 0


def test_prices_are_solved_and_measured(drawn: Drawn, capsys: Any) -> None:
    """λ·γ bounds what a solve with γ more room wins, and is nearly that: the problem is convex and λ is exact."""
    learner: Any = pdcl.learner("exact", features="random:80", tolerance={"0": "1.3x"}, guard=0, witness=0)
    for k in range(3):
        learner.learn(*drawn([2 * k, 2 * k + 1], 400, k), name=str(k))
    price = pdcl.prices(learner)[0]
    assert price.dual > 0.01
    gain = learner.room_gains(0, 1e-4)
    assert 0 < gain <= price.dual * 1e-4 * (1 + 1e-6)
    assert gain == pytest.approx(price.dual * 1e-4, rel=0.02)
    assert price.measured == pytest.approx(learner.room_gains(0, 0.01))
    assert price.doubts == []
    assert "more room wins" in str(price)


def test_room_in_error_is_measured_on_guards(drawn: Drawn) -> None:
    learner: Any = pdcl.learner("exact", features="random:80", tolerance={"0": "1%"})
    for k in range(3):
        learner.learn(*drawn([2 * k, 2 * k + 1], 1000, k), name=str(k))
    said = str(pdcl.prices(learner)[0])
    assert "one point more room wins" in said
    assert "too early" not in said


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_numbers_and_labels_are_learned_saved_and_limited(kind: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    W = random.normal(size=(2, 5, 3))
    learner: Any = pdcl.learner(
        "exact", features="raw", tolerance={"first": "1.5x" if kind == "regression" else "+2pt"}
    )
    for task, name in enumerate(("first", "second")):
        x = random.normal(size=(800, 5)).astype(np.float32)
        y = x @ (W[0] + 0.4 * task * W[1])
        y = y.astype(np.float32) if kind == "regression" else (y > 0).astype(np.int64)
        learner.learn(x, y, name=name, kind=kind) if not task else learner.learn(x, y, name=name)
    learner.save(tmp_path / "model")
    other: Any = pdcl.load(tmp_path / "model")
    assert torch.equal(torch.as_tensor(other.predict(x)), torch.as_tensor(learner.predict(x)))
    assert learner.promises[0].task == "first"
    if kind == "regression":
        assert learner.duals[0] > 0


def test_the_new_task_has_a_limit_of_its_own(drawn: Drawn) -> None:
    learner: Any = pdcl.learner("exact", features="random:80", tolerance={"new": "1%"})
    learner.learn(*drawn([0, 1, 2, 3], 1000, 0), name="first")
    with pytest.warns(pdcl.LearningWarning, match="the new task is out of reach"):
        learner.learn(*drawn([4, 5], 1000, 1), name="second")


@pytest.mark.parametrize(
    ("inputs", "backbone", "network", "said"),
    [
        ((12,), None, "auto", "12 numbers: `exact` may keep such limits"),
        ((12,), torch.nn.Linear(12, 8), "auto", "backbone is frozen"),
        ((12,), None, torch.nn.Linear(12, 4), "`exact` can't keep limits of a network that is trained"),
        ((1, 16, 16), None, "auto", "small images: `exact` may keep such limits"),
        ((200, 200, 3), None, "auto", None),
    ],
)
def test_whether_exact_would_serve_better(inputs: Any, backbone: Any, network: Any, said: str | None) -> None:
    found = exact_instead(Spec(inputs, torch.float32, 2), backbone, network)
    assert found is None if said is None else said in str(found)
    assert exact_instead(Spec(inputs, torch.int64, 2, "tokens"), backbone, network) is None


def test_pdcl_says_so_when_a_limit_is_broken_and_only_then() -> None:
    """Labels that mean the opposite later break the limit of the first task, and go on to break it."""
    random, learner = np.random.default_rng(0), pdcl.PDCL("mlp:8", memory=2000, tolerance="1%")
    told = []
    for name, flipped in (("a", 0), ("b", 1), ("c", 1)):
        x = random.normal(size=(3000, 2)).astype(np.float32)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            learner.learn(x, ((x[:, 0] > 0) ^ bool(flipped)).astype(np.int64), name=name, epochs=1)
        told.append(sum("`exact` may keep" in str(each.message) for each in heard))
        assert bool(learner.promises.broken) == bool(flipped)
    assert told == [0, 1, 0]
