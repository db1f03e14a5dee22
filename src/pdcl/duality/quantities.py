"""What is held to a tolerance: the loss of stored samples, the drift of their outputs, or both.

Drift is the squared distance of a sample's outputs from those recorded when it was stored, averaged over outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

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
    """‖f(x_i) − z_i‖² / K, by sample. outputs, recorded: [n, K, …]."""
    return (outputs - recorded).square().flatten(1).mean(1)
