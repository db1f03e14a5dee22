"""The gradient of a network as one vector, for methods that compare and edit gradients before a step."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
