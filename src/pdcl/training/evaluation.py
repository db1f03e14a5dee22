"""How well a learner does on every task, from one pass over each task's test data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pdcl.core.objective import masked
from pdcl.networks import eval_mode
from pdcl.streams.data import Data, everything
from pdcl.streams.task import Task
from pdcl.training.learner import EVALUATION_BATCH, Trainable
from pdcl.trees import cat, joined, to


@dataclass(frozen=True)
class Evaluation:
    """Mean score per task among all classes and among the task's own; the confusion of truth × prediction."""

    class_il: list[float]
    task_il: list[float]
    confusion: Tensor | None


@torch.no_grad()
def evaluate(learner: Trainable, tasks: Sequence[Task]) -> Evaluation:
    """Evaluate in eval mode; the learner's mode is restored."""
    assert learner.spec is not None
    classifies = learner.spec.kind == "classification"
    size = learner.spec.outputs
    confusion = torch.zeros(size, size, dtype=torch.long) if classifies else None
    class_il, task_il = [], []
    for task in tasks:
        with eval_mode(learner.model):
            scores, targets = predictions(learner, task.test)
        class_il.append(_mean(learner.goal.score(scores, targets)))
        own = masked(scores, task.classes) if classifies else scores
        task_il.append(_mean(learner.goal.score(own, targets)))
        if confusion is not None:
            cells = targets * size + scores.argmax(1)
            confusion += torch.bincount(cells, minlength=size * size).reshape(size, size)
    return Evaluation(class_il, task_il, confusion)


def predictions(learner: Trainable, data: Data) -> tuple[Tensor, Tensor]:
    """Scores and targets of a whole data set, on the CPU, read in pieces."""
    scores, targets = [], []
    for index in everything(data).split(EVALUATION_BATCH):
        x, y = data.fetch(index)
        scores.append(learner.scores(to(x, learner.place)).cpu())
        targets.append(y)
    return joined(scores), cat(targets)


def _mean(values: Tensor) -> float:
    return float(values.double().mean())
