"""What methods do with the parameters of a network: gradients as one vector, importances and anchors by name."""

from __future__ import annotations

import torch
from torch import Tensor, nn

Named = dict[str, Tensor]


def trained(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that learn."""
    return [p for p in model.parameters() if p.requires_grad]


def flat_gradient(model: nn.Module) -> Tensor:
    """∇ of all parameters that learn, as a new vector; what took no part counts as zero."""
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained(model)]
    return torch.cat([part.flatten() for part in parts])


def set_gradient(model: nn.Module, gradient: Tensor) -> None:
    """Make this vector the gradient that the optimiser sees."""
    parameters = trained(model)
    for p, part in zip(parameters, gradient.split([p.numel() for p in parameters]), strict=True):
        p.grad = part.view_as(p)


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
