"""Rows gathered from arrays in files, in memory that goes back to the system with the last tensor that looks at it.

The C library would keep it: having freed one block of some megabytes, it takes the next ones from heaps of its own, one
per thread, where a block that is in use keeps all that lies below it. Batches that one thread makes and another one
frees left 100 to 200 MB behind that way, and a small result kept of every piece as much as all pieces together (up to
600 MB), where 25 MB were in use.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdcl.ragged import Ragged
from pdcl.trees import joined

# Networks compute in float32, and torch indexes none of the unsigned types but bytes.
READ_AS = {
    torch.float64: torch.float32,
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.bool: torch.float32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
}
# Below this the C library keeps nothing that counts; it is also what is converted at a time.
STRIP_BYTES = 2**18
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}


def gathered(leaf: Any, rows: Tensor) -> Any:
    """These rows, in a dtype that networks compute in."""
    if isinstance(leaf, Ragged):
        return leaf.index_select(0, rows)
    dtype = READ_AS.get(leaf.dtype, leaf.dtype)
    found = returning_memory((len(rows), *leaf.shape[1:]), dtype)
    if dtype == leaf.dtype:
        return torch.index_select(leaf, 0, rows, out=found)
    each = leaf.element_size() * int(torch.Size(leaf.shape[1:]).numel())
    at_once = max(1, STRIP_BYTES // max(1, each))
    for part, here in zip(found.split(at_once), rows.split(at_once), strict=True):
        part.copy_(leaf.index_select(0, here))
    return found


def returning_memory(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """A tensor of whatever is there. A large one has pages of its own, which the system gets back when it dies."""
    size = int(torch.Size(shape).numel()) * dtype.itemsize
    if size < STRIP_BYTES:
        return torch.empty(shape, dtype=dtype)
    pages = np.frombuffer(mmap.mmap(-1, size, **PRIVATE), np.uint8)
    return torch.from_numpy(pages).view(dtype).view(shape)


def collected(parts: Iterable[Tensor], count: int) -> Tensor:
    """`joined`, of parts that are made one after another and hold `count` rows in all; none of them is kept.

    >>> collected((torch.full((2, 1), float(number)) for number in range(2)), 4).flatten().tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    made = iter(parts)
    first = next(made)
    found, at = returning_memory((count, *first.shape[1:]), first.dtype), len(first)
    found[:at] = first
    for part in made:
        if part.shape[1:] != found.shape[1:]:
            return joined([found[:at], part, *made])
        found[at : at + len(part)] = part
        at += len(part)
    return found
