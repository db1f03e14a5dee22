"""What a dual says that a tolerance costs (Theorem 1, Corollary 1).

−λ* is (near) a subgradient of the optimal value P(ε) of the current task:

    P(ε + γ) − P(ε) ≥ −⟨λ*, γ⟩ − ω ‖γ‖₂

so loosening ε_k by γ wins at most about λ_k γ on the current task, and tightening it costs at least about that. ω is 0
for convex losses with an exact model; in general it rests on constants that nobody knows, so it is never a number here.
The duals must come from losses: under an error-rate tolerance λ is a weight, not a price.
"""

import torch
from torch import Tensor


def price(duals: Tensor, change: Tensor | float) -> Tensor:
    """λ_k γ_k: what loosening ε_k by γ_k may win at most, about, on the current task (γ < 0: lose at least)."""
    return duals * change


def value_bound(value: Tensor | float, duals: Tensor, change: Tensor) -> Tensor:
    """P(ε) − ⟨λ, γ⟩: the linear under-estimator of P(ε + γ). duals: [C]; change: [..., C]."""
    return value - price(duals, change).sum(dim=-1)


def sample_prices(duals: Tensor, tasks: Tensor) -> Tensor:
    """λ_i / n_k: the price of ε_i at the sample level, where tasks[i] = k holds n_k samples. duals, tasks: [n]."""
    return duals / torch.bincount(tasks)[tasks]
