"""Arrays of an .npz file from anywhere: what it claims to hold is weighed before memory is given to it.

A small file can claim to hold a lot: zeros are compressed a thousandfold, and an array's header can say anything. So a
compressed file may hold at most EXPANDS times its own size (or SMALL, if that is more), each array what its header
says, and all of them what this machine has memory for.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from pdcl.given import available_memory
from pdcl.streams.checks import BadData

EXPANDS = 100
SMALL = 2**30
# Entries of one file: arrays of an audit set are its columns.
MOST = 1000
UNREADABLE = (
    OSError, ValueError, EOFError, RuntimeError, NotImplementedError, MemoryError, RecursionError, SyntaxError,
    OverflowError, TypeError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def read_npz(source: Path | bytes, what: str) -> dict[str, npt.NDArray[Any]]:
    """All arrays of the file by name. what: how errors call it. FileNotFoundError where there is none."""
    if isinstance(source, Path) and source.exists() and not source.is_file():
        raise BadData(f"{what} is no ordinary file; arrays are read from an .npz file")
    try:
        with zipfile.ZipFile(BytesIO(source) if isinstance(source, bytes) else source) as held:
            size = len(source) if isinstance(source, bytes) else source.stat().st_size
            entries = _checked_sizes(held.infolist(), size, what)
            return {
                name: _array(partial(held.open, entry), entry.file_size, f"{what}: {entry.filename!r}")
                for name, entry in entries.items()
            }
    except (FileNotFoundError, BadData):
        raise
    except UNREADABLE as error:
        raise BadData(f"{what} can't be read as arrays (.npz): {reason_of(error)}") from error


def reason_of(error: BaseException) -> str:
    """The first line of an error that isn't ours."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _checked_sizes(entries: list[zipfile.ZipInfo], size: int, what: str) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    if len(entries) > MOST:
        raise BadData(f"{what} holds {len(entries):,} files; arrays of samples are at most {MOST:,}")
    for entry in entries:
        name = entry.filename.removesuffix(".npy")
        if name == entry.filename:
            raise BadData(f"{what} holds {name!r}, which is no array; write the file by np.savez")
        if name in found:
            raise BadData(f"{what} holds two arrays called {name!r}; write the file by np.savez")
        found[name] = entry
    total = sum(entry.file_size for entry in entries)
    if total > max(SMALL, EXPANDS * size):
        raise BadData(
            f"{what} has {size:,} bytes and would unpack to {total:,}, more than {EXPANDS} times as many; if that is "
            "right, store it uncompressed: np.savez"
        )
    if total > (memory := available_memory()):
        raise BadData(f"{what} would unpack to {total:,} bytes, and {memory:,} bytes of memory are free; divide it")
    return found


def read_npy(content: bytes, what: str) -> npt.NDArray[Any]:
    """The one array of an .npy file."""
    try:
        return _array(lambda: BytesIO(content), len(content), what)
    except BadData:
        raise
    except UNREADABLE as error:
        raise BadData(f"{what} can't be read as an array (.npy): {reason_of(error)}") from error


def _array(opened: Callable[[], IO[bytes]], size: int, what: str) -> npt.NDArray[Any]:
    """One array. Its header is read first: memory for what it says is taken before the numbers come."""
    with opened() as file:
        shape, dtype, length = _header(file)
        wanted = math.prod(shape) * dtype.itemsize
        if dtype.hasobject:
            raise BadData(f"{what} holds Python objects, which are never unpickled; store numbers or texts")
        if wanted != size - length:
            raise BadData(
                f"{what} says that it has shape {shape}, {wanted:,} bytes, and there are {size - length:,}; "
                "write the file anew by np.savez"
            )
    with opened() as file:
        array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if any(size < 0 for size in shape):
        raise ValueError(f"a shape of {shape}")
    return shape, dtype, file.tell()
