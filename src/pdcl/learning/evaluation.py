"""How well a learner does on every task, from one pass over each task's test data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdcl.learning.batches import EVALUATION_BATCH
from pdcl.networks import eval_mode
from pdcl.objective import masked
from pdcl.streams.data import Data, everything
from pdcl.streams.gathering import collected
from pdcl.streams.readers import fetched
from pdcl.streams.task import Task
from pdcl.trees import to

# A confusion matrix of 10⁵ classes would take 80 GB.
MOST_CONFUSED = 1000

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


@dataclass(frozen=True)
class Evaluation:
    """Mean score per task among all classes and among the task's own; the confusion of truth × prediction, for up to
    1,000 classes."""

    class_il: list[float]
    task_il: list[float]
    confusion: Tensor | None


@torch.no_grad()
def evaluate(learner: Learner, tasks: Sequence[Task]) -> Evaluation:
    """Evaluate in eval mode; the learner's mode is restored."""
    assert learner.spec is not None
    classifies = learner.spec.kind == "classification"
    size = learner.spec.outputs
    confusion = torch.zeros(size, size, dtype=torch.long) if classifies and size <= MOST_CONFUSED else None
    sums = torch.zeros(len(tasks), 2, dtype=torch.float64)
    with eval_mode(learner.model):
        for place, task in enumerate(tasks):
            mine = everything(task.test)[learner.peers.part(len(task.test))]
            for scores, targets in pieces(learner, task.test, mine):
                own = masked(scores, task.classes) if classifies else scores
                for column, each in enumerate((scores, own)):
                    sums[place, column] += learner.goal.score(each, targets).double().sum()
                if confusion is not None:
                    cells = targets * size + scores.argmax(1)
                    confusion += torch.bincount(cells, minlength=size * size).reshape(size, size)
    counts = torch.tensor([len(task.test) for task in tasks], dtype=torch.float64)
    class_il, task_il = (learner.peers.sum(sums).T / counts).tolist()
    return Evaluation(class_il, task_il, None if confusion is None else learner.peers.sum(confusion))


def pieces(learner: Learner, data: Data, index: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Scores and targets of these positions, on the CPU, piece by piece."""
    for x, y in fetched(data, index.split(EVALUATION_BATCH), ahead=1):
        yield learner.scores(to(x, learner.place)).cpu(), y


def predictions(learner: Learner, data: Data) -> tuple[Tensor, Tensor]:
    """Scores and targets of a whole data set, on the CPU, read in pieces."""
    scores = (scores for scores, _ in pieces(learner, data, everything(data)))
    return collected(scores, len(data)), data.targets
