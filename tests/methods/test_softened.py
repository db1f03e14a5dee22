"""Drift from softened records: how far, on which tasks, and that it lets a new task be learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.algorithm.algorithm1 import Drawn
from pdcl.methods.pdcl import PDCL
from pdcl.records import schema


def _after_two_tasks(memory: int, **options: Any) -> PDCL:
    """A learner of two tasks of 60 samples, at the start of a third; memory is divided evenly."""
    draws = np.random.default_rng(0)
    learner = pdcl.PDCL("linear", memory=memory, partition="uniform", lr=0.1, **options)
    for task in range(2):
        y = np.repeat([2 * task, 2 * task + 1], 30)
        learner.learn(draws.normal(size=(60, 4)).astype("float32") + y[:, None], y, epochs=2)
    return learner


@pytest.mark.parametrize(
    ("memory", "options", "expected"),
    [
        (8, {}, 1.0),
        (50, {}, 0.7),
        (120, {}, 0.4),
        (120, {"soften": 0.2}, 0.8),
        (120, {"soften": 0.0}, 1.0),
    ],
)
def test_the_gradient_pulls_to_the_softened_record(memory: int, options: Mapping[str, Any], expected: float) -> None:
    """What is descended beside the loss is .1 ‖f − c z‖² / K, by hand."""
    learner = _after_two_tasks(memory, **options)
    core = learner.core
    core.begin(10, 1)
    slots = torch.arange(len(core.memory))
    outputs = torch.zeros_like(core.memory["outputs"])
    plain = core.goal.loss(outputs, core.memory["y"])
    found = core.replayed(outputs, Drawn(slots, torch.ones(len(slots)))) - plain
    by_hand = 0.1 * (expected * core.memory["outputs"].nan_to_num()).square().sum(1)
    by_hand = by_hand / (~core.memory["outputs"].isnan()).sum(1)
    assert found.tolist() == pytest.approx(by_hand.tolist(), rel=1e-4)


def test_records_of_an_adopted_task_stay_whole_and_a_saved_learner_remembers_which_are(tmp_path) -> None:
    """Nobody has learned its samples by heart here."""
    draws = np.random.default_rng(0)
    learner = pdcl.PDCL(torch.nn.Sequential(torch.nn.Linear(4, 2)), memory=120, partition="uniform", lr=0.1)
    tasks = []
    for task in range(2):
        y = np.repeat([2 * task, 2 * task + 1], 30)
        tasks.append((draws.normal(size=(60, 4)).astype("float32") + y[:, None], y))
    learner.adopt(*tasks[0])
    learner.learn(*tasks[1], epochs=2)
    learner.save(tmp_path / "model")
    for each in (learner, pdcl.load(tmp_path / "model", network=torch.nn.Sequential(torch.nn.Linear(4, 2)))):
        each.core.begin(10, 1)
        sharpness, task_of = each.core.past.recorded.sharpness, each.core.memory["task"]
        assert torch.allclose(sharpness.flatten(), torch.where(task_of == 0, 1.0, 0.4).to(sharpness))


def test_runs_and_learners_of_before_have_the_same_former_value() -> None:
    """It is written where runs are compared and where learners are loaded."""
    assert schema.NOT_ALWAYS["soften"] == PDCL.former["soften"] == 0.0


def test_outputs_of_a_regression_are_held_as_they_were() -> None:
    x = np.linspace(-1, 1, 40, dtype="float32")[:, None]
    learner = pdcl.PDCL("linear", memory=40, lr=0.1)
    learner.learn(x, 3 * x, kind="regression", epochs=5)
    core = learner.core
    core.begin(10, 1)
    recorded = core.memory["outputs"]
    assert core.replayed(recorded, Drawn(torch.arange(40), torch.ones(40))).tolist() == pytest.approx(
        core.goal.loss(recorded, core.memory["y"]).tolist()
    )


def test_with_much_in_memory_new_tasks_are_learned_better() -> None:
    """digits in three tasks with a third of the data in memory at the end, three seeds: right after learning."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype("float32")
    few = np.concatenate([np.flatnonzero(y == label)[:40] for label in range(10)])
    rest = np.setdiff1d(np.arange(len(y)), few)
    stream = pdcl.split(x[few], y[few], test=(x[rest], y[rest]), classes_per_task=4)
    new = {}
    for soften in (0.0, 0.6):
        found = [
            pdcl.run(stream, "even", preset="auto", memory=130, seed=seed, soften=soften).accuracy["class_il"]
            for seed in range(3)
        ]
        new[soften] = np.mean([[scores[k] for k, scores in enumerate(each)] for each in found])
    assert new[0.6] > new[0.0] + 0.01, new
