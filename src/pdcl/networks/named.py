"""A network as one word of an option: `mlp:100-100`, `resnet18:20`, `auto`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import nn

from pdcl.errors import UsageError
from pdcl.networks import auto_name, build
from pdcl.streams.task import Spec

# More make no size of a layer.
DIGITS = 12


def is_name(text: str) -> bool:
    """Whether this can be a network of ours, `name[:sizes]`, and not a function of a user's, `package.module:build`."""
    return re.fullmatch(r"[a-z0-9-]+(:[0-9-]*)?", text) is not None


def build_named(text: str, shape: Sequence[int], outputs: int) -> nn.Module:
    """Build what `name[:sizes]` says: an MLP's hidden layers, or the width of a convolutional network."""
    name, _, sizes = text.partition(":")
    name = auto_name(shape) if name == "auto" else name
    if not sizes:
        return build(name, shape, outputs)
    parts = sizes.split("-")
    if not all(part.isdecimal() and part.isascii() and len(part) <= DIGITS and int(part) > 0 for part in parts):
        raise UsageError(f"network={text!r}: after the colon come positive sizes such as mlp:100-100 or resnet18:20")
    numbers = [int(part) for part in parts]
    if name in ("mlp", "mlp-glorot"):
        return build(name, shape, outputs, hidden=tuple(numbers))
    if len(numbers) > 1:
        raise UsageError(f"network={text!r}: {name} takes one width, such as {name}:{numbers[0]}")
    return build(name, shape, outputs, width=numbers[0])


def network_for(network: nn.Module | str, spec: Spec, seed: int) -> nn.Module:
    """This module, or what its name says, for samples such as these."""
    if not isinstance(network, str):
        return network
    if spec.leaves:
        raise UsageError(f"network={network!r} takes one tensor, and inputs are {spec.inputs()}; give a module")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build_named(network, spec.shape, spec.outputs)
