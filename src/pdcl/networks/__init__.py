"""Networks by name. Any `nn.Module` that gives logits works; these also give features."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pdcl.errors import UsageError
from pdcl.given import available_memory

if TYPE_CHECKING:
    from torch import nn

    from pdcl.networks.network import Network

BUILDERS = {
    "linear": ("network", "build_linear"),
    "mlp": ("network", "build_mlp"),
    "mlp-glorot": ("network", "build_glorot_mlp"),
    "cnn": ("cnn", "build_cnn"),
    "audio": ("audio", "build_audio"),
    "resnet18": ("resnet", "build_resnet18"),
}
LONG_SIGNAL = 1600
SMALL_SIDE = 8

__all__ = ["BUILDERS", "auto_name", "build", "eval_mode", "features_of", "has_batch_statistics"]


def build(name: str, shape: Sequence[int], outputs: int, **options: Any) -> Network:
    """The network of this name for inputs of `shape`; its weights come from torch's generator, seeded by the caller."""
    if name not in BUILDERS:
        raise UsageError(f"no network is called {name!r}{_nearest(name, BUILDERS)}")
    module, function = BUILDERS[name]
    builder: Callable[..., Network] = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    known = [option for option in inspect.signature(builder).parameters if option not in ("shape", "outputs")]
    for option in options:
        if option not in known:
            raise UsageError(f"network {name!r} has no option {option!r}{_nearest(option, known)}")
    _check_size(name, lambda: builder(tuple(shape), outputs, **options))
    return builder(tuple(shape), outputs, **options)


def _check_size(name: str, build: Callable[[], Network]) -> None:
    """Refuse a network that memory can't hold with its gradients; on the meta device it takes none."""
    import torch

    try:
        with torch.device("meta"):
            size = sum(p.numel() * p.element_size() for p in build().parameters())
    except (RuntimeError, OverflowError) as error:
        raise UsageError(f"network {name!r} is too large for any machine; make its layers smaller") from error
    if 2 * size > (memory := available_memory()):
        raise UsageError(
            f"network {name!r} has weights of {size:,} bytes, and as many for gradients; {memory:,} bytes of memory "
            "are free. Make its layers smaller"
        )


def auto_name(shape: Sequence[int]) -> str:
    """The network that suits inputs of this shape: vectors, images, one-channel signals."""
    if len(shape) <= 2 and shape and shape[-1] >= LONG_SIGNAL and (len(shape) == 1 or shape[0] == 1):
        return "audio"
    sides = shape[-2:]
    return "cnn" if len(shape) in (2, 3) and min(sides) >= SMALL_SIDE else "mlp"


def has_batch_statistics(module: nn.Module) -> bool:
    """Whether a layer normalises by the statistics of a batch, so that samples in it influence each other."""
    from torch.nn.modules.batchnorm import _BatchNorm

    return any(isinstance(layer, _BatchNorm) for layer in module.modules())


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """The module in eval mode, and afterwards in the mode that it had."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)


def _nearest(name: str, known: Sequence[str] | dict[str, Any]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"{hint} There are: {', '.join(names) or 'none'}"


def features_of(model: nn.Module) -> Callable[..., Any] | None:
    """What gives a network's last layer its inputs, where the network says so by a method `features`."""
    found = getattr(model, "features", None)
    return found if callable(found) else None
