"""A task's samples, fetched by index: from tensors, memory maps or a user's Dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from pdcl.errors import UsageError
from pdcl.ragged import Ragged
from pdcl.streams.columns import CodedColumn, Columns, subset_of
from pdcl.streams.gathering import gathered, returning_memory
from pdcl.streams.mapped import MappedRows
from pdcl.streams.readers import Readers
from pdcl.trees import LeafSpec, Tree, conformed, flatten, leaf_specs, map_leaves, take, unflatten

Collate = Callable[[list[Any]], Tree]


class Data(ABC):
    """A fixed, finite set of samples. Inputs are a tensor or a tree of them; `targets` are encoded.

    (n,) class indices for classification; (n, outputs) floats for regression and multi-label data; (n, …) or ragged
    class indices for tokens.
    `groups` are (n,) integers: samples of one group (a patient, a speaker) stay on one side of every split.
    `columns` are further facts about each sample by name (a plan, a region), for limits and reports by segment.
    """

    targets: Tensor
    groups: Tensor | None = None
    # Whether reading may wait for a disk or a decoder, so that it pays to read ahead.
    slow: bool = False
    # Whether all inputs lie in memory, so that one more pass over them costs little.
    in_memory: bool = True
    # Of data that is read from its start: the block that each sample is shuffled within. None: any order is as good.
    blocks: Tensor | None = None

    @property
    def columns(self) -> dict[str, CodedColumn]:
        return {}

    @abstractmethod
    def fetch(self, index: Tensor) -> tuple[Tree, Tensor]:
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
    """Rows of tensors, or of a tree of them, held in memory or memory-mapped; subsets share storage.

    mapped: those that lie in files; they are converted to what networks compute in when they are read.
    """

    def __init__(
        self,
        x: Tree,
        targets: Tensor,
        rows: Tensor | None = None,
        groups: Tensor | None = None,
        columns: Columns | None = None,
        mapped: Sequence[MappedRows] = (),
    ) -> None:
        self.x = x
        self.rows = rows
        self.mapped = mapped
        self.slow = bool(mapped)
        self.in_memory = not mapped
        self._all_targets = targets
        self._all_groups = groups
        self._all_columns = columns or {}
        self.targets = targets if rows is None else targets[rows]
        self.groups = groups if rows is None or groups is None else groups[rows]

    @property
    def columns(self) -> dict[str, CodedColumn]:
        return dict(self._all_columns) if self.rows is None else subset_of(self._all_columns, self.rows)

    def fetch(self, index: Tensor) -> tuple[Tree, Tensor]:
        rows = index if self.rows is None else self.rows.index_select(0, index)
        for each in self.mapped:
            each.announce(rows)
        x = map_leaves(lambda leaf: gathered(leaf, rows), self.x) if self.mapped else take(self.x, rows)
        return x, self.targets.index_select(0, index)

    def subset(self, index: Tensor) -> TensorData:
        return self.with_rows(index if self.rows is None else self.rows[index])

    def with_rows(self, rows: Tensor) -> TensorData:
        """The samples at these rows of the whole tensor."""
        return TensorData(self.x, self._all_targets, rows, self._all_groups, self._all_columns, self.mapped)

    def shares_rows(self, other: Data) -> bool:
        """Whether both are chosen rows of the very same tensors."""
        if not isinstance(other, TensorData) or self.rows is None or other.rows is None:
            return False
        return self.x is other.x and self._all_targets is other._all_targets


@runtime_checkable
class ReadsBatches(Protocol):
    """A Dataset that reads the inputs of many rows at once."""

    def read_batch(self, rows: list[int]) -> Tree: ...


@runtime_checkable
class InBlocks(Protocol):
    """A Dataset that is read from its start: the block of each sample, shuffled within itself alone."""

    @property
    def blocks(self) -> Tensor: ...


class DatasetData(Data):
    """A `torch.utils.data.Dataset` of (input, target) pairs, read sample by sample when it is asked for.

    Only `targets` (found beforehand) are held, so the data may be larger than memory. `workers` threads read
    one batch together and the next ones ahead, which pays where reading waits for a disk or releases the interpreter to
    decode. A Dataset with `__getitems__` is asked for a whole batch of samples at once, one with `read_batch` for a
    batch that is a tree of tensors already. `collate` makes a batch of a list of
    inputs; without it they are stacked, sequences of unequal length put end to end. `leaves` is what inputs must be,
    where that is known.
    """

    in_memory = False

    def __init__(
        self,
        dataset: Dataset[Any],
        targets: Tensor,
        rows: Tensor | None = None,
        groups: Tensor | None = None,
        workers: int = 0,
        columns: Columns | None = None,
        collate: Collate | None = None,
        leaves: Sequence[LeafSpec] | None = None,
        readers: Readers | None = None,
    ) -> None:
        self.dataset = dataset
        self.readers = readers or Readers(workers)
        self.by_batch: Callable[[list[int]], Tree] | None = (
            dataset.read_batch if isinstance(dataset, ReadsBatches) else None
        )
        self.collate = collate
        self.leaves = leaves
        self.rows = torch.arange(len(targets)) if rows is None else rows
        blocks = dataset.blocks if isinstance(dataset, InBlocks) else None
        self.blocks = None if blocks is None else blocks[self.rows]
        self.slow = workers > 0 or self.by_batch is not None or blocks is not None
        self.workers = workers
        self.targets = targets
        self.groups = groups
        self._columns = dict(columns or {})

    @property
    def columns(self) -> dict[str, CodedColumn]:
        return dict(self._columns)

    def fetch(self, index: Tensor) -> tuple[Tree, Tensor]:
        rows: list[int] = self.rows[index].tolist()
        return self._checked(map_leaves(_single, self._read(rows))), self.targets[index]

    def _checked(self, inputs: Tree) -> Tree:
        """Every batch must be of the shapes of the first: one that pads to its own longest can't be stored."""
        if self.leaves is None:
            return inputs
        inputs = conformed(inputs, self.leaves)
        if leaf_specs(inputs) != tuple(self.leaves):
            now, first = (", ".join(map(str, leaves)) for leaves in (leaf_specs(inputs), self.leaves))
            hint = "give collate= a function that pads to one length or returns pdcl.Ragged.of(sequences)"
            raise UsageError(f"the Dataset's inputs are {now}; the first were {first}; {hint}")
        return inputs

    def _read(self, rows: list[int]) -> Tree:
        if self.by_batch is not None:
            return self.by_batch(rows)
        make = self.collate or stacked
        if callable(at_once := getattr(self.dataset, "__getitems__", None)):
            return make([sample[0] for sample in at_once(rows)])
        return make(self.readers.map(self._input, rows))

    def _input(self, row: int) -> Any:
        return self.dataset[row][0]

    def subset(self, index: Tensor) -> DatasetData:
        groups = None if self.groups is None else self.groups[index]
        columns = subset_of(self._columns, index)
        parts = (self.targets[index], self.rows[index], groups, self.workers, columns, self.collate, self.leaves)
        return DatasetData(self.dataset, *parts, self.readers)


def stacked(items: list[Any]) -> Tree:
    """Inputs of single samples as one tree: leaves of one shape stacked, sequences of unequal length end to end."""
    if not isinstance(items[0], tuple | dict):
        return column_of(items)
    each = [flatten(item) for item in items]
    return unflatten({name: column_of([item[name] for item in each]) for name in each[0]})


def column_of(leaves: list[Any]) -> Tree:
    """One leaf of single samples: stacked, or end to end."""
    if isinstance(leaves[0], list):
        leaves = [np.asarray(leaf) for leaf in leaves]
    shapes = {tuple(getattr(leaf, "shape", ())) for leaf in leaves}
    unequal = len(shapes) > 1 and all(shapes) and len({shape[1:] for shape in shapes}) == 1
    first, alike = leaves[0], len(shapes) == 1 and all(isinstance(leaf, Tensor) for leaf in leaves)
    if alike and first.device.type == "cpu" and len({leaf.dtype for leaf in leaves}) == 1:
        return torch.stack(leaves, out=returning_memory((len(leaves), *first.shape), first.dtype))
    return Ragged.of(leaves) if unequal else default_collate(leaves)


def _single(leaf: Any) -> Any:
    return leaf.float() if leaf.dtype == torch.float64 else leaf


def shaped(data: Data, leaves: Sequence[LeafSpec]) -> Data:
    """The data held to `leaves`: sequences that happen to be of one length are ragged where it says so."""
    if isinstance(data, TensorData):
        x = conformed(data.x, leaves)
        own = (data._all_targets, data.rows, data._all_groups, data._all_columns, data.mapped)
        return data if x is data.x else TensorData(x, *own)
    if isinstance(data, DatasetData):
        parts = (data.dataset, data.targets, data.rows, data.groups, data.workers, data.columns, data.collate)
        return DatasetData(*parts, leaves, data.readers)
    return data


def everything(data: Data) -> Tensor:
    """All positions of `data`, in order."""
    return torch.arange(len(data))
