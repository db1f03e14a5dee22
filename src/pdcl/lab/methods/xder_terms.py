"""The parts of X-DER as formulas on tensors: heads, logit implant, the margin constraint, contrast on future heads.

T tasks of C classes; head h is columns hC … (h+1)C − 1 of the outputs (n × TC).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.modules.batchnorm import _BatchNorm


def implant(stored: Tensor, fresh: Tensor, targets: Tensor, columns: slice, gamma: float) -> Tensor:
    """Stored outputs with `columns` taken from fresh ones, kept below the stored output v of the true class.

    If the largest implanted value μ exceeds v > 0, all are scaled by γ v / μ. Scaling can't get below a v ≤ 0, so there
    they are shifted until the largest is v / γ.
    """
    part = fresh[:, columns]
    top, true = part.amax(1, keepdim=True), stored.gather(1, targets[:, None])
    scaled = part * (gamma * true / top.clamp(min=torch.finfo(part.dtype).tiny))
    lowered = torch.where(true > 0, scaled, part - top + true / gamma)
    result = stored.clone()
    result[:, columns] = torch.where(top > true, lowered, part)
    return result


def violation(outputs: Tensor, head: Tensor, classes: int, rivals: slice, margin: float) -> Tensor:
    """max over rival columns + m − max over each sample's own head: positive where the margin isn't kept."""
    heads = outputs.view(len(outputs), -1, classes)
    own = heads[torch.arange(len(outputs), device=outputs.device), head].amax(1)
    return outputs[:, rivals].amax(1) + margin - own


def mean_positive(values: Tensor) -> Tensor:
    """The mean of what is positive; 0 where nothing is."""
    positive = values.relu()
    return positive.sum() / (values > 0).sum().clamp(min=1)


def supervised_contrast(outputs: Tensor, labels: Tensor, classes: int, temperature: float) -> Tensor:
    """Supervised contrast of each head, a mean over heads and samples.

    outputs: (n, HC), H heads; q = a head's outputs at unit length. For anchor a and P, all others of its label,
    −(1/|P|) Σ_{p ∈ P} [q_a·q_p/τ − log Σ_{k≠a} exp(q_a·q_k/τ)]. An anchor without positives counts as 0.
    """
    q = normalize(outputs.view(len(outputs), -1, classes).transpose(0, 1), dim=2)
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    similar = (q @ q.transpose(1, 2) / temperature).masked_fill(itself, -torch.inf)
    log_share = similar - similar.logsumexp(2, keepdim=True)
    positives = (labels[:, None] == labels) & ~itself
    pulled = log_share.masked_fill(~positives, 0).sum(2) / positives.sum(1).clamp(min=1)
    return -pulled.mean()


@contextmanager
def untracked(model: nn.Module) -> Iterator[None]:
    """Forward passes in here normalise by their own batch and leave the running statistics alone."""
    layers = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True
