"""How duals answer slacks: `(state, look) ↦ (state, λ)`, one entry per constraint.

Between dual steps a rule keeps one number per constraint (its state, which starts as the dual does).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from pdcl.duality.duals import nupi
from pdcl.duality.rules import not_negative, register_rule


@dataclass(frozen=True)
class Look:
    """What one dual step sees: slacks s = L − ε and their standard errors, of the constraints that were measured.

    share: the measured part of all constraints. Each moves by 1/share as much, so that the expected movement is the
    same. steps: dual steps planned for the task.
    """

    slacks: Tensor
    errors: Tensor
    share: float = 1.0
    steps: int = 1


class DualRule(Protocol):
    """λ and the rule's state after a look. All tensors: the measured constraints, float64."""

    def step(self, state: Tensor, look: Look) -> tuple[Tensor, Tensor]: ...


@register_rule("dual", "ascent")
@dataclass(frozen=True)
class Ascent:
    """I ← [I + η_d (s − κ I)]₊, λ = [I + K_p s]₊: projected ascent; with a gain K_p > 0 a PI controller (nuPI).

    lr: η_d. decay: κ, which relaxes each tolerance by κ λ. gain: K_p, a proportional answer that ends with the slack.
    """

    lr: float = 0.1
    decay: float = 0.0
    gain: float = 0.0

    def __post_init__(self) -> None:
        not_negative(dual_lr=self.lr, decay=self.decay, gain=self.gain)

    def step(self, state: Tensor, look: Look) -> tuple[Tensor, Tensor]:
        return nupi(state, look.slacks, self.lr / look.share, self.gain, self.decay)
