"""What is held to a tolerance: the loss of stored samples, the drift of their outputs, or both.

Drift is the squared distance of a sample's outputs from those recorded when it was stored, averaged over outputs. An
output without a record (NaN) does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from pdcl.duality.rules import not_negative, register_rule


class Quantities(Protocol):
    """`names`: one row of duals for each. drift: weight of the drift that is added to a replayed sample's loss."""

    names: ClassVar[tuple[str, ...]]
    drift: float
    drift_tolerance: float

    @property
    def records_outputs(self) -> bool: ...


@register_rule("constrain", "loss")
@dataclass(frozen=True)
class Loss:
    """ℓ_i ≤ ε, differentiating ℓ_i + drift · ‖f(x_i) − z_i‖² / K under the same dual."""

    drift: float = 0.0
    names: ClassVar[tuple[str, ...]] = ("loss",)
    drift_tolerance: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        not_negative(drift=self.drift)

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
    records_outputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        not_negative(drift=self.drift, drift_tolerance=self.drift_tolerance)


def drift_of(outputs: Tensor, recorded: Tensor) -> Tensor:
    """‖f(x_i) − z_i‖² / K_i over the K_i outputs that sample i has a record of, by sample. Both: [n, K, …].

    >>> drift_of(torch.tensor([[3.0, 9.0]]), torch.tensor([[1.0, torch.nan]]))
    tensor([4.])
    """
    known = ~recorded.isnan()
    # Masked before it is squared: 0 · NaN would be the gradient otherwise.
    gaps = torch.where(known, outputs - recorded, 0.0).square().flatten(1)
    return gaps.sum(1) / known.flatten(1).sum(1).clamp(min=1)
