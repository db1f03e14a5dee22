"""Per-sample gradients of a network, without a backward pass per sample.

In a Linear layer sample i's gradient is the outer product δ_i a_iᵀ of what came back to it and what went in, and
nothing as large as a gradient is built (`Outer`); other layers' gradients are built as rows (`Rows`):

    ⟨g_i, g_j⟩ = Σ_layers (a_i·a_j + 1)(δ_i·δ_j)        Σ_i w_i g_i² = Σ_i w_i δ_i² (a_i²)ᵀ   per Linear layer

`layer_parts` knows Linear, convolution and BatchNorm; any other network takes the general path, `torch.func.vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from pdcl.lab.methods.layer_gradients import Part, Rows, knows, layer_parts
from pdcl.lab.methods.parameters import trained
from pdcl.networks import eval_mode

Loss = Callable[[Tensor, Tensor], Tensor]
LARGEST = 2**25


class Gradients:
    """The gradients of n samples, one part per layer."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts

    def inner(self, other: Gradients) -> Tensor:
        """⟨g_i, g_j⟩, n × m."""
        return torch.stack([a.inner(b) for a, b in zip(self.parts, other.parts, strict=True)]).sum(0)

    def norms(self) -> Tensor:
        """‖g_i‖, n."""
        return torch.stack([part.square_norms() for part in self.parts]).sum(0).sqrt()

    def squares(self, weights: Tensor) -> list[Tensor]:
        """Σ_i w_i g_i², shaped like the parameters."""
        return [square for part in self.parts for square in part.squares(weights)]


def per_sample_gradients(model: nn.Module, x: Tensor, y: Tensor, loss: Loss) -> Gradients:
    """Gradients of `loss(model(x), y)` [n] by sample, in eval mode: samples must not influence each other."""
    with eval_mode(model):
        parts = layer_parts(model, x, lambda outputs: loss(outputs, y).sum())
        return explicit_gradients(model, x, y, loss) if parts is None else Gradients(parts)


def only_linear(model: nn.Module) -> bool:
    """Whether Linear layers hold every parameter that learns, so that gradients are never built."""
    return knows(model, (nn.Linear,))


def chunk_size(model: nn.Module) -> int:
    """How many samples' gradients to have at once."""
    if only_linear(model):
        return 512
    return max(1, min(512, LARGEST // sum(p.numel() for p in trained(model))))


def explicit_gradients(model: nn.Module, x: Tensor, y: Tensor, loss: Loss) -> Gradients:
    """The general path: one gradient per sample by `vmap`."""
    values = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}

    def of_one(parameters: dict[str, Tensor], one: Tensor, target: Tensor) -> Tensor:
        outputs = torch.func.functional_call(model, parameters, (one[None],))
        return loss(outputs, target[None]).sum()

    each = torch.func.vmap(torch.func.grad(of_one), in_dims=(None, 0, 0), randomness="different")
    return Gradients([Rows([part]) for part in each(values, x, y).values()])
