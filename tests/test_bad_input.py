"""Bad input, one table: on the command line and in Python, one line by an error of ours, and nothing is lost.

Every row says what is done and what the one line must name. Input that is only unusual (half floats, a foreign byte
order, negative strides) is in a table of its own: it must give what plain input gives.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import nn

import pdcl
from pdcl.cli import main
from pdcl.errors import PdclError, UsageError
from pdcl.storage.serialize import same

X = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
Y = np.arange(20) % 2
NAN = np.where(np.arange(20)[:, None] == 3, np.nan, X).astype(np.float32)
Asked = Callable[[Any], object]

# pdcl run digits METHOD …: the method, its words, and what the line must name.
RUNS = [
    ("pdcl", "--tolerance banana", "tolerance"),
    ("pdcl", "--tolerance=-5%", "tolerance"),
    ("pdcl", "--tolerance 0.1,0.2", "2 values for 5 tasks"),
    ("pdcl", "--tolerance nan", "tolerance"),
    ("er", "--seed -1", "seed=-1"),
    ("er", "--seeds 0", "--seeds 0"),
    ("er", "--seeds -2", "--seeds -2"),
    ("er", "--device tpu", "device='tpu'"),
    ("er", "--device cuda:99", "device='cuda:99'"),
    ("pdcl", "--dual-lr nan", "dual_lr=nan"),
    ("pdcl", "--dual-lr inf", "dual_lr=inf"),
    ("er", "--lr nan", "lr=nan"),
    ("er", "--lr 0", "lr=0"),
    ("er", "--weight-decay -1", "weight_decay=-1"),
    ("er", "--precision float8", "precision='float8'"),
    ("er", "--epochs 0", "epochs=0"),
    ("er", "--batch 0", "batch=0"),
    ("er", "--replay 1000000000", "replay=1000000000"),
    ("er", "--replay 0", "replay=0"),
    ("er", "--memory 0", "memory='0'"),
    ("er", "--memory=-5", "memory='-5'"),
    ("er", "--memory abc", "memory='abc'"),
    ("er", "--memory 4", "memory=4"),
]

# Other commands, with MODEL, DATA (an .npz) and NOTHING (no such path) put in: words, what is named, exit code.
COMMANDS = [
    ("gate MODEL --max-error 0.1", "--audit is missing", 3),
    ("gate MODEL --audit NOTHING --max-error 0.1", "neither a directory", 3),
    ("gate MODEL --audit DATA", "say what the limit is on", 3),
    ("gate MODEL --audit DATA --max-error 5", "no error rate below 1", 3),
    ("gate MODEL --audit DATA --max-error nan", "must be finite", 3),
    ("gate MODEL --audit DATA --max-drop=-0.1 --against MODEL", "must not be negative", 3),
    ("gate MODEL --audit DATA --max-error 0.1 --against MODEL", "no effect without max_drop", 3),
    ("gate MODEL --audit DATA --max-error 0.1 --by nobody", "no column 'nobody'", 3),
    ("gate MODEL --audit DATA --max-error 0.1 --groups nobody", "no column 'nobody'", 3),
    ("gate MODEL --audit DATA --max-error 0.1 --looks 0", "looks=0", 3),
    ("gate MODEL --audit DATA --max-error 0.1 --confidence 95", "confidence=95", 3),
    ("gate MODEL --audit DATA --max-error 0.1 --limit banana", "GROUP=VALUE", 3),
    ("gate MODEL --audit DATA --max-error 0.1 --limit owl=0.1", "no group here", 3),
    ("gate NOTHING --audit DATA --max-error 0.1", "no such directory", 3),
    ("gate --verify NOTHING", "missing", 3),
    ("update NOTHING --data DATA --name a --audit NEW --max-drop 0.1", "holds no model", 3),
    ("update MODEL --data NOTHING --name a --audit NEW --max-drop 0.1", "no such directory or file", 3),
    ("update MODEL --data DATA --name a --audit NEW", "say what the limit is on", 3),
    ("update MODEL --data DATA --name a --audit NEW --max-drop 0.1 --audit-share 7", "between 0 and 1", 3),
    ("update MODEL --data DATA --name a --audit NEW --max-drop 0.1 --epochs 0", "epochs=0", 3),
    ("update MODEL --data DATA --name a --audit NEW --max-drop 0.1 --tolerance banana", "banana", 3),
    ("update MODEL --data DATA --name a --audit NEW --max-drop 0.1 --groups nobody", "no column 'nobody'", 3),
    ("rollback NOTHING", "holds no model", 1),
    ("rollback MODEL", "no earlier state", 1),
    ("forget MODEL", "say what to forget", 1),
    ("forget MODEL --group 17", "COLUMN=VALUE", 1),
    ("forget MODEL --samples NOTHING", "missing", 1),
    ("forget NOTHING --group a=1", "holds no model", 1),
    ("results NOTHING", "NOTHING", 1),
    ("report NOTHING --out NEW", "NOTHING", 1),
    ("resume NOTHING", "NOTHING", 1),
    ("whatif NOTHING --task 1", "NOTHING", 1),
]

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

# Inputs that nothing can be learned from, predicted or evaluated: by what the line must name.
INPUTS: dict[str, tuple[Any, str]] = {
    "objects": (X.astype(object), "Python objects"),
    "texts": (X.astype(str), "texts"),
    "sparse of torch": (torch.tensor(X).to_sparse(), "sparse"),
    "sparse of scipy": (scipy.sparse.csr_matrix(X), "sparse"),
    "complex": (X.astype(complex), "complex"),
    "dates": (np.zeros((20, 5), "datetime64[s]"), "dates"),
    "records": (np.zeros(20, [("a", "f4")]), "records"),
    "one dimension": (X[:, 0], "shape (20,)"),
    "a number": (np.float32(3), ""),
    "ragged": ([[1.0, 2.0], [3.0]] * 10, "sequences"),
    "NaN": (NAN, "NaN"),
    "uint64": (np.ones((20, 5), np.uint64), "uint64"),
    "uint8": (X.astype(np.uint8), "uint8"),
    "meta": (torch.zeros(20, 5, device="meta"), "meta"),
    "None": (None, ""),
    "nothing in a dict": ({}, "empty"),
    "a set": ({1, 2}, "Python objects"),
    "too wide": (np.hstack([X, X]), "10"),
    "images": (X[:, None], "1, 5"),
}
WAYS: dict[str, Callable[[Any, Any], object]] = {
    "learn": lambda m, x: m.learn(x, Y, epochs=1),
    "predict": lambda m, x: m.predict(x),
    "evaluate": lambda m, x: m.evaluate(x, Y),
    "adopt": lambda m, x: m.adopt(x, Y),
}

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
    "labels none": (lambda m: m.learn(X, [None, "a"] * 10), "None"),
    "labels objects": (lambda m: m.learn(X, [object()] * 20), "object"),
    "labels bytes": (lambda m: m.learn(X, [b"a", b"b"] * 10), "bytes"),
    "labels sparse": (lambda m: m.learn(X, torch.tensor(Y).to_sparse()), "sparse"),
    "labels in a dict": (lambda m: m.learn(X, {0: 1}), "single dict"),
    "labels half a character": (lambda m: m.learn(X, ["\ud800", "b"] * 10), "surrogate"),
    "labels NaN": (lambda m: m.learn(X, np.where(Y == 0, np.nan, 1.0)), "nan"),
    "labels fractions": (lambda m: m.learn(X, Y + 0.5), "0.5"),
    "labels ragged": (lambda m: m.learn(X, [[1], [1, 2]] * 10), 'kind="tokens"'),
    "labels a matrix": (lambda m: m.learn(X, X > 0), 'kind="multilabel"'),
    "tags as texts": (
        lambda m: pdcl.PDCL("linear", memory=9).learn(X, [["A", "B"]] * 20, kind="tokens"),
        "number them",
    ),
    "test as a loader": (
        lambda m: m.learn(X, Y, test=torch.utils.data.DataLoader([(x, 0) for x in X])),
        "loader.dataset",
    ),
    "groups too few": (lambda m: m.learn(X, Y, groups=[1]), "1 groups"),
    "groups of lists": (lambda m: m.learn(X, Y, groups=[[1, 2]] * 20), "groups must be"),
    "columns no dict": (lambda m: m.learn(X, Y, columns=3), "columns"),
    "columns too few": (lambda m: m.learn(X, Y, columns={"plan": [1]}), "'plan'"),
    "test a number": (lambda m: m.learn(X, Y, test=3), "test=3"),
    "name half a character": (lambda m: m.learn(X, Y, name="\ud800"), "surrogate"),
    "listener a number": (lambda m: m.learn(X, Y, listener=3), "listener=3"),
    "grow a number": (lambda m: m.learn(X, Y, grow=3), "grow=3"),
    "audit a number": (lambda m: m.learn(X, Y, audit=3), "audit=3"),
    "audit share alone": (lambda m: m.learn(X, Y, audit_share=0.5), "no effect without audit"),
    "transform a number": (lambda m: m.learn(X, Y, transform=3), "transform=3"),
    "kind banana": (lambda m: pdcl.PDCL("linear", memory=10).learn(X, Y, kind="banana"), "banana"),
    "evaluate an empty list": (lambda m: m.evaluate([], []), ""),
}


# The whole table: what is done with a learner that has learned, and what the one line names.
TABLE: dict[str, tuple[Asked, str]] = {
    **{f"PDCL({options})": ((lambda m, o=options: _made(o)), named) for options, named in OPTIONS},
    **CALLS,
    **{
        f"{way} {name}": ((lambda m, x=x, act=act: act(m, x)), named)
        for name, (x, named) in INPUTS.items()
        for way, act in WAYS.items()
    },
    **{
        f"run {method} {words}": (["run", "digits", method, "--out", "NEW", *words.split()], named, 1)
        for method, words, named in RUNS
    },
    **{words: (words.split(), named, code) for words, named, code in COMMANDS},
}  # type: ignore[dict-item]


def _made(options: dict[str, Any]) -> object:
    return pdcl.PDCL(**{"network": "linear", "memory": 10, **options})


@pytest.fixture(scope="module")
def learned() -> pdcl.PDCL:
    learner = pdcl.PDCL("linear", memory=10, lr=0.01, device="cpu")
    learner.learn(X, Y, epochs=1)
    return learner


@pytest.fixture(scope="module")
def world(learned: pdcl.PDCL, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("world")
    learned.save(place / "MODEL")
    np.savez(place / "DATA.npz", x=X + 1, y=Y)
    return place


@pytest.mark.parametrize("case", TABLE)
def test_bad_input_is_refused_in_one_line_and_nothing_is_lost(
    case: str, learned: pdcl.PDCL, world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    act, named, *code = TABLE[case]
    if code:
        _refused_command(act, named, code[0], world, capsys)  # type: ignore[arg-type]
        return
    before = learned.state_dict()
    before = {**before, "network": {name: value.clone() for name, value in before["network"].items()}}
    _refused(lambda: act(learned), named)
    assert same(learned.state_dict(), before)
    assert learned.spec is not None
    assert learned.spec.labels == (0, 1)


def _refused_command(words: list[str], named: str, code: int, world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = _files(world)
    paths = {name: str(world / name) for name in ("MODEL", "NOTHING", "NEW")} | {"DATA": str(world / "DATA.npz")}
    assert main([paths.get(word, word) for word in words]) == code
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("auto:")]
    assert len(lines) == 1, lines
    assert lines[0].startswith(f"pdcl {words[0]}: ")
    assert named in lines[0]
    assert _files(world) == before


def _files(world: Path) -> dict[str, bytes]:
    hidden = ("ledger.jsonl", "ledgers")
    found = (path for path in sorted(world.rglob("*")) if path.is_file() and path.name not in hidden)
    return {str(path.relative_to(world)): path.read_bytes() for path in found}


UNUSUAL = {
    "float16": lambda x: x.astype(np.float16).astype(np.float32).astype(np.float16),
    "float64": lambda x: x.astype(np.float64),
    "long double": lambda x: x.astype(np.longdouble),
    "big-endian": lambda x: x.astype(">f4"),
    "negative strides": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "column by column": np.asfortranarray,
    "read-only": lambda x: np.frombuffer(x.tobytes(), np.float32).reshape(x.shape),
    "nested lists": lambda x: x.tolist(),
    "a list of tensors": lambda x: list(torch.tensor(x)),
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_unusual_input_gives_what_plain_input_gives(kind: str, learned: pdcl.PDCL) -> None:
    plain = X.astype(np.float16).astype(np.float32)
    given = UNUSUAL[kind](plain)  # type: ignore[no-untyped-call]
    assert np.array_equal(learned.predict(given), learned.predict(plain))
    fresh = pdcl.PDCL("linear", memory=10, lr=0.01, device="cpu")
    fresh.learn(given, Y, epochs=1)


@pytest.mark.parametrize("memory", [10**9, "1000GB"])
def test_a_memory_larger_than_the_data_holds_the_data(memory: Any) -> None:
    learner = pdcl.PDCL("linear", memory=memory, lr=0.01, device="cpu")
    learner.learn(X, Y, epochs=1)
    assert learner.store is not None
    assert len(learner.store) == 20


def _refused(action: Callable[[], object], named: str) -> None:
    with pytest.raises(PdclError) as found:
        action()
    assert isinstance(found.value, UsageError)
    assert named in str(found.value)
    assert "\n" not in str(found.value)


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
