"""What is held to a tolerance: the loss of stored samples, the drift of their outputs, or both.

Drift is the squared distance of a sample's outputs from those recorded when it was stored, averaged over outputs. An
output without a record (NaN) does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from pdcl.duality.rules import between, not_negative, register_rule

# What `sharpness` goes by: shares of a task's samples that are stored.
LITTLE, MUCH = 1 / 6, 2 / 3


class Quantities(Protocol):
    """`names`: one row of duals for each. drift: weight of the drift that is added to a replayed sample's loss.
    soften: how far that drift is measured from smaller outputs than recorded, where much of a task is stored."""

    names: ClassVar[tuple[str, ...]]
    drift: float
    drift_tolerance: float
    soften: float

    @property
    def records_outputs(self) -> bool: ...


@register_rule("constrain", "loss")
@dataclass(frozen=True)
class Loss:
    """ℓ_i ≤ ε, differentiating ℓ_i + drift · ‖f(x_i) − c z_i‖² / K under the same dual; c: `sharpness`."""

    drift: float = 0.0
    soften: float = 0.0
    names: ClassVar[tuple[str, ...]] = ("loss",)
    drift_tolerance: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        not_negative(drift=self.drift)
        between(0, 1, soften=self.soften)

    @property
    def records_outputs(self) -> bool:
        return self.drift > 0


@register_rule("constrain", "drift")
@dataclass(frozen=True)
class Drift:
    """‖f(x_i) − z_i‖² / K ≤ drift_tolerance."""

    drift_tolerance: float = 0.1
    names: ClassVar[tuple[str, ...]] = ("drift",)
    drift: ClassVar[float] = 0.0
    soften: ClassVar[float] = 0.0
    records_outputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        not_negative(drift_tolerance=self.drift_tolerance)


@register_rule("constrain", "both")
@dataclass(frozen=True)
class LossAndDrift:
    """The loss and the drift, each with its tolerance and duals of its own."""

    drift: float = 0.0
    drift_tolerance: float = 0.1
    names: ClassVar[tuple[str, ...]] = ("loss", "drift")
    soften: ClassVar[float] = 0.0
    records_outputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        not_negative(drift=self.drift, drift_tolerance=self.drift_tolerance)


def sharpness(stored: Tensor, samples: Tensor, soften: float) -> Tensor:
    """c_k = 1 − soften · clip((s_k − 1/6) / (2/3 − 1/6), 0, 1), where s_k of task k's samples are stored.

    Outputs are recorded on samples that the network has learned by heart, so they are surer than it is of others. Held
    to them on few samples, it forgets less; held to them on many, it is too sure of old classes to learn new ones.
    A task whose number of samples isn't known (0) has c = 1.

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
