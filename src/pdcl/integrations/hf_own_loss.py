"""Which reading of a model's outputs gives the loss that it is trained with: found on one batch.

No attribute says it: GPT-2 predicts the next token, and nothing in its class or configuration tells so. Each possible
reading is compared with the loss that the user's `compute_loss_func` gives, or else the model itself, as a mean over
tokens and as one over samples. A reading that agrees with neither would put limits on something else.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.integrations.hf_readings import FUSED, LABELS, Reading, logits_of, part_of, possible_readings, unlabelled
from pdcl.streams.checks import IGNORED

# Labels and the number of terms that their loss is the mean of, to that loss.
Stated = Callable[[Tensor, int], float]
WAY_OUT = (
    "turn off what is added to it (smoothing, weights, auxiliary terms), or give compute_loss_func=, a plain mean "
    "cross-entropy or squared error"
)


@dataclass(frozen=True)
class Candidate:
    """A reading with the loss of each sample by it, and the number of terms in each."""

    reading: Reading
    losses: Tensor
    counts: Tensor

    @property
    def terms(self) -> int:
        return int(self.counts.sum())

    def means(self) -> tuple[float, float]:
        """Over tokens and over samples."""
        total = float((self.losses * self.counts).sum())
        return total / max(1, self.terms), float(self.losses.mean())

    def agrees(self, stated: float, by: float) -> bool:
        return any(abs(mean - stated) <= by * max(1.0, abs(stated)) for mean in self.means())


def find_reading(trainer: Any, model: Any, inputs: dict[str, Any], samples: int, name: str) -> Reading | None:
    """How to read losses of this batch of capability `name`; None where no label in it counts."""
    labels = inputs[LABELS]
    candidates = _candidates(trainer, model, inputs)
    _check_size(candidates, samples)
    by, said = _precision(trainer, model), math.nan
    for stated in _stated(trainer, model, inputs):
        losses = [stated(labels, each.terms) for each in candidates]
        agreeing = [each.reading for each, loss in zip(candidates, losses, strict=True) if each.agrees(loss, by)]
        if agreeing and bool((labels != IGNORED).any()):
            return _one_of(agreeing, stated, labels)
        said = losses[0]
    if not math.isfinite(said):
        return None
    ours = ", ".join(f"{each.means()[0]:.4g} ({each.reading})" for each in candidates)
    raise UsageError(
        f"capability {name!r}: its first samples have a loss of {said:.4g}, which is no mean of sample losses: {ours}; "
        f"limits would speak of another loss: {WAY_OUT}"
    )


def _candidates(trainer: Any, model: Any, inputs: dict[str, Any]) -> list[Candidate]:
    """In the order of preference: as the trainer asks its model, and without labels, which cost a second loss."""
    # A hint only: a decoder that gets no labels may run on its inputs instead, as BART's does.
    decodes = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
    ways: list[Callable[[], list[Candidate]]] = [partial(_fused, model, inputs)] if _is_trl(type(trainer)) else []
    ways += [partial(_by_logits, model, inputs, labelled) for labelled in (decodes, not decodes)]
    found: list[Candidate] = []
    failed = None
    for way in ways:
        try:
            found += way()
        except Exception as error:  # a stranger's model tells in its own way that it wants labels, or takes none
            failed = error
    if failed is not None and not found:
        raise failed
    return found


def _fused(model: Any, inputs: dict[str, Any]) -> list[Candidate]:
    return [_candidate(Reading(FUSED), *Reading(FUSED)(model, inputs))]


def _by_logits(model: Any, inputs: dict[str, Any], labelled: bool) -> list[Candidate]:
    logits, labels = logits_of(model, inputs, labelled), inputs[LABELS]
    found = []
    for reading in possible_readings(logits, labels, labelled):
        try:
            found.append(_candidate(reading, *reading.aligned(logits, labels)))
        except (UsageError, RuntimeError, ValueError) as error:
            misfit = error
    if not found:
        raise UsageError(
            f"logits {tuple(logits.shape)} don't fit labels {tuple(labels.shape)}: give n labels for n × classes, and "
            "n × length for n × length × classes"
        ) from misfit
    return found


def _candidate(reading: Reading, outputs: Any, targets: Tensor) -> Candidate:
    return Candidate(reading, reading.objective.loss(outputs, targets).double(), reading.counts(targets))


def _check_size(candidates: list[Candidate], samples: int) -> None:
    for each in candidates:
        if len(each.losses) != samples:
            raise UsageError(
                f"a batch of {samples} samples of a capability gives {len(each.losses)} losses, so that no sample has "
                "its own: of collators that join samples TRL's padding_free and DataCollatorWithFlattening are known"
            )


def _stated(trainer: Any, model: Any, inputs: dict[str, Any]) -> Iterator[Stated]:
    """Losses that say how labels are meant; the first that some reading gives decides: the user's, then the model's.

    A model that has none of its own is trained with that of a `compute_loss` which the user wrote.
    """
    given = inputs[LABELS]
    if trainer.compute_loss_func is not None:
        outputs = model(**unlabelled(inputs))
        yield lambda labels, terms: _number(
            trainer.compute_loss_func(outputs, labels, num_items_in_batch=torch.tensor(terms, device=labels.device))
        )
    own = _own_loss(model, inputs)
    if own is not None:
        yield lambda labels, _: own if labels is given else _own_loss(model, {**inputs, LABELS: labels}) or 0.0
    elif trainer.compute_loss_func is None:
        yield lambda labels, _: _number(trainer.compute_loss(model, {**inputs, LABELS: labels}))


def _own_loss(model: Any, inputs: dict[str, Any]) -> float | None:
    """What the model says, less the part of it that balances experts; None where it says nothing."""
    try:
        outputs = model(**inputs)
    except TypeError:  # it takes no labels
        return None
    loss, balance = part_of(outputs, "loss"), part_of(outputs, "aux_loss")
    if loss is None:
        return None
    weight = float(getattr(model, "router_aux_loss_coef", 0.0))
    return _number(loss) - (weight * _number(balance) if isinstance(balance, Tensor) else 0.0)


def _number(loss: Tensor) -> float:
    return float(loss.double().mean())


def _precision(trainer: Any, model: Any) -> float:
    """How far two computations of one loss may be apart, relative to it."""
    args, full = trainer.args, (torch.float32, torch.float64)
    rough = args.bf16 or args.fp16 or args.tf32 or any(each.dtype not in full for each in model.parameters())
    return 2e-2 if rough else 1e-4


def _one_of(agreeing: list[Reading], stated: Stated, labels: Tensor) -> Reading:
    """Where shifted and unshifted labels have the same loss, as with equal logits: what a first label alone costs."""
    first = agreeing[0]
    alike = [each for each in agreeing if each.objective is first.objective and each.labelled == first.labelled]
    if len(alike) == 1:
        return first
    alone = torch.full_like(labels, IGNORED)
    alone[:, 0] = labels[labels != IGNORED][0]
    cost = stated(alone, 1)
    shifts = not (math.isfinite(cost) and cost > 0)
    return next(each for each in alike if each.shifts == shifts)


def _is_trl(trainer: type) -> bool:
    """TRL's trainers give a causal LM a head that never holds all logits, and ask it for log-probabilities."""
    own = any(base.__module__.partition(".")[0] == "trl" for base in trainer.__mro__)
    return own and hasattr(sys.modules.get("trl.trainer.utils"), "add_fused_lm_head")
