"""One loss and one error per sample, from what a Hugging Face model returns.

A sample's loss is the mean over its unmasked tokens, its error the share of them that is wrong; of a classifier, the
cross-entropy and 0 or 1.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.integrations.hf_capabilities import Rows
from pdcl.objective import OBJECTIVES, Objective
from pdcl.ranks import ALONE, Ranks

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
    """Runs a trainer's model on samples of the capabilities, and says by what its outputs are judged."""

    def __init__(self, trainer: Any, rows: Rows, ranks: Ranks = ALONE) -> None:
        self.rows, self.prepare, self.args = rows, trainer._prepare_inputs, trainer.args
        self.ranks = ranks
        self.shifts, self.fused = trainer._loss_shifts_labels, _has_fused_head(type(trainer))

    def __call__(self, model: Any, numbers: Tensor) -> tuple[Objective, Any, Tensor]:
        """The objective, and the outputs and targets to give it."""
        inputs = dict(self.prepare(self.rows.batch(numbers)))
        if inputs.get(LABELS) is None:
            found = ", ".join(inputs) or "nothing"
            raise UsageError(f"a capability's batch has no {LABELS!r}, only {found}; let dataset or collator add them")
        if self.fused:
            outputs = model(**inputs, fused_lm_head=True)
            return FUSED, outputs, outputs.label_mask
        labels = inputs.pop(LABELS)
        logits = model(**inputs).logits
        logits = logits if logits.dtype == torch.float64 else logits.float()
        labels = labels.to(logits.device)
        return (_objective(logits, labels), *((logits[:, :-1], labels[:, 1:]) if self.shifts else (logits, labels)))

    @torch.no_grad()
    def look(self, model: Any, numbers: Tensor) -> Tensor:
        """Loss and error of each sample in eval mode, [n, 2].

        A collator may mask at random: it starts from the same seed at every look, so that changes are the model's.
        Batches are those of one process, dealt out to the ranks; every rank gets all values, so every rank must look.
        """
        found, was = torch.zeros(len(numbers), 2, dtype=torch.float64), model.training
        owners = self.rows.owners(numbers)
        model.eval()
        with torch.random.fork_rng([self.args.device] if self.args.device.type == "cuda" else []):
            for part in self._batches(owners)[self.ranks.rank :: self.ranks.world]:
                torch.manual_seed(self.args.seed)
                goal, outputs, targets = self(model, numbers[part])
                each = goal.loss(outputs, targets), goal.error(outputs, targets)
                found[part] = torch.stack(each, 1).double().cpu()
        model.train(was)
        return self.ranks.sum(found)

    def _batches(self, owners: Tensor) -> list[Tensor]:
        """Places in `owners`, each batch of one capability."""
        places = [(owners == k).nonzero().flatten() for k in owners.unique()]
        return [part for each in places for part in each.split(self.args.eval_batch_size)]


def _objective(logits: Tensor, labels: Tensor) -> Objective:
    if logits.dim() == 3:
        return OBJECTIVES["tokens"]
    if logits.dim() == 2 and logits.shape[1] > 1:
        return OBJECTIVES["multilabel" if labels.is_floating_point() else "classification"]
    if logits.dim() == 2:
        return OBJECTIVES["regression"]
    raise UsageError(
        f"logits {tuple(logits.shape)} are neither tokens (n × length × classes) nor classes (n × classes)"
    )


def _has_fused_head(trainer: type) -> bool:
    """TRL's trainers give their model an LM head that never holds all logits, and ask it for log-probabilities."""
    own = any(base.__module__.partition(".")[0] == "trl" for base in trainer.__mro__)
    return own and hasattr(sys.modules.get("trl.trainer.utils"), "add_fused_lm_head")
