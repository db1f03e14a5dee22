"""The paper's problem where it is convex: squared loss of a linear head, min f(W) s.t. L_c(W) ≤ ε_c, solved exactly.

    f(W)   = tr(WᵀAW) − 2 tr(WᵀB) + q + ρ‖W‖²              (the constant's row of W is not penalised)
    W(λ)   = (A + Σ λ_c A_c + ρP)⁻¹ (B + Σ λ_c B_c)         the primal step, solved
    g(λ)   = min_W f(W) + Σ λ_c (L_c(W) − ε_c)              concave; ∇g = slacks
    ∇²g_ij = −2 tr(R_iᵀ (A + Σ λ_c A_c + ρP)⁻¹ R_j),        R_c = A_c W − B_c

Duals come from projected Newton steps on g in the box [0, most]. A limit that is over at the end is out of reach: it is
dropped and named, and the others are solved for again. If min_W Σ λ_c (L_c(W) − ε_c) > 0 for some λ ≥ 0, no W keeps all
of these limits: that is a certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

STEPS, HALVINGS = 60, 40
TOLERANCE = 1e-10
MOST = 100.0


@dataclass(frozen=True)
class Quadratic:
    """tr(WᵀAW) − 2 tr(WᵀB) + q: a mean squared loss. A: m × m, B: m × outputs, float64."""

    A: Tensor
    B: Tensor
    q: float

    def value(self, W: Tensor) -> float:
        return float((W * (self.A @ W)).sum() - 2 * (W * self.B).sum()) + self.q

    def residual(self, W: Tensor) -> Tensor:
        """R = AW − B, half of the gradient."""
        return self.A @ W - self.B


def weighted(parts: Sequence[tuple[float, Quadratic]]) -> Quadratic:
    """Σ weight · quadratic."""
    if len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    A, B, q = torch.zeros_like(parts[0][1].A), torch.zeros_like(parts[0][1].B), 0.0
    for weight, part in parts:
        A.add_(part.A, alpha=weight)
        B.add_(part.B, alpha=weight)
        q += weight * part.q
    return Quadratic(A, B, q)


def ridge(rho: float, of: Tensor) -> Tensor:
    """ρP: ρ relative to the mean of A's diagonal, 0 for the constant; [m]."""
    level = rho * (float(of.diagonal()[:-1].mean()) or 1.0)
    found = torch.full((len(of),), level, dtype=torch.float64)
    found[-1] = 0.0
    return found


class Factor:
    """The Cholesky factor of A + diag(penalty), and what it takes to solve with it."""

    def __init__(self, A: Tensor, penalty: Tensor) -> None:
        self.matrix = A.clone()
        self.matrix.diagonal().add_(penalty)
        tiny = 1e-14 * float(self.matrix.diagonal().mean()) or 1e-14
        self.factor, failed = torch.linalg.cholesky_ex(self.matrix)
        while int(failed):
            tiny *= 10
            self.factor, failed = torch.linalg.cholesky_ex(self.matrix + tiny * torch.eye(len(A), dtype=A.dtype))

    def solve(self, B: Tensor) -> Tensor:
        """(A + diag(penalty))⁻¹ B, with one step of refinement."""
        found = torch.cholesky_solve(B, self.factor)
        return found + torch.cholesky_solve(B - self.matrix @ found, self.factor)


@dataclass(frozen=True)
class Problem:
    """min objective(W) + Σ penalty W²  s.t.  limits[c] ≥ constraints[c](W)."""

    objective: Quadratic
    penalty: Tensor
    constraints: list[Quadratic]
    limits: list[float]

    def at(self, duals: Tensor) -> State:
        """W(λ), g(λ), its gradient and its Hessian."""
        chosen = [(float(dual), each) for dual, each in zip(duals, self.constraints, strict=True) if dual]
        total = weighted([(1.0, self.objective), *chosen])
        factor = Factor(total.A, self.penalty)
        W = factor.solve(total.B)
        slacks = torch.tensor(
            [each.value(W) - limit for each, limit in zip(self.constraints, self.limits, strict=True)],
            dtype=torch.float64,
        )
        primal = self.primal(W)
        return State(W, duals, primal, primal + float(duals @ slacks), slacks, factor)

    def primal(self, W: Tensor) -> float:
        return self.objective.value(W) + float((self.penalty[:, None] * W.square()).sum())

    def hessian(self, state: State, free: Tensor) -> Tensor:
        """−∇²g of the free duals: how fast each slack falls with each dual."""
        residuals = [self.constraints[c].residual(state.W) for c in free.tolist()]
        moved = [state.factor.solve(each) for each in residuals]
        rows = [[2 * float((one * other).sum()) for other in moved] for one in residuals]
        return torch.tensor(rows, dtype=torch.float64).reshape(len(free), len(free))

    def without(self, dropped: set[int]) -> tuple[Problem, list[int]]:
        kept = [c for c in range(len(self.limits)) if c not in dropped]
        constraints, limits = [self.constraints[c] for c in kept], [self.limits[c] for c in kept]
        return Problem(self.objective, self.penalty, constraints, limits), kept


@dataclass(frozen=True)
class State:
    """Where the ascent is: W(λ), λ, f(W), g(λ), slacks."""

    W: Tensor
    duals: Tensor
    primal: float
    dual_value: float
    slacks: Tensor
    factor: Factor

    def residual(self, most: float) -> float:
        """How far the KKT conditions are from holding, in the unit of losses: ‖λ − [λ + ∇g] in the box‖∞."""
        return float(((self.duals + self.slacks).clamp(0, most) - self.duals).abs().amax()) if len(self.duals) else 0.0


@dataclass(frozen=True)
class Solution:
    """W and λ_c; dropped: limits that are out of reach; certified: whether no W at all keeps the limits."""

    W: Tensor
    duals: list[float]
    slacks: list[float]
    residual: float
    dropped: list[int] = field(default_factory=list)
    certified: bool = False


def solve(problem: Problem, most: float = MOST) -> Solution:
    """The constrained optimum. Limits that are out of reach are dropped, the one that is most over first."""
    dropped: list[int] = []
    certified = False
    while True:
        rest, kept = problem.without(set(dropped))
        state = ascend(rest, most)
        over = [c for c in range(len(kept)) if state.duals[c] >= most * (1 - 1e-9) and state.slacks[c] > 0]
        if not over:
            break
        certified = certified or is_infeasible(rest, state.duals)
        dropped.append(kept[max(over, key=lambda c: float(state.slacks[c]))])
    duals = torch.zeros(len(problem.limits), dtype=torch.float64)
    duals[kept] = state.duals
    slacks = [each.value(state.W) - limit for each, limit in zip(problem.constraints, problem.limits, strict=True)]
    return Solution(state.W, duals.tolist(), slacks, state.residual(most), sorted(dropped), certified)


def ascend(problem: Problem, most: float) -> State:
    """Projected Newton on g: duals on a side of the box that g pushes outwards stay, the others make a Newton step."""
    state = problem.at(torch.zeros(len(problem.limits), dtype=torch.float64))
    for _ in range(STEPS):
        if state.residual(most) <= TOLERANCE:
            break
        free = _free(state, most)
        curvature = problem.hessian(state, free)
        curvature += 1e-14 * max(float(curvature.diagonal().amax()), 1e-300) * torch.eye(len(free), dtype=torch.float64)
        direction = torch.zeros_like(state.duals)
        direction[free] = torch.linalg.solve(curvature, state.slacks[free])
        better = _searched(problem, state, direction, most)
        if better is None:
            break
        state = better
    return state


def _free(state: State, most: float) -> Tensor:
    held = ((state.duals <= 0) & (state.slacks <= 0)) | ((state.duals >= most) & (state.slacks >= 0))
    return (~held).nonzero().flatten()


def _searched(problem: Problem, state: State, direction: Tensor, most: float) -> State | None:
    """The first of shorter and shorter steps along the projected direction that lets g rise enough; None: none does."""
    step = 1.0
    for _ in range(HALVINGS):
        duals = (state.duals + step * direction).clamp(0, most)
        found = problem.at(duals)
        gain = float(state.slacks @ (duals - state.duals))
        rises = found.dual_value >= state.dual_value + 1e-4 * gain
        # Near the optimum g is flat to the last digit, while its gradient still tells.
        if (rises and gain > 0) or found.residual(most) < 0.5 * state.residual(most):
            return found
        step /= 2
    return None


def is_infeasible(problem: Problem, duals: Tensor) -> bool:
    """The certificate: whether min_W Σ λ_c (L_c(W) − ε_c) > 0, so that no W keeps all limits."""
    if not len(duals) or not float(duals.sum()):
        return False
    shares = duals / duals.sum()
    total = weighted([(float(share), each) for share, each in zip(shares, problem.constraints, strict=True)])
    tiny = torch.full((len(total.A),), 1e-12 * float(total.A.diagonal().mean()), dtype=torch.float64)
    least = total.value(Factor(total.A, tiny).solve(total.B))
    allowed = float(shares @ torch.tensor(problem.limits, dtype=torch.float64))
    return least - allowed > 1e-9 * max(1.0, abs(total.q))
