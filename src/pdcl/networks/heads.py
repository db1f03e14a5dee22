"""The last linear layer of a network: found, and widened in place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pdcl.errors import UsageError

SHOWN = 10


def find_head(model: nn.Module, outputs: int) -> str:
    """The name of the layer that gives the outputs: `head`, or else the last linear layer of this width."""
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    fitting = [name for name, layer in layers.items() if layer.out_features == outputs]
    if "head" in fitting:
        return "head"
    if not fitting or list(layers)[-1] != fitting[-1]:
        raise UsageError(
            f"the network has no last nn.Linear with {outputs} outputs that could be widened for new classes; "
            "give learn(…, grow=function), which gets the network and the new number of outputs"
        )
    found: str = fitting[-1]
    return found


def widen(model: nn.Module, outputs: int, before: int) -> tuple[str, nn.Linear]:
    """Replace the head by one of `outputs`: old rows as they are, new ones zero. Its name and the new layer."""
    name = find_head(model, before)
    old = model.get_submodule(name) if name else model
    assert isinstance(old, nn.Linear)
    if not name:
        raise UsageError("the network is a bare nn.Linear; put it into nn.Sequential, so that it can be replaced")
    new = nn.Linear(old.in_features, outputs, old.bias is not None).to(old.weight.device, old.weight.dtype)
    with torch.no_grad():
        new.weight.copy_(_padded(old.weight, outputs))
        if old.bias is not None:
            new.bias.copy_(_padded(old.bias, outputs))
    new.weight.requires_grad_(old.weight.requires_grad)
    parent, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(parent), attribute, new)
    _tell_width(model, name, before, outputs)
    return name, new


def _tell_width(model: nn.Module, head: str, before: int, outputs: int) -> None:
    """Classifiers of transformers write their width down too, as `num_labels` of the model and of its config.

    Only those around the head: every config has a `num_labels`, that of an encoder in somebody's network too.
    """
    parts = head.split(".")
    for depth in range(len(parts)):
        module = model.get_submodule(".".join(parts[:depth]))
        config: Any = vars(module).get("config")
        if getattr(config, "num_labels", None) == before:
            names = dict(getattr(config, "id2label", None) or {})
            config.num_labels = outputs
            if names:
                config.id2label = {**config.id2label, **names}
                config.label2id = {name: number for number, name in config.id2label.items()}
        if vars(module).get("num_labels") == before:
            vars(module)["num_labels"] = outputs


def _padded(values: Tensor, rows: int) -> Tensor:
    return torch.cat([values, values.new_zeros(rows - len(values), *values.shape[1:])])


def keep_frozen_statistics(model: nn.Module) -> None:
    """Batch normalisation whose parameters don't learn stays in eval mode, also while the network trains."""
    from torch.nn.modules.batchnorm import _BatchNorm

    for layer in model.modules():
        if isinstance(layer, _BatchNorm) and layer.affine and not layer.weight.requires_grad:
            layer.eval()
            layer.train = partial(_stay, layer)  # type: ignore[method-assign]


def _stay(layer: Any, mode: bool = True) -> Any:
    return layer


def check_same_parameters(own: Mapping[str, Tensor], saved: Mapping[str, Tensor]) -> None:
    """Raise unless both have the same names and shapes; the message lists what differs."""
    missing = [f"{name} is not in the saved state" for name in own if name not in saved]
    strange = [f"{name} is only in the saved state" for name in saved if name not in own]
    shapes = [
        f"{name} is {tuple(own[name].shape)} here, {tuple(saved[name].shape)} in the saved state"
        for name in own
        if name in saved and own[name].shape != saved[name].shape
    ]
    if found := [*shapes, *missing, *strange]:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise UsageError(f"the network is another than the saved one: {'; '.join(found[:SHOWN])}{more}")


def fitted(kept: dict[str, Tensor], like: dict[str, Tensor]) -> dict[str, Tensor]:
    """Old tensors padded to `like`'s shapes after the head grew; new entries come from `like`."""
    return {name: _laid_over(kept[name], value) for name, value in like.items()}


def _laid_over(kept: Tensor, value: Tensor) -> Tensor:
    if kept.shape == value.shape:
        return kept
    value[tuple(slice(0, size) for size in kept.shape)] = kept
    return value
