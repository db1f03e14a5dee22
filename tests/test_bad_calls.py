"""Bad arguments at every Python door, one table: one line by an error of ours that names the value.

Labels have a table of their own (test_labels_at_every_door), inputs and options of a learner too (test_bad_input).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import pdcl
from pdcl.errors import PdclError

X = np.random.default_rng(0).normal(size=(21, 5)).astype(np.float32)
NEW = X + 5
Y = np.arange(21) % 2
HUGE, NAN, INF = 10**400, math.nan, math.inf
STREAM = pdcl.split(X, Y, classes_per_task=1)
Asked = Callable[[Any, Path], object]


class Net(nn.Module):
    """A linear layer, with a forward that may go wrong."""

    def __init__(self, forward: Callable[[Any], Any] = lambda out: out) -> None:
        super().__init__()
        self.layer, self.after = nn.Linear(5, 2), forward

    def forward(self, x: torch.Tensor) -> Any:
        return self.after(self.layer(x))


class Unlearnable(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, :2]


def _frozen(module: nn.Module) -> nn.Module:
    return module.requires_grad_(False)


def _filled(module: nn.Linear, value: float) -> nn.Linear:
    nn.init.constant_(module.weight, value)
    return module


def _normed() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def learned_by(network: Any, way: str = "learn", **options: Any) -> object:
    return getattr(pdcl.PDCL(network, memory=10, device="cpu"), way)(X, Y, **options)


def _fresh(**options: Any) -> Any:
    return pdcl.PDCL(**{"network": "linear", "memory": 10, "device": "cpu", **options})


def _gated(m: Any, **options: Any) -> object:
    return pdcl.gate(m, **{"audit": (NEW, Y), "max_error": 0.1, **options})


def _updated(p: Path, **options: Any) -> object:
    asked = {"data": (NEW, Y), "name": "n", "audit": p / "AUDIT", "max_drop": 0.1, "epochs": 1, **options}
    return pdcl.update(asked.pop("model", p / "MODEL"), asked.pop("data"), **asked)


def _split(**options: Any) -> object:
    return pdcl.split(X, Y, **options)


def _tasks(*tasks: Any, **options: Any) -> object:
    return pdcl.from_tasks(tasks or [(X, Y), (NEW, Y)], **options)


def _run(*args: Any, **options: Any) -> object:
    return pdcl.run(*(args or (STREAM, "er")), **{"memory": 9, "epochs": 1, **options})


NETWORKS: dict[str, tuple[Asked, str]] = {
    "frozen": (lambda m, p: learned_by(_frozen(Net())), "all are frozen"),
    "frozen, adopted": (lambda m, p: learned_by(_frozen(Net()), "adopt"), "all are frozen"),
    "frozen, by slda": (lambda m, p: pdcl.learner("slda", _frozen(Net())).learn(X, Y), "backbone="),
    "without parameters": (lambda m, p: learned_by(Unlearnable()), "it has none"),
    "lazy": (lambda m, p: learned_by(nn.LazyLinear(2)), "weight is lazy"),
    "lazy, adopted": (lambda m, p: learned_by(nn.LazyLinear(2), "adopt"), "weight is lazy"),
    "meta": (lambda m, p: learned_by(Net().to("meta")), "meta device"),
    "on the meta device": (lambda m, p: _fresh(device="meta").learn(X, Y, epochs=1), "meta"),
    "detached": (lambda m, p: learned_by(Net(lambda out: out.detach())), "no gradient"),
    "without gradients": (lambda m, p: learned_by(Net(lambda out: out.detach().clone())), "no gradient"),
    "NaN weights": (lambda m, p: learned_by(_filled(nn.Linear(5, 2), NAN)), "weight holds NaN"),
    "infinite weights, adopted": (lambda m, p: learned_by(_filled(nn.Linear(5, 2), INF), "adopt"), "weight holds NaN"),
    "a row for all samples": (lambda m, p: learned_by(Net(lambda out: out.sum(0))), "(2,)"),
    "a number": (lambda m, p: learned_by(Net(lambda out: out.sum())), "shape ()"),
    "a text": (lambda m, p: learned_by(Net(lambda out: "hi")), "str"),
    "half precision": (lambda m, p: learned_by(Net().half()), "Half"),
    "BatchNorm, batches of one": (lambda m, p: learned_by(_normed(), epochs=1, batch=1), "batch=1"),
    "BatchNorm, one sample": (lambda m, p: pdcl.PDCL(_normed(), memory=9).learn(X[:1], Y[:1], epochs=1), "BatchNorm"),
    "a class": (lambda m, p: learned_by(nn.Linear), "must be a torch module"),
    "an empty Sequential": (lambda m, p: learned_by(nn.Sequential()), "it has none"),
    "too wide": (lambda m, p: learned_by("mlp:1000000000"), "bytes of memory"),
    "too wide for any machine": (lambda m, p: learned_by("mlp:999999999999-999999999999"), "too large"),
    "a width of 5,000 digits": (lambda m, p: learned_by("mlp:" + "9" * 5000), "positive sizes"),
    "a width of ²": (lambda m, p: learned_by("mlp:²"), "mlp:²"),
    "no name": (lambda m, p: learned_by(""), "no network is called"),
    "backbone a number": (lambda m, p: _fresh(backbone=5), "backbone=5"),
    "backbone a text": (lambda m, p: _fresh(backbone="mlp"), "backbone='mlp'"),
    "backbone lazy": (lambda m, p: _fresh(backbone=nn.LazyLinear(4)), "backbone: weight is lazy"),
    "backbone meta": (lambda m, p: _fresh(backbone=nn.Linear(5, 4, device="meta")), "backbone: weight"),
}

OPTIONS: dict[str, tuple[Asked, str]] = {
    f"{name}={str(value)[:20]}": ((lambda m, p, name=name, value=value: _fresh(**{name: value})), f"{name}")
    for name, value in [
        ("seed", 2**64), ("seed", HUGE), ("seed", "1"), ("seed", None), ("seed", True), ("lr", HUGE), ("lr", "1"),
        ("weight_decay", HUGE), ("weight_decay", NAN), ("clip_norm", INF), ("clip_norm", 0), ("accumulate", -1),
        ("accumulate", HUGE), ("scheduler", 5), ("optimizer", 5), ("class_weights", 5), ("class_weights", {0: -1}),
        ("class_weights", {0: NAN}), ("class_weights", {0: "a"}), ("objective", 5), ("objective", "banana"),
        ("device", 5), ("device", b"cpu"), ("keep_optimizer", 5), ("memory", True), ("memory", NAN), ("memory", None),
        ("memory", "-5MB"), ("memory", HUGE), ("memory", "9" * 5000), ("memory", "²"), ("memory", "infMB"),
        ("tolerance", INF), ("tolerance", HUGE), ("tolerance", "9" * 5000 + "%"), ("tolerance", "1e400"),
        ("tolerance", True), ("tolerance", b"5%"), ("tolerance", {5: {5: 5}}), ("tolerance", object()),
        ("witness", -1), ("witness", 1.5), ("witness", HUGE),
    ]
}  # fmt: skip

LEARNING: dict[str, tuple[Asked, str]] = {
    "optimizer of its own fails": (lambda m, p: _fresh(optimizer=lambda n: 1 / 0).learn(X, Y), "ZeroDivisionError"),
    "optimizer makes none": (lambda m, p: _fresh(optimizer=lambda n: None).learn(X, Y), "NoneType"),
    "a name twice": (lambda m, p: m.learn(NEW, Y, name="first"), "name='first' is the name of task 0"),
    "an adopted name twice": (lambda m, p: m.adopt(NEW, Y, name="first"), "name='first'"),
    "no name, where it is taken": (lambda m, p: _twice("1", None), "name='1'"),
    "an empty name": (lambda m, p: m.learn(NEW, Y, name=" "), "name=' '"),
    "epochs 2**80": (lambda m, p: m.learn(NEW, Y, epochs=2**80), "epochs="),
    "batch 2**80": (lambda m, p: m.learn(NEW, Y, batch=2**80), "batch="),
    "tolerance an object": (lambda m, p: m.learn(NEW, Y, tolerance=object()), "tolerance"),
    "on_violation 5": (lambda m, p: m.learn(NEW, Y, on_violation=5), "5"),
    "collate 5": (lambda m, p: m.learn(NEW, Y, collate=5), "collate=5"),
    "audit_share NaN": (lambda m, p: m.learn(NEW, Y, audit=p / "A", audit_share=NAN), "audit_share=nan"),
    "audit_budget 0": (lambda m, p: m.learn(NEW, Y, audit=p / "A", audit_budget=0), "audit_budget=0"),
    "audit with a zero byte": (lambda m, p: m.learn(NEW, Y, audit="a\0b"), "zero byte"),
    "groups a matrix": (lambda m, p: m.learn(NEW, Y, groups=X), "groups"),
    "columns a text": (lambda m, p: m.learn(NEW, Y, columns={"a": "abc"}), "'a'"),
    "columns a matrix": (lambda m, p: m.learn(NEW, Y, columns={"a": X}), "'a'"),
    "a Dataset without targets": (lambda m, p: m.learn(TensorDataset(torch.tensor(X))), "1 values"),
    "a Dataset of triples": (lambda m, p: m.learn(TensorDataset(*[torch.tensor(X)] * 3)), "3 values"),
    "unseen 5": (lambda m, p: m.adopt(NEW, Y, unseen=5), "unseen=5"),
    "adopt by name": (lambda m, p: _fresh().adopt(X, Y), "give the learner a module"),
    "multilabel fractions": (lambda m, p: _fresh().learn(X, X, kind="multilabel"), "0/1 matrix"),
    "regression infinite": (lambda m, p: _fresh().learn(X, X * INF, kind="regression"), "not finite"),
    "regression too large": (lambda m, p: _fresh().learn(X, X * np.float64(1e300), kind="regression"), "not finite"),
    "tokens fractions": (lambda m, p: _fresh().learn(X, X, kind="tokens"), "tokens are integers"),
    "tokens truth": (lambda m, p: _fresh().learn(X, X > 0, kind="tokens"), "tokens are integers"),
    "tokens negative": (lambda m, p: _fresh().learn(X, np.full((21, 5), -3), kind="tokens"), "-3"),
    "tokens all ignored": (lambda m, p: _fresh().learn(X, np.full((21, 5), -100), kind="tokens"), "-100"),
    "tokens some negative": (lambda m, p: _fresh().learn(X, np.arange(-7, 98).reshape(21, 5), kind="tokens"), "-7"),
    "Iterated 5": (lambda m, p: m.learn(pdcl.Iterated(5)), "start=5"),  # type: ignore[arg-type]
    "Iterated singles": (lambda m, p: m.learn(pdcl.Iterated(lambda first: iter([1]))), "pair"),  # type: ignore
    "Ragged 5": (lambda m, p: pdcl.Ragged.of(5), "int"),  # type: ignore[arg-type]
    "Ragged texts": (lambda m, p: pdcl.Ragged.of(["a"]), "sequences of numbers"),
}

USING: dict[str, tuple[Asked, str]] = {
    "threshold a text": (lambda m, p: m.predict(X, threshold="a"), "threshold='a'"),
    "threshold NaN": (lambda m, p: m.predict(X, threshold=NAN), "threshold=nan"),
    "predict batch 2.5": (lambda m, p: m.predict(X, batch=2.5), "batch=2.5"),
    "predict infinite": (lambda m, p: m.predict(X * INF), "infinite"),
    "predict a text": (lambda m, p: m.predict("abc"), ""),
    "predict a generator": (lambda m, p: m.predict(x for x in X), "read only once"),
    "predict a dict": (lambda m, p: m.predict({"a": X}), "a"),
    "evaluate no y": (lambda m, p: m.evaluate(X, None), "y is missing"),
    "evaluate numbers": (lambda m, p: m.evaluate(5, 5), "single"),
    "rebase nobody": (lambda m, p: m.rebase("nobody"), "nobody"),
    "rebase 9": (lambda m, p: m.rebase(9), "9"),
    "rebase None": (lambda m, p: m.rebase(None), "None"),
    "prices 5": (lambda m, p: pdcl.prices(5), "run=5"),  # type: ignore[arg-type]
    "prices of nothing": (lambda m, p: pdcl.prices(p / "nothing"), "nothing"),
    "prices, stream 5": (lambda m, p: pdcl.prices(m, 5), "stream=5"),  # type: ignore[arg-type]
    "export 5": (lambda m, p: m.export(5), "path=5"),
    "export .txt": (lambda m, p: m.export(p / "a.txt"), ".txt"),
    **{f"load {given!r:.20}": ((lambda m, p, given=given: pdcl.load(given)), named) for given, named in [
        (5, "path=5"), (None, "path=None"), (b"x", "path=b'x'"), ([1], "path=[1]"), ("", "manifest"), ("a\0b", "zero"),
        ("a" * 5000, "5000 characters"), (__file__, "no such directory"),
    ]},
    **{f"save to {given!r:.20}": ((lambda m, p, given=given: m.save(given)), named) for given, named in [
        (5, "path=5"), (None, "path=None"), ("a\0b", "zero byte"), ("a" * 5000, "5000 characters"),
        (__file__, "can't be written"), ("/proc/x", "can't be written"),
    ]},
    "load, learner 5": (lambda m, p: pdcl.load(p / "MODEL", learner=5), "doesn't fit"),  # type: ignore[arg-type]
    "load, network 5": (lambda m, p: pdcl.load(p / "MODEL", network=5), "network=5"),
    "load, an option": (lambda m, p: pdcl.load(p / "MODEL", banana=5), "banana"),
    "rollback 5": (lambda m, p: pdcl.rollback(5), "model=5"),  # type: ignore[arg-type]
    "forget 5": (lambda m, p: pdcl.forget(5, group="a=1"), "model=5"),  # type: ignore[arg-type]
    "forget group 5": (lambda m, p: pdcl.forget(p / "MODEL", group=5), "group=5"),  # type: ignore[arg-type]
    "forget a number": (lambda m, p: pdcl.forget(p / "MODEL", samples=5), "samples=5"),
    "forget nothing": (lambda m, p: pdcl.forget(p / "MODEL", samples=[]), "samples=[]"),
    "forget an empty dict": (lambda m, p: pdcl.forget(p / "MODEL", samples={}), ""),
    "forget an empty tuple": (lambda m, p: pdcl.forget(p / "MODEL", samples=()), ""),
    "forget texts": (lambda m, p: pdcl.forget(p / "MODEL", samples=X.astype(str)), "texts"),
    "forget, audit nowhere": (lambda m, p: pdcl.forget(p / "MODEL", samples=X, audit=p / "no"), "no directory"),
}  # fmt: skip

GATE: dict[str, tuple[Asked, str]] = {
    f"gate {name}={str(value)[:20]}": ((lambda m, p, name=name, value=value: _gated(m, **{name: value})), named)
    for name, value, named in [
        ("max_error", "a lot", "max_error="), ("max_error", True, "max_error=True"), ("max_error", [0.1], "[0.1]"),
        ("max_error", 0.1j, "0.1j"), ("max_error", HUGE, "max_error"), ("max_error", NAN, "max_error=nan"),
        ("max_drop", "1", "no error rate below 1"), ("min_sensitivity", "much", "min_sensitivity="),
        ("min_sensitivity", NAN, "min_sensitivity=nan"), ("min_specificity", 2, "positive"),
        ("max_loss", "much", "max_loss="), ("limits", [1], "limits=[1]"), ("limits", {"all": "a"}, "'a'"),
        ("confidence", "0.9", "confidence='0.9'"), ("confidence", HUGE, "confidence"), ("confidence", NAN, "nan"),
        ("looks", "2", "looks='2'"), ("looks", True, "looks=True"), ("looks", 10**30, "looks="), ("looks", 2.5, "2.5"),
        ("by", 5, "by=5"), ("groups", 5, "groups=5"), ("groups", [[1, 2]] * 21, "groups="), ("ledger", 5, "ledger=5"),
        ("evidence", 5, "evidence=5"), ("evidence", "\0", "zero byte"), ("network", 5, "network"),
        ("audit", 5, "int"), ("audit", None, "NoneType"), ("audit", (NEW * NAN, Y), "row 0 holds NaN"),
        ("audit", (NEW.astype(str), Y), "texts"), ("audit", (NEW, Y[:3]), "3 rows"), ("audit", (3, 1), "single int"),
        ("audit", {"x": NEW, "y": Y, "task": 1}, "task must be a column"),
        ("audit", {"x": NEW, "y": Y, "task": None}, "task must be a column"),
        ("audit", {"x": NEW, "y": Y, "task": NEW}, "task must be a column"),
        ("audit", (NEW, Y, Y), "tuple"), ("audit", [NEW, Y], "list"), ("audit", (NEW[:, 0], Y), "inputs ()"),
    ]
} | {
    "gate clip 0": (lambda m, p: _gated(m, max_error=None, max_loss=0.1, clip=0), "clip=0"),
    "gate clip a text": (lambda m, p: _gated(m, max_error=None, max_loss=0.1, clip="much"), "clip='much'"),
    "gate model 5": (lambda m, p: _gated(5), "model=5"),
    "gate model None": (lambda m, p: _gated(None), "model=None"),
    "gate a fresh learner": (lambda m, p: _gated(_fresh()), "learned nothing yet"),
    "gate against 5": (lambda m, p: _gated(m, max_error=None, max_drop=0.1, against=5), "model=5"),
    "gate against fresh": (lambda m, p: _gated(m, max_error=None, max_drop=0.1, against=_fresh()), "learned nothing"),
}  # fmt: skip

UPDATE: dict[str, tuple[Asked, str]] = {
    f"update {name}={str(value)[:20]}": ((lambda m, p, name=name, value=value: _updated(p, **{name: value})), named)
    for name, value, named in [
        ("model", 5, "model=5"), ("audit", 5, "audit=5"), ("data", 5, "int"), ("max_drop", "a lot", "max_drop="),
        ("audit_share", "x", "audit_share='x'"), ("audit_share", NAN, "audit_share=nan"), ("audit_budget", -1, "-1"),
        ("audit_budget", "9", "audit_budget='9'"), ("groups", [1] * 21, "groups=[1"), ("name", None, "name="),
        ("name", "", "name=''"), ("name", "\ud800", "surrogate"), ("listener", 5, "listener=5"),
        ("epochs", 0, "epochs=0"), ("batch", 2**80, "batch="), ("evidence", 5, "evidence=5"), ("banana", 5, "banana"),
        ("limits", 5, "limits=5"),
    ]
}  # fmt: skip

STREAMS: dict[str, tuple[Asked, str]] = {
    **{f"split {name}={str(value)[:20]}": ((lambda m, p, name=name, value=value: _split(**{name: value})), named)
       for name, value, named in [
        ("seed", -1, "seed=-1"), ("seed", 2**70, "seed="), ("seed", "a", "seed='a'"),
        ("order_seed", -1, "order_seed=-1"), ("classes_per_task", "2", "classes_per_task='2'"),
        ("classes_per_task", 1.5, "classes_per_task=1.5"),
        ("test_share", "a", "'a'"), ("test_share", NAN, "nan"), ("test_share", True, "True"), ("tasks", 5, "tasks=5"),
        ("tasks", [0, 1], "tasks=[0, 1]"), ("tasks", [], "no tasks"), ("name", 5, "name=5"), ("name", "", "name=''"),
        ("test", 5, "test=5"), ("test", (1, 2, 3), "test=(1, 2, 3)"), ("workers", -1, "workers=-1"),
        ("transform", 5, "transform=5"), ("groups", 5, "groups"), ("tokenizer", 5, "tokenizer"),
        ("collate", 5, "collate"),
    ]},
    "from_tasks a number": (lambda m, p: pdcl.from_tasks(5), "tasks=5"),  # type: ignore[arg-type]
    "from_tasks None": (lambda m, p: pdcl.from_tasks([None]), "tasks=[None]"),  # type: ignore[list-item]
    "from_tasks nothing in one": (lambda m, p: pdcl.from_tasks([()]), "tasks=[()]"),
    "from_tasks one name twice": (lambda m, p: _tasks(names=["a", "a"]), "2 tasks called 'a'"),
    "from_tasks names a text": (lambda m, p: _tasks(names="ab"), "names='ab'"),
    "from_tasks names None": (lambda m, p: _tasks(names=[None, "a"]), "names=[None"),
    "from_tasks kind": (lambda m, p: _tasks(kind="banana"), "banana"),
    "stream 5": (lambda m, p: pdcl.stream(5), "5"),  # type: ignore[arg-type]
    "stream None": (lambda m, p: pdcl.stream(None), "None"),  # type: ignore[arg-type]
    "stream held_out": (lambda m, p: pdcl.stream("digits", held_out=True), "True"),
    "stream data 5": (lambda m, p: pdcl.stream("mnist", data=5), "data=5"),
    "derive seed": (lambda m, p: STREAM.derive(noise=0.1, derive_seed=2**64), "derive_seed="),
    "derive nothing known": (lambda m, p: STREAM.derive(banana=1), "banana"),
    "for_tuning a text": (lambda m, p: STREAM.for_tuning("a"), "'a'"),  # type: ignore[arg-type]
    "for_tuning seed": (lambda m, p: STREAM.for_tuning(0.1, seed=-1), "seed=-1"),
    "run 5": (lambda m, p: _run(5, "er"), "stream=5"),
    "run method 5": (lambda m, p: _run(STREAM, 5), "learner=5"),
    "run a class": (lambda m, p: _run(STREAM, pdcl.PDCL), "learner="),
    "run out 5": (lambda m, p: _run(out=5), "=5"),
    "run listeners 5": (lambda m, p: _run(listeners=5), "listeners=5"),
    "run listeners [5]": (lambda m, p: _run(listeners=[5]), "listeners=[5]"),
    "run resume 5": (lambda m, p: _run(resume=5), "=5"),
    "run seed 2**64": (lambda m, p: _run(seed=2**64), "seed=18446744073709551616"),
    "run epochs 2**70": (lambda m, p: _run(epochs=2**70), "epochs="),
    "learner 5": (lambda m, p: pdcl.learner(5), "5"),  # type: ignore[arg-type]
}  # fmt: skip

TABLE = {
    f"{part}: {name}": row
    for part, table in {
        "networks": NETWORKS, "options": OPTIONS, "learning": LEARNING, "using": USING, "gate": GATE, "update": UPDATE,
        "streams": STREAMS,
    }.items()
    for name, row in table.items()
}  # fmt: skip


def _twice(*names: str | None) -> None:
    learner = _fresh()
    for number, name in enumerate(names):
        learner.learn(X + number, Y, name=name, epochs=1)


@pytest.fixture(scope="module")
def learned() -> Any:
    learner = _fresh(lr=0.01, tolerance="50%")
    learner.learn(X, Y, name="first", epochs=1)
    return learner


@pytest.fixture(scope="module")
def place(learned: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("calls")
    learned.save(where / "MODEL")
    return where


@pytest.mark.parametrize("case", TABLE)
def test_a_bad_argument_is_refused_in_one_line_that_names_it(case: str, learned: Any, place: Path) -> None:
    act, named = TABLE[case]
    manifest = (place / "MODEL" / "manifest.json").read_bytes()
    with pytest.raises(PdclError) as found:
        act(learned, place)
    assert named in str(found.value)
    assert "\n" not in str(found.value)
    assert len(learned.lineage.entries) == learned.tasks_learned == 1
    assert (place / "MODEL" / "manifest.json").read_bytes() == manifest


def test_numbers_of_numpy_are_limits(learned: Any) -> None:
    assert _gated(learned, max_error=np.float64(0.9)) is not None


def test_a_network_of_ours_starts_as_it_did_before_its_size_was_checked() -> None:
    from pdcl.networks.named import build_named
    from pdcl.networks.network import build_mlp

    torch.manual_seed(3)
    plain = build_mlp((5,), 2, (7,))
    torch.manual_seed(3)
    checked = build_named("mlp:7", (5,), 2)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), checked.parameters(), strict=True))
