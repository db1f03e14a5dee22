"""Where numbers live and how precise they are: the one place that knows of devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import nn

from pdcl.errors import UsageError

SMALL = 2_000_000
_PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


def device_of(name: str) -> torch.device:
    """`auto` is the first of cuda, mps, cpu that is there."""
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def check_placement(device: str, precision: str) -> None:
    """Raise UsageError for a device that isn't here, or an unknown precision."""
    try:
        kind = "cpu" if device == "auto" else torch.device(device).type
    except RuntimeError:
        raise UsageError(f"device={device!r} is unknown; choose auto, cpu, cuda, cuda:1 or mps") from None
    here = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not here.get(kind, kind == "meta"):
        found = ", ".join(name for name in here if here[name])
        raise UsageError(f"device={device!r} isn't on this machine; choose auto or one of {found}")
    if precision not in _PRECISIONS:
        raise UsageError(f"precision={precision!r} is unknown; choose one of {', '.join(_PRECISIONS)}")


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """The context of a forward pass at this precision."""
    if precision not in _PRECISIONS:
        raise UsageError(f"precision={precision!r} is unknown; choose one of {', '.join(_PRECISIONS)}")
    dtype = _PRECISIONS[precision]
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype)


def threads_for(model: nn.Module) -> int:
    """One thread for small networks, where handing work to others takes longer than doing it; else what torch has."""
    small = sum(parameter.numel() for parameter in model.parameters()) < SMALL
    return 1 if small else torch.get_num_threads()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute with so many threads, and give torch back its own number after."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
