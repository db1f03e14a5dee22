"""Modules that nothing can be learned with, refused before work is put into them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from pdcl.errors import UsageError


def check_computes(module: nn.Module, what: str) -> None:
    """Raise UsageError for a module whose weights aren't there yet: lazy ones, and those on the meta device."""
    for name, value in chain(module.named_parameters(), module.named_buffers()):
        if is_lazy(value):
            raise UsageError(f"{what}: {name} is lazy, its shape is unknown; call the network on a sample first")
        if value.is_meta:
            raise UsageError(f"{what}: {name} is on the meta device, which holds no numbers; load its weights first")


def check_learns(module: nn.Module) -> None:
    """Raise UsageError unless some parameter learns, and all of them are finite."""
    learns = [p for p in module.parameters() if p.requires_grad]
    if not learns:
        why = "all are frozen" if any(True for _ in module.parameters()) else "it has none"
        raise UsageError(
            f"no parameter of the network {type(module).__name__} learns: {why}; let some learn "
            "(p.requires_grad_(True)), or give a frozen one as backbone= and a head such as network='linear'"
        )
    check_finite_weights(dict(module.named_parameters()))


def check_finite_weights(weights: Mapping[str, Tensor]) -> None:
    """Raise UsageError for weights that are NaN or infinite: such a network says the same of everything."""
    for name, value in weights.items():
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise UsageError(f"the network's {name} holds NaN or infinite numbers; take weights from before that")
