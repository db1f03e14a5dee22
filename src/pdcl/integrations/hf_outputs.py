"""One loss and one error per sample, from what a Hugging Face model returns.

A sample's loss is the mean over its unmasked tokens, its error the share of them that is wrong; of a classifier, the
cross-entropy and 0 or 1.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor

from pdcl.core.objective import OBJECTIVES, Objective
from pdcl.errors import UsageError

LABELS = "labels"


def _of_unmasked(values: Tensor, mask: Tensor) -> Tensor:
    return (values * mask).sum(1) / mask.sum(1).clamp(min=1)


# Outputs of a fused LM head have no logits: the log-probability of each label, and whether it was the likeliest token.
FUSED = Objective(
    "fused LM head",
    lambda outputs, mask: _of_unmasked(-outputs.log_probs, mask),  # type: ignore[attr-defined]
    lambda outputs, mask: _of_unmasked(outputs.is_top1.float(), mask),  # type: ignore[attr-defined]
    lambda outputs, mask: _of_unmasked(1 - outputs.is_top1.float(), mask),  # type: ignore[attr-defined]
)


class Reader:
    """Runs a trainer's model and says by what its outputs are judged."""

    def __init__(self, trainer: Any) -> None:
        self.shifts = trainer._loss_shifts_labels
        self.fused = _has_fused_head(type(trainer))

    def __call__(self, model: Any, inputs: dict[str, Any]) -> tuple[Objective, Any, Tensor]:
        """The objective, and the outputs and targets to give it."""
        if inputs.get(LABELS) is None:
            found = ", ".join(inputs) or "nothing"
            raise UsageError(f"a capability's batch has no {LABELS!r}, only {found}; let dataset or collator add them")
        if self.fused:
            outputs = model(**inputs, fused_lm_head=True)
            return FUSED, outputs, outputs.label_mask
        given = dict(inputs)
        labels = given.pop(LABELS)
        logits = model(**given).logits
        logits = logits if logits.dtype == torch.float64 else logits.float()
        labels = labels.to(logits.device)
        return (_objective(logits, labels), *((logits[:, :-1], labels[:, 1:]) if self.shifts else (logits, labels)))


def _objective(logits: Tensor, labels: Tensor) -> Objective:
    if logits.dim() == 3:
        return OBJECTIVES["tokens"]
    if logits.dim() == 2 and logits.shape[1] > 1:
        return OBJECTIVES["multilabel" if labels.is_floating_point() else "classification"]
    if logits.dim() == 2:
        return OBJECTIVES["regression"]
    raise UsageError(f"logits {tuple(logits.shape)} are neither tokens (n × length × classes) nor classes (n × classes)")


def _has_fused_head(trainer: type) -> bool:
    """TRL's trainers give their model an LM head that never holds all logits, and ask it for log-probabilities."""
    own = any(base.__module__.partition(".")[0] == "trl" for base in trainer.__mro__)
    return own and hasattr(sys.modules.get("trl.trainer.utils"), "add_fused_lm_head")
