"""Samples of other data under changes that are made when they are fetched; no copy of the inputs is held."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from pdcl.streams.columns import CodedColumn, Columns, subset_of
from pdcl.streams.data import Data
from pdcl.trees import Tree

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
