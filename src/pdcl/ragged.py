"""Sequences of unequal length, kept end to end: their values, and how many belong to each.

>>> words = Ragged.of([[3, 1, 4], [1], [5, 9]])
>>> words[torch.tensor([2, 0])].padded()
tensor([[5, 9, 0],
        [3, 1, 4]])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdcl.errors import UsageError


@dataclass(frozen=True, eq=False)
class Ragged:
    """n sequences: `values` are all entries in a row, Σ lengths × …; `lengths` (n,) says how many are of each."""

    values: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, rows: Sequence[Any]) -> Ragged:
        """Sequences as tensors, arrays or lists, whose entries are of one shape and dtype; float64 becomes float32."""
        try:
            parts = [row.detach() if isinstance(row, Tensor) else torch.as_tensor(np.asarray(row)) for row in rows]
        except (TypeError, ValueError) as error:
            raise UsageError(f"{type(rows).__name__} can't be read as sequences of numbers: {error}") from error
        _check_alike(parts)
        values = torch.cat([part for part in parts if len(part)] or parts[:1])
        lengths = torch.tensor([len(part) for part in parts], dtype=torch.int64, device=values.device)
        return cls(values.float() if values.dtype == torch.float64 else values, lengths)

    @classmethod
    def of_rows(cls, rows: Tensor) -> Ragged:
        """The rows of a tensor n × length × … as sequences that happen to be of equal length."""
        lengths = torch.full((len(rows),), rows.shape[1], dtype=torch.int64, device=rows.device)
        return cls(rows.flatten(0, 1), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.values.split(self.lengths.tolist()))

    def __getitem__(self, index: Tensor | slice) -> Ragged:
        return self.index_select(0, _positions(index, len(self)))

    def index_select(self, dim: int, index: Tensor) -> Ragged:
        """These sequences, in this order; called as a tensor's is, so `dim` is 0."""
        assert dim == 0
        index = index.to(self.lengths.device)
        starts, lengths = (self.lengths.cumsum(0) - self.lengths)[index], self.lengths[index]
        return Ragged(self.values.index_select(0, entries(starts, lengths)), lengths)

    def padded(self, fill: float = 0, width: int = 1) -> Tensor:
        """n × longest × …, shorter sequences filled up behind; at least `width` long."""
        longest = max(width, int(self.lengths.max()) if len(self) else 0)
        there = torch.arange(longest, device=self.lengths.device) < self.lengths[:, None]
        full = self.values.new_full((len(self), longest, *self.values.shape[1:]), fill)
        full[there] = self.values
        return full

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        return self.values.device

    def to(self, device: torch.device | str) -> Ragged:
        return Ragged(self.values.to(device), self.lengths.to(device))

    def cpu(self) -> Ragged:
        return self.to("cpu")


def entries(starts: Tensor, lengths: Tensor) -> Tensor:
    """Positions starts_i, …, starts_i + lengths_i − 1 of every sequence i, in a row.

    >>> entries(torch.tensor([7, 2]), torch.tensor([2, 3])).tolist()
    [7, 8, 2, 3, 4]
    """
    before = lengths.cumsum(0) - lengths
    return torch.repeat_interleave(starts - before, lengths) + torch.arange(int(lengths.sum()), device=lengths.device)


def is_ragged(rows: Any) -> bool:
    """Whether this is a list of sequences that aren't all of one length."""
    if not isinstance(rows, list) or not all(hasattr(row, "__len__") and not isinstance(row, str) for row in rows):
        return False
    return len({len(row) for row in rows if getattr(row, "ndim", 1)}) > 1


def _positions(index: Tensor | slice, count: int) -> Tensor:
    if isinstance(index, slice):
        return torch.arange(count)[index]
    return index.nonzero().flatten() if index.dtype == torch.bool else index


def _check_alike(parts: Sequence[Tensor]) -> None:
    """Empty lists have no dtype of their own, so they don't count."""
    if not parts:
        raise UsageError("there is no sequence to read; give at least one")
    kinds = {(tuple(part.shape[1:]), part.dtype) for part in parts if part.dim() and len(part)}
    if len(kinds) > 1 or any(part.dim() == 0 for part in parts):
        shown = ", ".join(sorted(f"{shape} {dtype}" for shape, dtype in kinds)) or "numbers"
        raise UsageError(f"entries of sequences must be of one shape and dtype, not {shown}; convert them first")
