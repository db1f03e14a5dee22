"""Samples behind one door: a task's data is fetched by index, whatever holds it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class Data(ABC):
    """A fixed, finite set of samples. `targets` are encoded (class indices, or the regression targets)."""

    targets: Tensor
    groups: Tensor | None = None

    @abstractmethod
    def fetch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Raw inputs and encoded targets of these positions, in this order."""

    def __len__(self) -> int:
        return len(self.targets)

    @abstractmethod
    def subset(self, index: Tensor) -> Data:
        """The samples at these positions, as a view where possible."""


class TensorData(Data):
    """Rows of tensors held in memory or memory-mapped; subsets share storage."""

    def __init__(self, x: Tensor, targets: Tensor, rows: Tensor | None = None, groups: Tensor | None = None) -> None:
        self.x = x
        self.rows = rows
        self._all_targets = targets
        self._all_groups = groups
        self.targets = targets if rows is None else targets[rows]
        self.groups = groups if rows is None or groups is None else groups[rows]

    def fetch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        rows = index if self.rows is None else self.rows[index]
        return self.x[rows], self.targets[index]

    def subset(self, index: Tensor) -> TensorData:
        rows = index if self.rows is None else self.rows[index]
        return TensorData(self.x, self._all_targets, rows, self._all_groups)


def everything(data: Data) -> Tensor:
    """All positions of `data`, in order."""
    return torch.arange(len(data))
