"""The two linear heads that the same statistics give, and the temperature of their scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pdcl.algorithm.closed_form import Factor, Quadratic, ridge

Head = Callable[[Quadratic, float, Tensor], Tensor]
COLDEST, HOTTEST = 1e-3, 1e4
HALVINGS = 24
PROBES = 64


def ridge_head(total: Quadratic, rho: float, counts: Tensor) -> Tensor:
    """W = (A + ρP)⁻¹B, m × outputs."""
    return Factor(total.A, ridge(rho, total.A)).solve(total.B)


def lda_head(total: Quadratic, rho: float, counts: Tensor) -> Tensor:
    """w_k = Λμ_k, b_k = −½ (μ_kᵀΛμ_k − tr(ΛΣ) / n_k): discriminant analysis with classes of equal frequency.

    All of it is in A and B: features end in a constant, so B's last row is the weight of each class. Then
    μ_k = B_k / weight_k, and the scatter within classes is A − Σ_k weight_k μ_k μ_kᵀ. An output without samples has
    w = b = 0. The mean of n_k samples is longer than the true one, by tr(ΛΣ) / n_k in this metric; left in, a class
    with few samples would hardly be predicted. tr(ΛΣ) = d − ρ tr Λ, which probes estimate (`inverse_trace`): a
    standard error of at most .18 √d, where an inverse would cost twice the factor. counts: n_k, [outputs].
    """
    weight = total.B[-1].clamp(min=1e-300)
    means = (total.B / weight).T[:, :-1]
    scatter = (total.A[:-1, :-1] - (means.T * total.B[-1]) @ means) / total.A[-1, -1]
    level = float(scatter.diagonal().mean())
    shrunk = torch.full((len(scatter),), rho * level if level > 0 else 1.0, dtype=torch.float64)
    factor = Factor(scatter, shrunk)
    directions = factor.solve(means.T)
    noise = (len(scatter) - float(shrunk[0]) * inverse_trace(factor)) / counts.clamp(min=1)
    length = ((directions * means.T).sum(0) - noise.clamp(min=0)).clamp(min=0)
    return torch.cat([directions, -torch.where(counts > 0, length, 0.0)[None] / 2])


def inverse_trace(factor: Factor) -> float:
    """tr Λ of Λ = (LLᵀ)⁻¹: the mean of ‖L⁻¹v‖² over probes v of random signs, always the same; exact up to 64 rows."""
    d = len(factor.factor)
    if d <= PROBES:
        return float(torch.linalg.solve_triangular(factor.factor, torch.eye(d).double(), upper=False).square().sum())
    signs = torch.randint(2, (d, PROBES), generator=torch.Generator().manual_seed(0)).double() * 2 - 1
    return float(torch.linalg.solve_triangular(factor.factor, signs, upper=False).square().sum()) / PROBES


HEADS: dict[str, Head] = {"ridge": ridge_head, "lda": lda_head}


def temperature(scores: Tensor, targets: Tensor) -> float:
    """1/T, what scores s are multiplied with so that softmax gives the likeliest probabilities on these samples: the
    cross-entropy is convex in it, and its slope is the mean of Σ_k p_k s_k − s_y, so its zero is found by halving."""
    own = float(scores.gather(1, targets[:, None]).mean())
    low, high = math.log(COLDEST), math.log(HOTTEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        expected = float((torch.softmax(scores * math.exp(middle), 1) * scores).sum(1).mean())
        low, high = (low, middle) if expected > own else (middle, high)
    return math.exp((low + high) / 2)
