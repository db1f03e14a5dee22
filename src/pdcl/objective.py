"""What is learned and how well: a loss, a score and an error, each one number per sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pdcl.errors import UsageError
from pdcl.ragged import Ragged
from pdcl.streams.checks import IGNORED

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
    """The mean over a sample's labels. NaN: not known, as of a label that came after the sample was stored."""
    known, targets = _known(targets)
    each = functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none")
    return (each * known).sum(1) / known.sum(1).clamp(min=1)


def labels_correct(outputs: Tensor, targets: Tensor) -> Tensor:
    known, targets = _known(targets)
    return (((outputs > 0) == (targets > 0.5)) & known).float().sum(1) / known.sum(1).clamp(min=1)


def _known(targets: Tensor) -> tuple[Tensor, Tensor]:
    targets = targets.float()
    return ~targets.isnan(), targets.nan_to_num()


def labels_wrong(outputs: Tensor, targets: Tensor) -> Tensor:
    return 1 - labels_correct(outputs, targets)


def token_cross_entropy(outputs: Tensor, targets: Tensor | Ragged) -> Tensor:
    """The mean of −log p(y) over a sample's tokens that aren't masked; 0 where all are."""
    by_class, targets = _aligned(outputs, targets)
    each = functional.cross_entropy(by_class, targets, ignore_index=IGNORED, reduction="none")
    return _mean_of_unmasked(each, targets)


def tokens_wrong(outputs: Tensor, targets: Tensor | Ragged) -> Tensor:
    """The share of a sample's unmasked tokens that are wrong; 0 where all are masked."""
    by_class, targets = _aligned(outputs, targets)
    return _mean_of_unmasked((by_class.argmax(1) != targets).float(), targets)


def tokens_correct(outputs: Tensor, targets: Tensor | Ragged) -> Tensor:
    return 1 - tokens_wrong(outputs, targets)


def _aligned(outputs: Tensor, targets: Tensor | Ragged) -> tuple[Tensor, Tensor]:
    """Outputs n × classes × tokens, and targets n × tokens; what sequences lack is masked.

    Outputs for sequences are n × length × classes, those for images n × classes × height × width.
    """
    by_class = outputs.transpose(1, 2) if outputs.dim() == 3 else outputs
    if isinstance(targets, Ragged):
        targets = targets.padded(IGNORED, by_class.shape[2])
    if targets.shape[1:] != by_class.shape[2:]:
        text = "a token's classes come last (n × length × classes), an image's second (n × classes × …)"
        raise UsageError(f"outputs {tuple(outputs.shape)} don't fit targets {tuple(targets.shape)}; {text}")
    return by_class, targets


def _mean_of_unmasked(values: Tensor, targets: Tensor) -> Tensor:
    there = (targets != IGNORED).flatten(1)
    return (values.flatten(1) * there).sum(1) / there.sum(1).clamp(min=1)


def outputs_each(outputs: Tensor, kind: str) -> int:
    """How many outputs a network gives for a sample, or for each token of one."""
    return outputs.shape[2 if kind == "tokens" and outputs.dim() == 3 else 1]


OBJECTIVES = {
    "classification": Objective("classification", cross_entropy, correct, wrong),
    "regression": Objective("regression", squared_error, negative_squared_error, no_error_rate),
    "multilabel": Objective("multilabel", label_cross_entropy, labels_correct, labels_wrong),
    "tokens": Objective("tokens", token_cross_entropy, tokens_correct, tokens_wrong),
}


def masked(outputs: Tensor, classes: tuple[int, ...]) -> Tensor:
    """Outputs with every class outside `classes` ruled out: task-incremental evaluation from the same outputs."""
    if not classes:
        return outputs
    allowed = torch.zeros(outputs.shape[1], dtype=torch.bool, device=outputs.device)
    allowed[list(classes)] = True
    return outputs.masked_fill(~allowed, -torch.inf)
