"""What is learned and how well: a loss, a score and an error, each one number per sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pdcl.errors import UsageError

PerSample = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Objective:
    """`loss` is differentiated and constrained; `score` (higher is better) fills the accuracy matrix; `error` ∈ [0, 1]
    is what a tolerance in error rate speaks of. Each maps (outputs n×…, targets n×…) to n numbers."""

    name: str
    loss: PerSample
    score: PerSample
    error: PerSample


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets, reduction="none")


def correct(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.argmax(1) == targets).float()


def wrong(outputs: Tensor, targets: Tensor) -> Tensor:
    return 1 - correct(outputs, targets)


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.reshape(targets.shape) - targets).square().reshape(len(targets), -1).mean(1)


def negative_squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return -squared_error(outputs, targets)


def no_error_rate(outputs: Tensor, targets: Tensor) -> Tensor:
    raise UsageError("regression has no error rate; state the tolerance in loss")


def label_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(outputs, targets.float(), reduction="none").mean(1)


def labels_correct(outputs: Tensor, targets: Tensor) -> Tensor:
    return ((outputs > 0) == (targets > 0.5)).float().mean(1)


def labels_wrong(outputs: Tensor, targets: Tensor) -> Tensor:
    return 1 - labels_correct(outputs, targets)


OBJECTIVES = {
    "classification": Objective("classification", cross_entropy, correct, wrong),
    "regression": Objective("regression", squared_error, negative_squared_error, no_error_rate),
    "multilabel": Objective("multilabel", label_cross_entropy, labels_correct, labels_wrong),
}


def masked(outputs: Tensor, classes: tuple[int, ...]) -> Tensor:
    """Outputs with every class outside `classes` ruled out: task-incremental evaluation from the same outputs."""
    if not classes:
        return outputs
    allowed = torch.zeros(outputs.shape[1], dtype=torch.bool, device=outputs.device)
    allowed[list(classes)] = True
    return outputs.masked_fill(~allowed, -torch.inf)
