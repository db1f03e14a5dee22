"""How duals answer slacks: `(state, look) ↦ (state, λ)`, one entry per constraint.

Between dual steps a rule keeps one number per constraint (its state, which starts as the dual does).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from torch import Tensor

from pdcl.duality.duals import nupi
from pdcl.duality.rules import not_negative, register_rule

ONE_POINT = 0.01


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


@register_rule("dual", "capped")
@dataclass(frozen=True)
class Capped:
    """λ ← clip(λ + (A / 2S)(z − κ λ), 0, A) with z = clip((s + m·SE) / √(SE² + (1 pt)²), ±2): steps without a unit.

    cap: A, the most a dual weighs, which keeps the new task's share of the gradient. decay: κ. margin: m, standard
    errors that a limit is aimed inside of, since ascent parks an active limit at its edge. S: dual steps of the task.
    """

    cap: float = 3.0
    decay: float = 0.25
    margin: float = 1.0

    def __post_init__(self) -> None:
        not_negative(cap=self.cap, decay=self.decay, margin=self.margin)

    def step(self, state: Tensor, look: Look) -> tuple[Tensor, Tensor]:
        spread = (look.errors.square() + ONE_POINT**2).sqrt()
        z = ((look.slacks + self.margin * look.errors) / spread).clamp(-2, 2)
        rate = self.cap / (2 * look.steps) / look.share
        duals = (state + rate * (z - self.decay * state)).clamp(0, self.cap)
        return duals, duals


@register_rule("dual", "frozen")
@dataclass(frozen=True)
class Frozen:
    """λ stays what it started with: limits are reported, not pursued."""

    moves: ClassVar[bool] = False

    def step(self, state: Tensor, look: Look) -> tuple[Tensor, Tensor]:
        return state, state
