"""What a learner can't use is refused in one line that names it, by an error of ours, and nothing is lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import pdcl
from pdcl.errors import PdclError, UsageError
from pdcl.storage.serialize import same

X = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
Y = np.arange(20) % 2
NAN = np.where(np.arange(20)[:, None] == 3, np.nan, X).astype(np.float32)
Asked = Callable[[Any], object]

OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"tolerance": "banana"}, "banana"),
    ({"tolerance": "-5%"}, "-5%"),
    ({"tolerance": [-1.0]}, "negative"),
    ({"seed": -1}, "seed=-1"),
    ({"seed": 1.5}, "seed=1.5"),
    ({"device": "tpu"}, "tpu"),
    ({"dual_lr": float("nan")}, "dual_lr=nan"),
    ({"dual_lr": "fast"}, "dual_lr='fast'"),
    ({"lr": float("inf")}, "lr=inf"),
    ({"lr": -0.1}, "lr=-0.1"),
    ({"weight_decay": -1.0}, "weight_decay"),
    ({"replay": 10**9}, "replay=1000000000"),
    ({"replay": 2.5}, "replay=2.5"),
    ({"dual_steps": True}, "dual_steps=True"),
    ({"warm": "yes"}, "warm='yes'"),
    ({"optimizer": None}, "optimizer=None"),
    ({"memory": 0}, "memory=0"),
    ({"memory": -5}, "memory=-5"),
    ({"memory": "abc"}, "memory='abc'"),
    ({"memory": 1.5}, "memory=1.5"),
    ({"network": 7}, "network=7"),
    ({"precision": "float8"}, "float8"),
]

CALLS: dict[str, tuple[Asked, str]] = {
    "epochs 0": (lambda m: m.learn(X, Y, epochs=0), "epochs=0"),
    "epochs 1.5": (lambda m: m.learn(X, Y, epochs=1.5), "epochs=1.5"),
    "epochs true": (lambda m: m.learn(X, Y, epochs=True), "epochs=True"),
    "batch 0": (lambda m: m.learn(X, Y, batch=0), "batch=0"),
    "learn nan": (lambda m: m.learn(NAN, Y), "NaN"),
    "learn uint8": (lambda m: m.learn(X.astype(np.uint8), Y), "uint8"),
    "learn wrong width": (lambda m: m.learn(X[:, :4], Y), "(4,)"),
    "learn one column": (lambda m: m.learn(X[:, 0], Y), "reshape(-1, 1)"),
    "learn none labels": (lambda m: m.learn(X, [None, 1] * 10), "None"),
    "learn only none": (lambda m: m.learn(X, [None] * 20), "None"),
    "learn text of a number": (lambda m: m.learn(X, Y.astype(str)), "'0' (str)"),
    "learn nothing": (lambda m: m.learn(X[:0], Y[:0]), "empty"),
    "learn lengths": (lambda m: m.learn(X, Y[:5]), "equally long"),
    "learn test nan": (lambda m: m.learn(X, Y, test=(NAN, Y)), "NaN"),
    "predict nan": (lambda m: m.predict(NAN), "row 3"),
    "predict uint8": (lambda m: m.predict(X.astype(np.uint8)), "uint8"),
    "predict integers": (lambda m: m.predict(X.astype(np.int64)), "int64"),
    "predict one row": (lambda m: m.predict(X[0]), "one row per sample"),
    "predict width": (lambda m: m.predict(X[:, :4]), "(20, 4)"),
    "predict images": (lambda m: m.predict(X[:, None]), "(20, 1, 5)"),
    "predict a number": (lambda m: m.predict(3.0), "shape ()"),
    "evaluate nothing": (lambda m: m.evaluate([]), "y is missing"),
    "evaluate no samples": (lambda m: m.evaluate(X[:0], Y[:0]), "no samples"),
    "evaluate nan": (lambda m: m.evaluate(NAN, Y), "row 3"),
    "evaluate uint8": (lambda m: m.evaluate(X.astype(np.uint8), Y), "uint8"),
    "evaluate width": (lambda m: m.evaluate(X[:, :4], Y), "(20, 4)"),
    "evaluate stranger": (lambda m: m.evaluate(X, Y + 7), "7"),
    "evaluate text of a number": (lambda m: m.evaluate(X, Y.astype(str)), "'0'"),
    "adopt nan": (lambda m: m.adopt(NAN, Y), "NaN"),
    "adopt uint8": (lambda m: m.adopt(X.astype(np.uint8), Y), "uint8"),
    "adopt width": (lambda m: m.adopt(X[:, :4], Y), "(4,)"),
    "adopt stranger": (lambda m: m.adopt(X, Y + 7), "can't know"),
    "adopt tolerance": (lambda m: m.adopt(X, Y, tolerance="banana"), "banana"),
}


def _refused(action: Callable[[], object], named: str) -> None:
    with pytest.raises(PdclError) as found:
        action()
    assert isinstance(found.value, UsageError)
    assert named in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(("options", "named"), OPTIONS, ids=str)
def test_options(options: dict[str, Any], named: str) -> None:
    _refused(lambda: pdcl.PDCL(**{"network": "linear", "memory": 10, **options}), named)


@pytest.fixture(scope="module")
def learned() -> pdcl.PDCL:
    learner = pdcl.PDCL("linear", memory=10, lr=0.01)
    learner.learn(X, Y, epochs=1)
    return learner


@pytest.mark.parametrize("case", CALLS)
def test_calls(case: str, learned: pdcl.PDCL) -> None:
    before = learned.state_dict()
    before = {**before, "network": {name: value.clone() for name, value in before["network"].items()}}
    action, named = CALLS[case]
    _refused(lambda: action(learned), named)
    assert same(learned.state_dict(), before)
    assert learned.spec is not None
    assert learned.spec.labels == (0, 1)


def _small() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 3))


@pytest.mark.parametrize(
    ("action", "named"),
    [
        (lambda m: m.learn(X[:, :4], Y), "can't take inputs"),
        (lambda m: m.adopt(X[:, :4], Y, labels=[0, 1, 2]), "can't take inputs"),
        (lambda m: m.adopt(X, Y, labels=[0, 1]), "2 labels for a network with 3 outputs"),
        (lambda m: m.adopt(X, Y, labels=[0, 1, 2, 3]), "4 labels for a network with 3 outputs"),
        (lambda m: m.adopt(X, Y, labels=["a", "b", "c"]), "0"),
        (lambda m: m.predict(X), "learned nothing yet"),
    ],
)
def test_a_misfit_of_a_fresh_learner_leaves_it_fresh(action: Asked, named: str) -> None:
    network = _small()
    weights = network[0].weight.clone()
    learner = pdcl.PDCL(network, memory=10)
    _refused(lambda: action(learner), named)
    assert learner.spec is None
    assert torch.equal(network[0].weight, weights)
    learner.adopt(X, Y, labels=[0, 1, 2])


def test_a_list_of_tolerances_ends_before_the_tasks_do() -> None:
    learner = pdcl.PDCL("linear", memory=10, tolerance=[0.1], lr=0.01)
    learner.learn(X, Y, epochs=1)
    heard: list[Any] = []
    _refused(lambda: learner.learn(X, Y, epochs=1, listener=heard.append), "1 values for 2 tasks")
    assert heard == []


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    learner = pdcl.PDCL("linear", memory=10, seed=np.int64(3), lr=np.float32(0.5), replay=np.int32(4))  # type: ignore[arg-type]
    assert (type(learner.seed), type(learner.lr), type(learner.replay)) == (int, float, int)
    learner.learn(X, Y, epochs=1)
    assert pdcl.load(learner.save(tmp_path / "model")).seed == 3


@pytest.mark.parametrize("depth", [500, 900, 5000, 100_000])
def test_deeply_nested_json_in_a_model_is_damage(depth: int, learned: pdcl.PDCL, tmp_path: Path) -> None:
    learner = pdcl.PDCL("linear", memory=10, lr=0.01)
    learner.learn(X, Y, epochs=1)
    place = learner.save(tmp_path / "model")
    text = b'{"apart": {}, "state": ' + b"[" * depth + b"]" * depth + b"}"
    (place / "state.json").write_bytes(text)
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["parts"]["state.json"] = {"sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text)}
    (place / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(PdclError) as found:
        pdcl.load(place)
    assert "\n" not in str(found.value)
