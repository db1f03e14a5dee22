"""Samples behind one door: a task's data is fetched by index, whatever holds it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from pdcl.streams.columns import CodedColumn, Columns, subset_of


class Data(ABC):
    """A fixed, finite set of samples. `targets` are encoded.

    (n,) class indices for classification; (n, outputs) floats for regression and multi-label data.
    `groups` are (n,) integers: samples of one group (a patient, a speaker) stay on one side of every split.
    `columns` are further facts about each sample by name (a plan, a region), for limits and reports by segment.
    """

    targets: Tensor
    groups: Tensor | None = None

    @property
    def columns(self) -> dict[str, CodedColumn]:
        return {}

    @abstractmethod
    def fetch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Raw inputs and encoded targets of these positions, in this order."""

    def __len__(self) -> int:
        return len(self.targets)

    @abstractmethod
    def subset(self, index: Tensor) -> Data:
        """The samples at these positions, as a view where possible."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} samples)"

    def __deepcopy__(self, memo: object) -> Data:
        """Itself: samples are only ever read."""
        return self


class TensorData(Data):
    """Rows of tensors held in memory or memory-mapped; subsets share storage."""

    def __init__(
        self,
        x: Tensor,
        targets: Tensor,
        rows: Tensor | None = None,
        groups: Tensor | None = None,
        columns: Columns | None = None,
    ) -> None:
        self.x = x
        self.rows = rows
        self._all_targets = targets
        self._all_groups = groups
        self._all_columns = columns or {}
        self.targets = targets if rows is None else targets[rows]
        self.groups = groups if rows is None or groups is None else groups[rows]

    @property
    def columns(self) -> dict[str, CodedColumn]:
        return dict(self._all_columns) if self.rows is None else subset_of(self._all_columns, self.rows)

    def fetch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        # For small batches `index_select` takes half the time of indexing with brackets.
        rows = index if self.rows is None else self.rows.index_select(0, index)
        return self.x.index_select(0, rows), self.targets.index_select(0, index)

    def subset(self, index: Tensor) -> TensorData:
        return self.with_rows(index if self.rows is None else self.rows[index])

    def with_rows(self, rows: Tensor) -> TensorData:
        """The samples at these rows of the whole tensor."""
        return TensorData(self.x, self._all_targets, rows, self._all_groups, self._all_columns)

    def shares_rows(self, other: Data) -> bool:
        """Whether both are chosen rows of the very same tensors."""
        if not isinstance(other, TensorData) or self.rows is None or other.rows is None:
            return False
        return self.x is other.x and self._all_targets is other._all_targets


class DatasetData(Data):
    """A `torch.utils.data.Dataset` of (input, target) pairs, read sample by sample when it is asked for.

    Only `targets` (found beforehand) are held, so the data may be larger than memory. `workers` threads read
    one batch together, which pays where reading waits for a disk or releases the interpreter to decode.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        targets: Tensor,
        rows: Tensor | None = None,
        groups: Tensor | None = None,
        workers: int = 0,
        columns: Columns | None = None,
    ) -> None:
        self.dataset = dataset
        self.rows = torch.arange(len(targets)) if rows is None else rows
        self.workers = workers
        self.targets = targets
        self.groups = groups
        self._columns = dict(columns or {})

    @property
    def columns(self) -> dict[str, CodedColumn]:
        return dict(self._columns)

    def fetch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        rows: list[int] = self.rows[index].tolist()
        inputs = default_collate(self._read(rows))
        return inputs.float() if inputs.dtype == torch.float64 else inputs, self.targets[index]

    def _read(self, rows: list[int]) -> list[Any]:
        if self.workers > 1 and len(rows) > 1:
            with ThreadPoolExecutor(self.workers) as pool:
                return list(pool.map(self._input, rows))
        return [self._input(row) for row in rows]

    def _input(self, row: int) -> Any:
        return self.dataset[row][0]

    def subset(self, index: Tensor) -> DatasetData:
        groups = None if self.groups is None else self.groups[index]
        columns = subset_of(self._columns, index)
        return DatasetData(self.dataset, self.targets[index], self.rows[index], groups, self.workers, columns)


def everything(data: Data) -> Tensor:
    """All positions of `data`, in order."""
    return torch.arange(len(data))
