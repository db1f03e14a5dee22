"""Where numbers live and how precise they are: threads, memory and devices."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch
from torch import nn

from pdcl.errors import UsageError

SMALL = 2_000_000
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


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
    if not isinstance(device, str):
        raise UsageError(f"device={device!r} is unknown; choose auto, cpu, cuda, cuda:1 or mps")
    try:
        kind = "cpu" if device == "auto" else torch.device(device).type
    except RuntimeError:
        raise UsageError(f"device={device!r} is unknown; choose auto, cpu, cuda, cuda:1 or mps") from None
    here = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not here.get(kind, kind == "meta"):
        found = ", ".join(name for name in here if here[name])
        raise UsageError(f"device={device!r} isn't on this machine; choose auto or one of {found}")
    if precision not in PRECISIONS:
        raise UsageError(f"precision={precision!r} is unknown; choose one of {', '.join(PRECISIONS)}")


def threads_for(model: nn.Module) -> int:
    """One thread for small networks, where handing work to others takes longer than doing it; else what torch has."""
    small = sum(parameter.numel() for parameter in model.parameters()) < SMALL
    return 1 if small else torch.get_num_threads()


@contextmanager
def computing(model: nn.Module) -> Iterator[None]:
    """Compute with as many threads as suit the network, and with numbers below 1e-38 taken for 0; then as before.

    Moments of an optimiser decay into such numbers wherever no gradient comes any more, and a CPU takes many times as
    long for each of them: a quarter of the time of small networks with Adam.
    """
    count, flushed = torch.get_num_threads(), _flushes()
    torch.set_num_threads(threads_for(model))
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(count)
        torch.set_flush_denormal(flushed)


def _flushes() -> bool:
    """Whether this thread takes numbers below 1e-38 for 0."""
    return not float(torch.full((), 1e-40, dtype=torch.float32) * 1)


# Of glibc's malloc.h: what mallopt sets, and to how many bytes here.
KEPT_FREE = {"M_TRIM_THRESHOLD": (-1, 2**28), "M_TOP_PAD": (-2, 2**26), "M_MMAP_THRESHOLD": (-3, 2**25)}


def keep_freed_memory() -> None:
    """Let this process use freed memory again, up to 256 MB of it, and not ask the system for new pages at each step.

    By itself the C library gives every large tensor back when it dies. Runs of small convolutional networks spent a
    fifth of their time on that. For processes that do nothing but runs; only glibc has it, others go on as they are.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            for option, size in KEPT_FREE.values():
                ctypes.CDLL("libc.so.6").mallopt(option, size)
