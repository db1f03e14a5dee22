"""Models that version 0.1.0 saved load and predict as they did, and learn on unless an option of theirs is gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdcl
from pdcl.errors import UsageError

SAVED = Path(__file__).parent / "saved_by_0_1"
PREDICTED = json.loads((SAVED / "predictions.json").read_text())


def month(k: int, seed: int = 0) -> tuple[Any, Any]:
    """The very data that the saved models were made with."""
    rng = np.random.default_rng(seed + k)
    y = rng.integers(2 * k, 2 * k + 2, 120)
    return rng.normal(size=(120, 5)).astype("float32") + 2 * np.eye(6, 5, dtype="float32")[y], y


@pytest.mark.parametrize("name", PREDICTED)
def test_a_saved_model_predicts_what_it_predicted(name: str) -> None:
    x = np.concatenate([month(k, 9)[0][:10] for k in range(2)])
    assert [int(label) for label in pdcl.load(SAVED / name).predict(x)] == PREDICTED[name]


@pytest.mark.parametrize("name", ["pdcl", "paper", "er"])
def test_a_saved_model_learns_on_and_is_saved_anew(name: str, tmp_path: Path) -> None:
    shutil.copytree(SAVED / name, tmp_path / "model")
    learner = pdcl.load(tmp_path / "model")
    entry = learner.learn(*month(2), name="t2", epochs=1)
    learner.save(tmp_path / "model")
    assert pdcl.load(tmp_path / "model").tasks_learned == 3
    if name == "pdcl":
        assert [row.task for row in entry.promises] == ["t0", "t1", "t2"]


def test_options_of_the_saved_state_still_hold() -> None:
    learner: Any = pdcl.load(SAVED / "paper")
    assert (learner.drift, learner.slack_samples, learner.level) == (0.2, 64, "sample")
    assert learner.core.partition.alpha == 0.4


@pytest.mark.parametrize(("name", "option"), [("both", "constrain='both'"), ("ema", "slack='ema'")])
def test_a_model_with_an_option_that_is_gone_says_so_when_it_is_to_learn(name: str, option: str) -> None:
    learner = pdcl.load(SAVED / name)
    with pytest.raises(UsageError, match=option) as refused:
        learner.learn(*month(2), name="t2", epochs=1)
    assert "\n" not in str(refused.value)
    assert learner.tasks_learned == 2
