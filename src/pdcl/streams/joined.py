"""Several parts as one data set, without a copy of their samples."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pdcl.streams.columns import CodedColumn
from pdcl.streams.data import Data, TensorData
from pdcl.trees import Tree, cat, take, to


class JoinedData(Data):
    """The samples of several parts in a row, or those of them at `rows`."""

    def __init__(self, parts: Sequence[Data], rows: Tensor | None = None) -> None:
        self.parts = list(parts)
        self.in_memory = all(part.in_memory for part in parts)
        self.slow = any(part.slow for part in parts)
        self.starts = torch.tensor([0, *(len(part) for part in parts)]).cumsum(0)
        self.rows = torch.arange(int(self.starts[-1])) if rows is None else rows
        self.targets = cat([part.targets for part in parts])[self.rows]
        groups = [part.groups for part in parts if part.groups is not None]
        self.groups = torch.cat(groups)[self.rows] if len(groups) == len(self.parts) else None

    @property
    def columns(self) -> dict[str, CodedColumn]:
        """Those that all parts have; the codes of a stream mean the same in all its parts."""
        held = [part.columns for part in self.parts]
        shared = [name for name in held[0] if all(name in columns for columns in held)]
        joined = {name: torch.cat([columns[name].codes for columns in held]) for name in shared}
        return {name: CodedColumn(codes[self.rows], held[0][name].names) for name, codes in joined.items()}

    def fetch(self, index: Tensor) -> tuple[Tree, Tensor]:
        rows = self.rows[index]
        part = torch.bucketize(rows, self.starts[1:], right=True)
        places, found = [], []
        for k in part.unique().tolist() or [0]:
            places.append((part == k).nonzero().flatten())
            found.append(to(self.parts[k].fetch(rows[places[-1]] - self.starts[k])[0], "cpu"))
        return take(cat(found), torch.cat(places).argsort()), self.targets[index]

    def subset(self, index: Tensor) -> JoinedData:
        return JoinedData(self.parts, self.rows[index])


def joined(parts: Sequence[Data]) -> Data:
    """The samples of all parts in a row; parts of one tensor become one view of it, which is faster to fetch from."""
    first = parts[0]
    if isinstance(first, TensorData) and all(first.shares_rows(part) for part in parts):
        rows = [part.rows for part in parts if isinstance(part, TensorData) and part.rows is not None]
        return first.with_rows(torch.cat(rows))
    return first if len(parts) == 1 else JoinedData(parts)
