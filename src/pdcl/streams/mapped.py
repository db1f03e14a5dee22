"""Arrays in files, larger than memory: the system is told which rows will be read, and to read nothing else.

Left to itself it reads megabytes around every row, since it takes the first access for the start of a pass: shuffled
reading of 12 KB rows from a file of 20 GB read more than 100 times as much as was asked for.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from pdcl.streams.gathering import gathered

CAN_ADVISE = hasattr(mmap, "MADV_RANDOM") and hasattr(mmap, "MADV_WILLNEED")


class MappedRows:
    """The rows of one memory-mapped array."""

    def __init__(self, array: np.memmap[Any, Any]) -> None:
        self.file: Any = array._mmap  # type: ignore[attr-defined]
        self.row_bytes = int(array.nbytes // max(1, len(array)))
        start = np.frombuffer(self.file, np.uint8).__array_interface__["data"][0]
        self.offset = int(array.__array_interface__["data"][0]) - int(start)
        if CAN_ADVISE:
            self.file.madvise(mmap.MADV_RANDOM)

    def announce(self, rows: Tensor) -> None:
        """Let the system begin to read these rows, all at once."""
        if not CAN_ADVISE:
            return
        for first, last in _runs(rows.numpy()):
            begin = self.offset + first * self.row_bytes
            end = self.offset + (last + 1) * self.row_bytes
            begin -= begin % mmap.PAGESIZE
            self.file.madvise(mmap.MADV_WILLNEED, begin, min(end, len(self.file)) - begin)


def _runs(rows: Any) -> list[tuple[int, int]]:
    """Rows as runs of neighbours, (first, last).

    >>> _runs(np.array([7, 3, 4, 5, 9]))
    [(3, 5), (7, 7), (9, 9)]
    """
    ordered = np.unique(rows)
    breaks = np.flatnonzero(np.diff(ordered) > 1) + 1
    return [(int(run[0]), int(run[-1])) for run in np.split(ordered, breaks) if len(run)]


def mapped_rows(x: Any) -> tuple[MappedRows, ...]:
    """Of an array in a file, or a tree with some; () where all of `x` is in memory, or would have to be copied."""
    if isinstance(x, Mapping | tuple):
        parts = x.values() if isinstance(x, Mapping) else x
        return tuple(found for part in parts for found in mapped_rows(part))
    in_place = isinstance(x, np.memmap) and x.flags.c_contiguous and x.ndim > 0
    return (MappedRows(x),) if in_place and getattr(x, "_mmap", None) is not None else ()


class PartOfFile(Dataset[Any]):
    """Some rows of an array in a file, read when they are asked for; none is held."""

    def __init__(self, inputs: Tensor, mapped: Sequence[MappedRows], rows: Tensor) -> None:
        self.inputs, self.mapped, self.rows = inputs, mapped, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Any:
        return (self.read_batch([row])[0],)

    def read_batch(self, rows: list[int]) -> Tensor:
        """The inputs of these rows, in a dtype that networks compute in."""
        here = self.rows[torch.tensor(rows, dtype=torch.int64)]
        for each in self.mapped:
            each.announce(here)
        found: Tensor = gathered(self.inputs, here)
        return found
