"""Per-sample gradients of a network, without a backward pass per sample.

Where all parameters belong to Linear layers, sample i's gradient in a layer is the outer product δ_i a_iᵀ of what came
back to it and what went in. Then nothing as large as a gradient is ever built:

    ⟨g_i, g_j⟩ = Σ_layers (a_i·a_j + 1)(δ_i·δ_j)        Σ_i w_i g_i² = Σ_i w_i δ_i² (a_i²)ᵀ   per layer

Any other network takes the general path: gradients [n, parameters] by `torch.func.vmap`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn

from pdcl.learners.gradients import trained
from pdcl.networks import eval_mode

Loss = Callable[[Tensor, Tensor], Tensor]
LARGEST = 2**25


class Gradients(Protocol):
    """The gradients of n samples."""

    def inner(self, other: Gradients) -> Tensor:
        """⟨g_i, g_j⟩, n × m."""

    def norms(self) -> Tensor:
        """‖g_i‖, n."""

    def squares(self, weights: Tensor) -> list[Tensor]:
        """Σ_i w_i g_i², shaped like the parameters."""


class Factored:
    """Gradients as (a, δ, has a bias) of each Linear layer."""

    def __init__(self, layers: list[tuple[Tensor, Tensor, bool]]) -> None:
        self.layers = layers

    def inner(self, other: Gradients) -> Tensor:
        assert isinstance(other, Factored)
        parts = []
        for (a, delta, bias), (b, gamma, _) in zip(self.layers, other.layers, strict=True):
            parts.append((a @ b.T + float(bias)) * (delta @ gamma.T))
        return torch.stack(parts).sum(0)

    def norms(self) -> Tensor:
        parts = [(a.square().sum(1) + float(bias)) * delta.square().sum(1) for a, delta, bias in self.layers]
        return torch.stack(parts).sum(0).sqrt()

    def squares(self, weights: Tensor) -> list[Tensor]:
        found = []
        for a, delta, bias in self.layers:
            weighed = weights[:, None] * delta.square()
            found.append(weighed.T @ a.square())
            if bias:
                found.append(weighed.sum(0))
        return found


class Explicit:
    """Gradients as rows, one tensor [n, …] per parameter."""

    def __init__(self, parts: list[Tensor]) -> None:
        self.parts = [part.flatten(1) for part in parts]
        self.shapes = [part.shape[1:] for part in parts]

    def inner(self, other: Gradients) -> Tensor:
        assert isinstance(other, Explicit)
        return torch.stack([a @ b.T for a, b in zip(self.parts, other.parts, strict=True)]).sum(0)

    def norms(self) -> Tensor:
        return torch.stack([part.square().sum(1) for part in self.parts]).sum(0).sqrt()

    def squares(self, weights: Tensor) -> list[Tensor]:
        sums = [weights @ part.square() for part in self.parts]
        return [total.view(shape) for total, shape in zip(sums, self.shapes, strict=True)]


def linear_layers(model: nn.Module) -> list[nn.Linear] | None:
    """The Linear layers, if they hold every parameter that learns, both weight and bias; else None."""
    layers = [module for module in model.modules() if type(module) is nn.Linear]
    owned = {id(p) for layer in layers for p in layer.parameters() if p.requires_grad}
    whole = all(p.requires_grad for layer in layers for p in layer.parameters())
    return layers if whole and owned == {id(p) for p in trained(model)} else None


def per_sample_gradients(model: nn.Module, x: Tensor, y: Tensor, loss: Loss) -> Gradients:
    """Gradients of `loss(model(x), y)` [n] by sample, in eval mode: samples must not influence each other."""
    with eval_mode(model):
        return _factored(model, x, y, loss) or explicit_gradients(model, x, y, loss)


def chunk_size(model: nn.Module) -> int:
    """How many samples' gradients to have at once."""
    if linear_layers(model) is not None:
        return 512
    return max(1, min(512, LARGEST // sum(p.numel() for p in trained(model))))


def _factored(model: nn.Module, x: Tensor, y: Tensor, loss: Loss) -> Factored | None:
    layers = linear_layers(model)
    if layers is None:
        return None
    seen: list[tuple[nn.Linear, Tensor, Tensor]] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(layer, nn.Linear)
        seen.append((layer, inputs[0].detach(), output))

    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        with torch.enable_grad():
            total = loss(model(x), y).sum()
    finally:
        for hook in hooks:
            hook.remove()
    if [id(layer) for layer, _, _ in seen] != [id(layer) for layer in layers] or any(a.dim() != 2 for _, a, _ in seen):
        return None  # a layer used twice, or on sequences, isn't one outer product per sample
    deltas = torch.autograd.grad(total, [output for _, _, output in seen])
    return Factored([(a, d, layer.bias is not None) for (layer, a, _), d in zip(seen, deltas, strict=True)])


def explicit_gradients(model: nn.Module, x: Tensor, y: Tensor, loss: Loss) -> Explicit:
    """The general path: one gradient per sample by `vmap`."""
    values = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}

    def of_one(parameters: dict[str, Tensor], one: Tensor, target: Tensor) -> Tensor:
        outputs = torch.func.functional_call(model, parameters, (one[None],))
        return loss(outputs, target[None]).sum()

    each = torch.func.vmap(torch.func.grad(of_one), in_dims=(None, 0, 0), randomness="different")
    return Explicit(list(each(values, x, y).values()))
