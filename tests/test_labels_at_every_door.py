"""Labels are never rounded, cast or taken for others: every door refuses the same ones, in one line."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import pdcl
from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.storage.serialize import same

X = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
NEW = np.random.default_rng(1).normal(size=(20, 5)).astype(np.float32)
Y = np.arange(20) % 2
Door = Callable[[pdcl.PDCL, Path, Any], object]

# After integers 0 and 1: what is no label, or a known one in another type, and what the line must name.
LABELS: dict[str, tuple[Any, str]] = {
    "a quarter": (Y + 0.25, "0.25"),
    "a half": (torch.tensor(Y + 0.5), ".5"),
    "halves as objects": ((Y + 0.5).astype(object), ".5"),
    "one half among whole numbers": ([0, 1] * 9 + [1, 0.5], "0.5"),
    "infinite": (np.where(Y == 1, np.inf, 0.0), "inf"),
    "minus infinite": (np.where(Y == 1, -np.inf, 0.0), "-inf"),
    "infinite as objects": ([0, float("inf")] * 10, "inf"),
    "NaN": (np.where(Y == 1, np.nan, 0.0), "nan"),
    "NaN as objects": (np.where(Y == 1, np.nan, 0.0).astype(object), "nan"),
    "None": ([0, None] * 10, "None"),
    "truth": (Y == 1, "(bool)"),
    "truth as a tensor": (torch.tensor(Y == 1), "(bool)"),
    "truth as objects": ((Y == 1).astype(object), "(bool)"),
    "truth among numbers": ([0, True] * 10, "True (bool)"),
    "numbers as texts": (Y.astype(str), "(str)"),
    "texts among numbers": ([0, "1"] * 10, "'1' (str)"),
    "bytes": (Y.astype("S1"), "bytes"),
    "complex": (Y + 0j, "complex"),
    "dates": (Y.astype("datetime64[D]"), "date"),
    "lists": (np.fromiter(([0], [0, 1]) * 10, dtype=object), ""),
    "arrays after a number": (np.fromiter([0, *([np.arange(2)] * 19)], dtype=object), ""),
    "complex as objects": (np.fromiter([0, *([np.complex64(1)] * 19)], dtype=object), "complex"),
    "durations as objects": (np.fromiter([0, *([np.timedelta64(1, "D")] * 19)], dtype=object), "timedelta"),
    "a matrix": (np.stack([Y, Y], 1), "shape (20, 2)"),
}


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 2))


def _saved(place: Path, y: Any) -> Path:
    path = place / "labels.npz"
    np.savez(path, x=NEW, y=np.asarray(y))
    return path


def _said(words: list[Any]) -> None:
    """Run a command; its one line as an error, so that all doors can be held to the same."""
    heard = io.StringIO()
    with contextlib.redirect_stderr(heard):
        code = main([str(word) for word in words])
    lines = heard.getvalue().splitlines()
    assert (code, len(lines)) == (3, 1), (code, lines)
    raise UsageError(lines[0])


DOORS: dict[str, Door] = {
    "learn": lambda m, _, y: m.learn(NEW, y, epochs=1),
    "learn, test": lambda m, _, y: m.learn(NEW, Y, test=(X, y), epochs=1),
    "learn a Dataset": lambda m, _, y: m.learn(list_dataset(y), epochs=1),
    "evaluate": lambda m, _, y: m.evaluate(X, y),
    "adopt": lambda m, _, y: m.adopt(NEW, y),
    "adopt, declared": lambda m, _, y: pdcl.PDCL(_network(), memory=9).adopt(NEW, y, labels=[0, 1]),
    "gate": lambda m, _, y: pdcl.gate(m, (NEW, y), max_error=0.5),
    "gate, a mapping": lambda m, _, y: pdcl.gate(m, {"x": NEW, "y": y, "task": ["0"] * 20}, max_error=0.5),
    "gate, against": lambda m, p, y: pdcl.gate(m, (NEW, y), max_drop=0.5, against=p / "MODEL"),
    "update": lambda m, p, y: pdcl.update(p / "MODEL", (NEW, y), name="n", audit=p / "A", max_drop=0.5, epochs=1),
    "split, test": lambda m, _, y: pdcl.split(X, Y, test=(NEW, y)),
    "from_tasks": lambda m, _, y: pdcl.from_tasks([(X, Y), (NEW, y)]),
    "from_tasks, test": lambda m, _, y: pdcl.from_tasks([(X, Y, NEW, y)]),
}
ON_DISK: dict[str, Door] = {
    "pdcl gate": lambda m, p, y: _said(["gate", p / "MODEL", "--audit", _saved(p, y), "--max-error", "0.5"]),
    "pdcl update": lambda m, p, y: _said(
        ["update", p / "MODEL", "--data", _saved(p, y), "--name", "n", "--audit", p / "A", "--max-drop", 0.5]
    ),
}
# These see their first labels: a type of its own is none that changes.
FIRST: dict[str, Door] = {
    "learn first": lambda m, _, y: pdcl.PDCL("linear", memory=9).learn(NEW, y, epochs=1),
    "split": lambda m, _, y: pdcl.split(X, y),
    "from_tasks first": lambda m, _, y: pdcl.from_tasks([(X, y)]),
    "adopt first": lambda m, _, y: pdcl.PDCL(_network(), memory=9).adopt(NEW, y),
}
FINE_AT_FIRST = ("truth", "truth as a tensor", "truth as objects", "numbers as texts", "texts among numbers")


def list_dataset(y: Any) -> Any:
    class Pairs(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 20

        def __getitem__(self, row: int) -> Any:
            return torch.tensor(NEW[row]), y[row]

    return Pairs()


def _cases() -> list[Any]:
    every = [(door, DOORS[door], bad) for door in DOORS for bad in LABELS]
    stored = [bad for bad, (y, _) in LABELS.items() if not isinstance(y, list) and np.asarray(y).dtype != object]
    every += [(door, ON_DISK[door], bad) for door in ON_DISK for bad in stored]
    every += [(door, FIRST[door], bad) for door in FIRST for bad in LABELS if bad not in FINE_AT_FIRST]
    return [pytest.param(act, *LABELS[bad], id=f"{door}: {bad}") for door, act, bad in every]


@pytest.fixture(scope="module")
def learned() -> pdcl.PDCL:
    learner = pdcl.PDCL("linear", memory=10, lr=0.01, device="cpu")
    learner.learn(X, Y, epochs=1)
    return learner


@pytest.fixture(scope="module")
def place(learned: pdcl.PDCL, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("labels")
    learned.save(where / "MODEL")
    return where


@pytest.mark.parametrize(("act", "y", "named"), _cases())
def test_what_is_no_label_is_refused(act: Door, y: Any, named: str, learned: pdcl.PDCL, place: Path) -> None:
    before, manifest = learned.state_dict(), (place / "MODEL" / "manifest.json").read_bytes()
    before = {**before, "network": {name: value.clone() for name, value in before["network"].items()}}
    with pytest.raises(UsageError) as found:
        act(learned, place, y)
    assert named in str(found.value)
    assert "\n" not in str(found.value)
    assert same(learned.state_dict(), before)
    assert (place / "MODEL" / "manifest.json").read_bytes() == manifest
    assert not (place / "A").exists()


@pytest.mark.parametrize("y", [Y.astype(np.float32), Y.astype(np.uint8), Y.astype(float).astype(object), Y[:, None]])
def test_whole_numbers_of_any_type_are_the_labels_they_are(y: Any, learned: pdcl.PDCL) -> None:
    assert learned.evaluate(X, y) == learned.evaluate(X, Y)
    assert pdcl.from_tasks([(X, Y), (NEW, y)]).spec.labels == (0, 1)


def test_labels_of_several_types_stay_what_they_are() -> None:
    assert pdcl.split(X, [7, "a"] * 10).spec.labels == (7, "a")
    assert pdcl.split(X, [False, True] * 10).spec.labels == (False, True)


@pytest.mark.parametrize(
    ("labels", "named"), [([0, 0], "0 twice"), ([0, None], "None"), ([0.5, 1], "0.5"), ([0, "0"], "'0'")]
)
def test_declared_labels_are_labels_and_each_is_one_output(labels: list[Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        pdcl.PDCL(_network(), memory=9).adopt(X, Y * 0, labels=labels)


REGRESSION = {"texts": Y.astype(str), "texts of words": ["a", "b"] * 10, "None": [None, 1.0] * 10, "complex": Y + 0j}


@pytest.mark.parametrize("bad", REGRESSION)
def test_targets_that_are_numbers_must_be_numbers(bad: str) -> None:
    fresh = pdcl.PDCL("linear", memory=9)
    with pytest.raises(UsageError, match="numbers"):
        fresh.learn(X, REGRESSION[bad], kind="regression", epochs=1)
    fresh.learn(X, X[:, 0], kind="regression", epochs=1)
    for act in (fresh.evaluate, lambda x, y: pdcl.gate(fresh, (x, y), max_loss=1.0)):
        with pytest.raises(UsageError, match="numbers"):
            act(NEW, REGRESSION[bad])


def test_an_unknown_label_names_a_few_of_many_known_ones() -> None:
    y = np.arange(400) % 200
    learner = pdcl.learner("exact", features="raw")
    learner.learn(np.eye(200)[y], y)
    with pytest.raises(UsageError, match=r"label 900.* 0, 1, 2, .* … \(200 in all\)") as error:
        learner.evaluate(np.eye(200)[:1], [900])
    assert len(str(error.value)) < 150


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ((np.arange(200) * 37 % 331).astype(float), True),  # 200 measurements
        (np.arange(200) * 37 % 331, True),
        (np.arange(200) % 100, False),  # classes that were counted: 0 … 99
        (np.arange(200) % 10 * 3, False),  # few
        ([str(k * 37 % 331) for k in range(200)], False),
    ],
)
def test_whole_numbers_that_are_hardly_classes_are_told_of_regression(y: Any, said: bool) -> None:
    x = np.random.default_rng(0).normal(size=(200, 3))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        pdcl.learner("exact").learn(x, y)
    assert said == any('kind="regression"' in str(each.message) for each in heard)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdcl.learner("exact").learn(x, np.arange(200) * 1.0, kind="regression")
