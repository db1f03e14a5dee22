"""The drift of outputs: their squared distance from those recorded when a sample was stored, averaged over outputs.

With `drift` > 0 what is differentiated for a replayed sample is ℓ_i + drift · ‖f(x_i) − c z_i‖² / K, under the same
weight. An output without a record (NaN) does not count.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Shares of a task's samples that are stored, between which `sharpness` falls.
LITTLE, MUCH = 1 / 6, 2 / 3


def sharpness(stored: Tensor, samples: Tensor, soften: float) -> Tensor:
    """c_k = 1 − soften · clip((s_k − 1/6) / (2/3 − 1/6), 0, 1), where s_k of task k's samples are stored.

    Recorded outputs are those of memorised training samples, so they are overconfident. Matching them on few samples
    reduces forgetting; matching them on many keeps the network overconfident in old classes, and new ones aren't
    learned. A task whose number of samples is unknown (0) has c = 1.

    >>> sharpness(torch.tensor([5, 80]), torch.tensor([100, 100]), soften=0.6)
    tensor([1.0000, 0.4000])
    """
    share = torch.where(samples > 0, stored / samples.clamp(min=1), 0.0)
    return 1 - soften * ((share - LITTLE) / (MUCH - LITTLE)).clamp(0, 1)


def drift_of(outputs: Tensor, recorded: Tensor) -> Tensor:
    """‖f(x_i) − z_i‖² / K_i over the K_i outputs that sample i has a record of, by sample. Both: [n, K, …].

    >>> drift_of(torch.tensor([[3.0, 9.0]]), torch.tensor([[1.0, torch.nan]]))
    tensor([4.])
    """
    known = ~recorded.isnan()
    # Masked before it is squared: 0 · NaN would be the gradient otherwise.
    gaps = torch.where(known, outputs - recorded, 0.0).square().flatten(1)
    return gaps.sum(1) / known.flatten(1).sum(1).clamp(min=1)
