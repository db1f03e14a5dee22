"""Samples of other data under changes that are made when they are fetched; no copy of the inputs is held."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pdcl.streams.columns import CodedColumn, Columns, subset_of
from pdcl.streams.data import Data, TensorData
from pdcl.trees import Tree, cat, take, to

Change = Callable[[Tensor], Tensor]


class ChangedData(Data):
    """The samples of `base` with `change` applied to each fetched batch (n, …), or with other targets or more columns.

    `change` treats every sample alone, so that a sample looks the same in any batch.
    """

    def __init__(
        self,
        base: Data,
        change: Change | None = None,
        targets: Tensor | None = None,
        columns: Columns | None = None,
    ) -> None:
        self.base = base
        self.in_memory = base.in_memory
        self.change = change
        self.targets = base.targets if targets is None else targets
        self.groups = base.groups
        self._more = dict(columns or {})

    @property
    def columns(self) -> dict[str, CodedColumn]:
        return {**self.base.columns, **self._more}

    def fetch(self, index: Tensor) -> tuple[Tree, Tensor]:
        x, _ = self.base.fetch(index)
        return x if self.change is None else self.change(x), self.targets[index]

    def subset(self, index: Tensor) -> ChangedData:
        return ChangedData(self.base.subset(index), self.change, self.targets[index], subset_of(self._more, index))


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
