"""The two linear heads that the same statistics give, their ρ, and the temperature of their scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pdcl.algorithm.closed_form import Factor, Quadratic, ridge

Head = Callable[[Quadratic, float, Tensor], Tensor]
RHOS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
# Cross-validation says nothing where more than this share of the samples' freedom is fitted.
CROWDED = 0.8
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
    with few samples would hardly be predicted. tr(ΛΣ) = `degrees`. counts: n_k, [outputs].
    """
    weight = total.B[-1].clamp(min=1e-300)
    means = (total.B / weight).T[:, :-1]
    scatter = (total.A[:-1, :-1] - (means.T * total.B[-1]) @ means) / total.A[-1, -1]
    level = float(scatter.diagonal().mean())
    shrunk = torch.full((len(scatter),), rho * level if level > 0 else 1.0, dtype=torch.float64)
    factor = Factor(scatter, shrunk)
    directions = factor.solve(means.T)
    noise = degrees(factor, shrunk) / counts.clamp(min=1)
    length = ((directions * means.T).sum(0) - noise.clamp(min=0)).clamp(min=0)
    return torch.cat([directions, -torch.where(counts > 0, length, 0.0)[None] / 2])


def degrees(factor: Factor, penalty: Tensor) -> float:
    """Degrees of freedom, tr A(A + P)⁻¹ = m − tr P(A + P)⁻¹, for the factor LLᵀ of A + P.

    The trace is the mean of ‖L⁻¹ P^½ v‖² over probes v of random signs, always the same: a standard error of at most
    .18 √m, where an inverse would cost twice the factor. Exact up to 64 rows.
    """
    m = len(penalty)
    if m <= PROBES:
        probes, count = torch.eye(m, dtype=torch.float64), 1
    else:
        signs = torch.randint(2, (m, PROBES), generator=torch.Generator().manual_seed(0))
        probes, count = signs.double() * 2 - 1, PROBES
    spread = torch.linalg.solve_triangular(factor.factor, penalty.sqrt()[:, None] * probes, upper=False)
    return m - float(spread.square().sum()) / count


def chosen_rho(total: Quadratic, samples: int, rhos: Sequence[float] = RHOS) -> float:
    """ρ with the least generalised cross-validation (Craven, Wahba 1979), L(W(ρ)) / (1 − df(ρ) / n)².

    That is nearly the loss of leaving one sample out, and it takes sums alone. df rises as ρ falls: where it comes near
    n the quotient is nearly 0 / 0, and rounding decides; no smaller ρ is looked at.
    """
    found, least = max(rhos), math.inf
    for rho in sorted(rhos, reverse=True):
        penalty = ridge(rho, total.A)
        factor = Factor(total.A, penalty)
        fitted = degrees(factor, penalty) / max(1, samples)
        loss = total.value(factor.solve(total.B))
        if fitted > CROWDED or loss <= 0:
            break
        if loss / (1 - fitted) ** 2 < least:
            found, least = rho, loss / (1 - fitted) ** 2
    return found


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
