"""Line 8 of Algorithm 1: how duals answer slacks. A rule owns its state: `init(λ)`, `step(state, look) → state, λ`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import torch
from torch import Tensor

from pdcl.algorithm.rules import not_negative, register_rule

ONE_POINT = 0.01

Dual = TypeVar("Dual", float, Tensor)


def ascend(duals: Tensor, slacks: Tensor, lr: float, decay: float = 0.0) -> Tensor:
    """λ ← [λ + η_d (s − κ λ)]₊, elementwise, for tasks and samples alike; `lr` is η_d and `decay` is κ.

    >>> ascend(torch.tensor([0.0, 1.0]), slacks=torch.tensor([2.0, -30.0]), lr=0.1)
    tensor([0.2000, 0.0000])

    A slack of NaN (nothing measured) gives a dual of NaN: leave such constraints out before the step.
    """
    return (duals + lr * (slacks - decay * duals)).clamp(min=0)


def effective_tolerance(tolerance: float, dual: Dual, decay: float) -> Dual:
    """ε + κ λ: what decay κ really asks for, since at a fixed point with λ > 0 the slack is s = κ λ."""
    return tolerance + decay * dual


def nupi(integral: Tensor, slacks: Tensor, lr: float, gain: float, decay: float = 0.0) -> tuple[Tensor, Tensor]:
    """A PI controller in place of plain ascent: `I ← [I + η_d (s − κ I)]₊`, `λ = [I + K_p s]₊`. Returns (I, λ).

    The proportional term (`gain`, K_p) answers a jump of the loss at once and forgets it when it is over, where plain
    ascent comes down by only η_d × room a step.
    """
    integral = ascend(integral, slacks, lr, decay)
    return integral, (integral + gain * slacks).clamp(min=0)


def infeasible(duals: Tensor, slacks: Tensor, window: float = 0.5, rise: float = 0.01) -> Tensor:
    """Which tolerances look out of reach: λ_k rose over the last dual steps while s_k stayed positive throughout.

    duals, slacks: histories [steps, constraints]. `window` is the share of the steps to look at; `rise` is by how much
    of itself a dual must have risen, since one that settles from below also rises, ever less. Fewer than four steps say
    nothing, and nothing is claimed. Returns a boolean per constraint.
    """
    if not 0 < window <= 1:
        raise ValueError(f"window must be a share of the dual steps in (0, 1], not {window}")
    steps = len(duals)
    if steps < 4:
        return torch.zeros(duals.shape[1:], dtype=torch.bool, device=duals.device)
    tail = max(2, math.ceil(window * steps))
    return (duals[-1] > (1 + rise) * duals[-tail]) & (slacks[-tail:] > 0).all(dim=0)


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


class DualRule(ABC):
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

    @abstractmethod
    def step(self, state: Tensor, look: Look) -> tuple[Tensor, Tensor]:
        """The state and λ after a look."""


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
