"""Where numbers live and how precise they are: the one place that knows of devices."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from pdcl.errors import UsageError

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


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """The context of a forward pass at this precision."""
    if precision not in _PRECISIONS:
        raise UsageError(f"precision={precision!r} is unknown; choose one of {', '.join(_PRECISIONS)}")
    dtype = _PRECISIONS[precision]
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype)
