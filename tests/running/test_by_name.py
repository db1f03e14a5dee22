"""Every method is a long-lived learner by its name, with the defaults of the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdcl
from pdcl.errors import UsageError
from pdcl.methods.catalog import methods

# X-DER prepares the heads of tasks to come, so it must know all tasks beforehand.
KNOWS_ALL_TASKS = {"xder"}
NAMES = [name for name in methods() if name not in KNOWS_ALL_TASKS]


def task(classes: list[str], seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    y = np.repeat(classes, 30)
    places = np.asarray([3.0 * (ord(label) - ord("a")) for label in y])
    return (random.normal(size=(len(y), 6)) + places[:, None]).astype(np.float32), y


@pytest.mark.parametrize("name", NAMES)
def test_it_learns_predicts_saves_and_loads(name: str, tmp_path: Path) -> None:
    memory = {"memory": 20} if methods()[name].uses_memory else {}
    trains = methods()[name].family != "features"
    learner = pdcl.learner(name, "mlp:12", lr=0.01, **memory) if trains else pdcl.learner(name)
    for index, classes in enumerate((["a", "b"], ["c"])):
        learner.learn(*task(classes, index), name=f"task {index}", **({"epochs": 2} if trains else {}))
    x, y = task(["a", "b", "c"], 5)
    said = learner.predict(x)
    assert set(said.tolist()) <= {"a", "b", "c"}
    found = pdcl.load(learner.save(tmp_path / "model"))
    assert found.predict(x).tolist() == said.tolist()
    assert found.evaluate(x, y) == learner.evaluate(x, y)
    assert type(found) is type(learner)
    for option, value in methods()[name].defaults.items():
        assert getattr(found, option) == value


@pytest.mark.parametrize("name", sorted(KNOWS_ALL_TASKS))
def test_a_method_that_must_know_all_tasks_says_so(name: str) -> None:
    learner = pdcl.learner(name, "mlp:12", memory=20)
    with pytest.raises(UsageError, match="know all tasks beforehand"):
        learner.learn(*task(["a", "b"], 0))
    assert learner.spec is None


def test_misspelt_names_and_options_suggest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'derpp'"):
        pdcl.learner("derp")
    with pytest.raises(UsageError, match="Did you mean 'memory'"):
        pdcl.learner("derpp", "linear", memroy=10)
    with pytest.raises(UsageError, match="no option 'epochs'"):
        pdcl.learner("derpp", "linear", epochs=3)


def test_a_learner_and_a_result_can_be_read() -> None:
    learner = pdcl.learner("er", "mlp:12", memory=20, lr=0.01)
    assert repr(learner) == "ER('mlp:12', lr=0.01, memory=20): nothing learned yet"
    learner.learn(*task(["a", "b"], 0), epochs=1)
    assert repr(learner).endswith(": 1 task learned, 2 classes, 20 samples in memory")
    result = pdcl.Result(0.951, 0.02, {"class_il": [[1.0], [0.9, 1.0]]}, [], [], [], {"seconds": 3.21})
    assert repr(result) == "Result(accuracy 95.1 %, forgetting 2.0 % over 2 tasks, 3.2 s)"
