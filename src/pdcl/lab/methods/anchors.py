"""Tensors kept per parameter, by name: importances and anchors of methods that hold parameters near old values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

Named = dict[str, Tensor]


def named_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that learn, by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def anchored(model: nn.Module) -> Named:
    """θ*: a copy of the parameters as they are."""
    return {name: p.detach().clone() for name, p in named_parameters(model).items()}


def zeros(model: nn.Module) -> Named:
    return {name: torch.zeros_like(p) for name, p in named_parameters(model).items()}


def add_pull(model: nn.Module, importance: Named, anchor: Named, strength: float) -> None:
    """Add ∇ c Σ_j Ω_j (θ_j − θ*_j)² = 2c Ω (θ − θ*) to the gradients."""
    for name, p in named_parameters(model).items():
        pull = importance[name] * (p.detach() - anchor[name])
        p.grad = 2 * strength * pull if p.grad is None else p.grad.add_(pull, alpha=2 * strength)
