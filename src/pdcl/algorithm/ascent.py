"""Projected dual ascent, for duals of tasks and of samples alike.

One step of Algorithm 1 on the dual side: `λ ← [λ + η_d (s − κ λ)]₊` with slacks `s = L(θ) − ε`.

>>> ascend(torch.tensor([0.0, 1.0]), slacks=torch.tensor([2.0, -30.0]), lr=0.1)
tensor([0.2000, 0.0000])
"""

import math
from typing import TypeVar

import torch
from torch import Tensor

Dual = TypeVar("Dual", float, Tensor)


def ascend(duals: Tensor, slacks: Tensor, lr: float, decay: float = 0.0) -> Tensor:
    """λ ← [λ + η_d (s − κ λ)]₊, elementwise; `lr` is η_d and `decay` is κ.

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
