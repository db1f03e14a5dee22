"""Ways to read one loss and one error per sample from what a Hugging Face model returns.

A sample's loss is the mean over its unmasked tokens, its error the share of them that is wrong; of a classifier, the
cross-entropy and 0 or 1. Which way is right for a model: `hf_own_loss`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.objective import OBJECTIVES, Objective
from pdcl.streams.checks import IGNORED

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


@dataclass(frozen=True)
class Reading:
    """shifts: logits predict the next label. labelled: the model needs labels for its logits, as decoders' inputs."""

    objective: Objective
    shifts: bool = False
    labelled: bool = False

    def __call__(self, model: Any, inputs: dict[str, Any]) -> tuple[Any, Tensor]:
        """Outputs and targets for the objective."""
        if self.objective is FUSED:
            outputs = model(**inputs, fused_lm_head=True)
            return outputs, outputs.label_mask
        return self.aligned(logits_of(model, inputs, self.labelled), inputs[LABELS])

    def aligned(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        labels = labels.to(logits.device)
        return (logits[:, :-1], labels[:, 1:]) if self.shifts else (logits, labels)

    def counts(self, targets: Tensor) -> Tensor:
        """How many terms the loss of each sample is the mean of."""
        if self.objective is FUSED:
            return targets.sum(1)
        if self.objective.name in ("tokens", "classification"):
            return (targets != IGNORED).reshape(len(targets), -1).sum(1)
        return torch.ones(len(targets), device=targets.device)

    def __str__(self) -> str:
        if self.objective.name != "tokens":
            return self.objective.name
        return "next tokens" if self.shifts else "tokens in place"


def unlabelled(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if name != LABELS}


def part_of(outputs: Any, name: str) -> Any:
    """`logits` or `loss` of what a model returns; None where it has none."""
    return outputs.get(name) if isinstance(outputs, Mapping) else getattr(outputs, name, None)


def logits_of(model: Any, inputs: dict[str, Any], labelled: bool) -> Tensor:
    outputs = model(**(inputs if labelled else unlabelled(inputs)))
    logits = part_of(outputs, "logits")
    if not isinstance(logits, Tensor):
        raise UsageError(
            f"the model returns a {type(outputs).__name__} without logits; let it return them by that name"
        )
    return logits if logits.dtype == torch.float64 else logits.float()


def possible_readings(logits: Tensor, labels: Tensor, labelled: bool) -> list[Reading]:
    """All that the shapes allow."""
    if logits.dim() == 3:
        return [Reading(OBJECTIVES["tokens"], shifts, labelled) for shifts in (True, False)]
    if logits.dim() != 2:
        raise UsageError(
            f"logits {tuple(logits.shape)} are neither tokens (n × length × classes) nor classes (n × classes)"
        )
    if labels.is_floating_point():
        names = ["multilabel", "regression"]
    else:
        names = ["classification" if logits.shape[1] > 1 else "regression"]
    return [Reading(OBJECTIVES[name], labelled=labelled) for name in names]
