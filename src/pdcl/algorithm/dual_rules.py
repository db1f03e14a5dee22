"""Line 8 of Algorithm 1: how duals answer slacks. A rule owns its state: `init(λ)`, `step(state, look) → state, λ`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from pdcl.algorithm.ascent import nupi
from pdcl.algorithm.rules import not_negative, register_rule

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


class DualRule:
    """`init` makes what a rule keeps of each constraint; `step` moves it, and gives λ.

    All tensors are float64, and their first dimension is the constraints: a rule with momentum keeps [C, 2]. Only
    measured constraints come to `step`. moves: whether duals ever move.
    """

    moves: ClassVar[bool] = True

    @property
    def most(self) -> float:
        """The largest dual there can be."""
        return math.inf

    @property
    def shadow_lr(self) -> float:
        """The rate at which shadow duals of the newest task's samples rise, for selection."""
        return 0.1

    @property
    def relaxation(self) -> float:
        """κ, where the rule relaxes every limit by κ λ."""
        return 0.0

    def init(self, duals: Tensor) -> Tensor:
        """The state of constraints that start with these duals; if nothing is said, the duals themselves."""
        return duals.clone()

    def step(self, state: Tensor, look: Look) -> tuple[Tensor, Tensor]:
        """The state and λ after a look."""
        raise NotImplementedError


@register_rule("dual", "ascent")
@dataclass(frozen=True)
class Ascent(DualRule):
    """I ← [I + η_d (s − κ I)]₊, λ = [I + K_p s]₊: projected ascent; with a gain K_p > 0 a PI controller (nuPI).

    lr: η_d. decay: κ, which relaxes each tolerance by κ λ. gain: K_p, a proportional answer that ends with the slack.
    """

    lr: float = 0.1
    decay: float = 0.0
    gain: float = 0.0

    def __post_init__(self) -> None:
        not_negative(dual_lr=self.lr, decay=self.decay, gain=self.gain)

    @property
    def shadow_lr(self) -> float:
        return self.lr

    @property
    def relaxation(self) -> float:
        return self.decay

    def step(self, state: Tensor, look: Look) -> tuple[Tensor, Tensor]:
        return nupi(state, look.slacks, self.lr / look.share, self.gain, self.decay)


@register_rule("dual", "capped")
@dataclass(frozen=True)
class Capped(DualRule):
    """I ← clip(I + (A / 2S)(z̄ − κ I), 0, A), λ = clip(I + K_p z, 0, A) with z = (s + m·SE) / √(SE² + (1 pt)²) and
    z̄ = clip(z, ±2): steps without a unit.

    cap: A, the most a dual weighs, which keeps the new task's share of the gradient. decay: κ. margin: m; the
    step aims m standard errors below the limit, since ascent settles exactly at an active limit. gain: K_p, a
    proportional answer that ends with the slack. S: dual steps of the task.
    """

    cap: float = 3.0
    decay: float = 0.25
    margin: float = 1.0
    gain: float = 0.0

    def __post_init__(self) -> None:
        not_negative(cap=self.cap, decay=self.decay, margin=self.margin, gain=self.gain)

    @property
    def most(self) -> float:
        return self.cap

    def step(self, state: Tensor, look: Look) -> tuple[Tensor, Tensor]:
        spread = (look.errors.square() + ONE_POINT**2).sqrt()
        z = (look.slacks + self.margin * look.errors) / spread
        rate = self.cap / (2 * look.steps) / look.share
        integral = (state + rate * (z.clamp(-2, 2) - self.decay * state)).clamp(0, self.cap)
        return integral, (integral + self.gain * z).clamp(0, self.cap)


@register_rule("dual", "frozen")
@dataclass(frozen=True)
class Frozen(DualRule):
    """λ stays what it started with: limits are reported, not pursued."""

    moves: ClassVar[bool] = False

    def step(self, state: Tensor, look: Look) -> tuple[Tensor, Tensor]:
        return state, state
