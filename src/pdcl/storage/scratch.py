"""Room on disk for what doesn't fit into RAM: a file without a name, gone with the process however that ends.

Nothing in it is ever read by another process: what has to last is in checkpoints and saved models.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdcl.errors import StateError
from pdcl.storage.disk import reason


def scratch_directory() -> Path:
    """$TMPDIR; without it /var/tmp, since /tmp is often held in RAM."""
    usual = Path("/var/tmp")
    if "TMPDIR" not in os.environ and os.access(usual, os.W_OK):
        return usual
    return Path(tempfile.gettempdir())


class Scratch:
    """Rows of one shape and dtype in a file that only grows. What was mapped before stays valid and shares its rows."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self.row_bytes = int(torch.Size(shape).numel()) * dtype.itemsize
        self.place = scratch_directory()
        try:
            self._file = tempfile.TemporaryFile(dir=self.place)  # noqa: SIM115
        except OSError as error:
            raise self._refused(0, error) from error
        # What is mapped keeps the file itself.
        weakref.finalize(self, self._file.close)

    def mapped(self, rows: int) -> tuple[Tensor, Any]:
        """The first `rows` rows, rows × shape, new ones zero; and the same as an array of bytes, rows × row_bytes."""
        size = rows * self.row_bytes
        try:
            # Room is reserved here: a disk that is full later would end the process at some write to the map.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file.fileno(), 0, size)
            elif os.fstat(self._file.fileno()).st_size < size:
                self._file.truncate(size)
            flat = np.memmap(self._file, np.uint8, "r+", shape=(rows, self.row_bytes))
        except OSError as error:
            raise self._refused(size, error) from error
        return torch.from_numpy(flat).flatten().view(self.dtype).view(rows, *self.shape), flat

    def _refused(self, size: int, error: OSError) -> StateError:
        way = "set TMPDIR to a directory with room, or give a smaller memory"
        return StateError(f"{self.place} has no room for {size} bytes of scratch: {reason(error)}; {way}", self.place)


def scratch_rows(rows: int, shape: tuple[int, ...], dtype: torch.dtype, beyond: int = 0) -> Tensor:
    """Zeros, rows × shape; on disk where they take more than so many bytes. The file goes with its last tensor."""
    if rows * int(torch.Size(shape).numel()) * dtype.itemsize <= beyond:
        return torch.zeros((rows, *shape), dtype=dtype)
    return Scratch(shape, dtype).mapped(rows)[0]
