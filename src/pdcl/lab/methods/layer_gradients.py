"""Per-sample gradients of Linear, convolution and BatchNorm layers from one forward and one backward pass.

With a_i what went into a layer for sample i and δ_i the derivative of the summed loss by what came out of it:

    Linear       ∂W = δ_i a_iᵀ                      ∂b = δ_i
    convolution  ∂W = Σ_places δ_i U(a_i)ᵀ          ∂b = Σ_places δ_i      U: the patches under the kernel
    BatchNorm    ∂γ = Σ_places δ_i â_i              ∂β = Σ_places δ_i      â: normalised by running statistics
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import unfold
from torch.nn.modules.batchnorm import _BatchNorm

from pdcl.lab.methods.parameters import trained

Convolution: TypeAlias = nn.Conv1d | nn.Conv2d
KNOWN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.BatchNorm1d, nn.BatchNorm2d)


class Outer:
    """The gradients of n samples by one Linear layer's parameters: δ_i a_iᵀ, never multiplied out."""

    def __init__(self, a: Tensor, delta: Tensor, bias: bool) -> None:
        self.a, self.delta, self.bias = a, delta, bias

    def inner(self, other: Part) -> Tensor:
        """⟨g_i, g_j⟩, n × m."""
        assert isinstance(other, Outer)
        return (self.a @ other.a.T + float(self.bias)) * (self.delta @ other.delta.T)

    def square_norms(self) -> Tensor:
        """‖g_i‖², n."""
        return (self.a.square().sum(1) + float(self.bias)) * self.delta.square().sum(1)

    def squares(self, weights: Tensor) -> list[Tensor]:
        """Σ_i w_i g_i², shaped like the layer's parameters."""
        weighed = weights[:, None] * self.delta.square()
        return [weighed.T @ self.a.square(), *([weighed.sum(0)] if self.bias else [])]


class Rows:
    """The same of any other layer, as rows: one tensor [n, …] per parameter."""

    def __init__(self, gradients: Sequence[Tensor]) -> None:
        self.shapes = [each.shape[1:] for each in gradients]
        self.rows = torch.cat([each.flatten(1) for each in gradients], 1)

    def inner(self, other: Part) -> Tensor:
        assert isinstance(other, Rows)
        return self.rows @ other.rows.T

    def square_norms(self) -> Tensor:
        return self.rows.square().sum(1)

    def squares(self, weights: Tensor) -> list[Tensor]:
        sums = (weights @ self.rows.square()).split([shape.numel() for shape in self.shapes])
        return [each.view(shape) for each, shape in zip(sums, self.shapes, strict=True)]


Part: TypeAlias = Outer | Rows


def knows(model: nn.Module, kinds: tuple[type[nn.Module], ...] = KNOWN) -> bool:
    """Whether layers of these kinds hold every parameter that learns, none of them frozen in part."""
    layers = _layers(model, kinds)
    owned = {id(p) for layer in layers for p in layer.parameters() if p.requires_grad}
    whole = all(p.requires_grad for layer in layers for p in layer.parameters())
    return whole and owned == {id(p) for p in trained(model)} and all(map(_plain, layers))


def layer_parts(model: nn.Module, x: Tensor, total: Callable[[Tensor], Tensor]) -> list[Part] | None:
    """Gradients of total(model(x)), a sum over samples, by sample and layer; None for a network of another kind.

    The model is in eval mode.
    """
    if not knows(model):
        return None
    layers, seen = _layers(model, KNOWN), list[tuple[nn.Module, Tensor, Tensor]]()
    hooks = [layer.register_forward_hook(lambda m, a, out: seen.append((m, a[0].detach(), out))) for layer in layers]
    try:
        with torch.enable_grad():
            loss = total(model(x))
    finally:
        for hook in hooks:
            hook.remove()
    met = [layer for layer, _, _ in seen]
    flat = all(a.dim() == 2 for layer, a, _ in seen if isinstance(layer, nn.Linear))
    if len(met) != len(layers) or {*met} != {*layers} or not flat:
        return None  # a layer used twice, or a Linear layer on sequences, isn't one product per sample
    found = dict(zip(met, torch.autograd.grad(loss, [out for _, _, out in seen]), strict=True))
    inputs = {layer: a for layer, a, _ in seen}
    return [_part(layer, inputs[layer], found[layer]) for layer in layers]


def _layers(model: nn.Module, kinds: tuple[type[nn.Module], ...]) -> list[nn.Module]:
    """Layers of these kinds with parameters, in the order of the parameters."""
    return [each for each in model.modules() if type(each) in kinds and any(True for _ in each.parameters())]


def _plain(layer: nn.Module) -> bool:
    """Whether the formulas above hold: ungrouped convolutions padded with zeros, running statistics in BatchNorm."""
    if isinstance(layer, _BatchNorm):
        return layer.running_mean is not None
    if isinstance(layer, nn.Conv1d | nn.Conv2d):
        return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return True


def _part(layer: nn.Module, a: Tensor, delta: Tensor) -> Part:
    if isinstance(layer, nn.Linear):
        return Outer(a, delta, layer.bias is not None)
    places = delta.flatten(2) if delta.dim() > 2 else delta[:, :, None]
    if isinstance(layer, _BatchNorm):
        return Rows([(places * _normalised(layer, a).reshape(places.shape)).sum(2), places.sum(2)])
    assert isinstance(layer, nn.Conv1d | nn.Conv2d)
    weight = torch.bmm(places, _patches(layer, a).transpose(1, 2)).view(-1, *layer.weight.shape)
    return Rows([weight, *([] if layer.bias is None else [places.sum(2)])])


def _normalised(layer: _BatchNorm, a: Tensor) -> Tensor:
    mean, variance = layer.running_mean, layer.running_var
    assert mean is not None
    assert variance is not None
    shape = (1, -1, *[1] * (a.dim() - 2))
    return (a - mean.view(shape)) * (variance + layer.eps).rsqrt().view(shape)


def _patches(layer: Convolution, a: Tensor) -> Tensor:
    """What lies under the kernel at every place: n × (channels · kernel) × places."""
    if isinstance(layer, nn.Conv2d):
        return unfold(a, layer.kernel_size, layer.dilation, layer.padding, layer.stride)  # type: ignore[arg-type]
    padding, dilation = int(layer.padding[0]), layer.dilation[0]
    return unfold(a[:, :, None], (1, layer.kernel_size[0]), (1, dilation), (0, padding), (1, layer.stride[0]))
