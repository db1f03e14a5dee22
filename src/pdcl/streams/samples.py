"""A user's arrays, tensors and Datasets, read as columns: inputs, raw targets, groups, and whatever else is named."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset

from pdcl.given import short, whole_of
from pdcl.streams.arrow import is_arrow, named_columns
from pdcl.streams.checks import BadData
from pdcl.streams.column_reading import read_columns
from pdcl.streams.columns import Columns, Values, encoded
from pdcl.streams.data import Collate, Data, DatasetData, TensorData
from pdcl.streams.inputs import (
    Column,
    batch_of,
    column,
    inputs_of,
    is_tree,
    refuse_containers,
    targets_column,
    tree_of,
)
from pdcl.streams.mapped import MappedRows, mapped_rows
from pdcl.trees import Leaf, Tree, flatten

__all__ = [
    "Column",
    "Samples",
    "column",
    "inputs_of",
    "is_dataset",
    "known_targets",
    "read",
    "targets_column",
    "targets_of",
]


@dataclass(frozen=True)
class Samples:
    """Inputs with their raw targets, before anything is encoded or divided."""

    inputs: Tree | Dataset[Any]
    targets: Column
    groups: Column | None = None
    workers: int = 0
    columns: Values = field(default_factory=dict)
    collate: Collate | None = None
    mapped: tuple[MappedRows, ...] = ()

    def __len__(self) -> int:
        return len(self.targets)

    def data(self, targets: Tensor, groups: Tensor | None = None, columns: Columns | None = None) -> Data:
        """The same samples with encoded targets, groups and columns (None: encoded among themselves)."""
        coded: Columns = encoded(self.columns) if columns is None else columns
        if isinstance(self.inputs, Dataset):
            return DatasetData(
                self.inputs, targets, groups=groups, workers=self.workers, columns=coded, collate=self.collate
            )
        return TensorData(self.inputs, targets, groups=groups, columns=coded, mapped=self.mapped)


def read(
    x: Any,
    y: Any = None,
    groups: Any = None,
    workers: int = 0,
    where: str = "data",
    columns: Any = None,
    collate: Collate | None = None,
) -> Samples:
    """`x` and `y` as samples: arrays, tensors, sequences, dicts and tuples of them, or a Dataset in `x` alone.

    Of Hugging Face's Dataset `y` and `groups` may be names of columns.
    """
    refuse_containers(x, where)
    whole_of(workers, "workers", 0)
    if collate is not None and not callable(collate):
        raise BadData(f"collate={short(collate)} must be a function that makes a batch of samples")
    if isinstance(x, TensorDataset) and len(x.tensors) == 2 and y is None:
        x, y = x.tensors
    if is_arrow(x):
        samples = _read_arrow(x, y, groups, workers, where, collate)
    elif isinstance(x, Dataset):
        samples = _read_dataset(x, y, groups, workers, where, collate)
    elif collate is not None:
        raise BadData(f"{where}: collate has no effect on arrays and tensors; it makes batches of a Dataset's samples")
    else:
        if y is None:
            raise BadData(
                f"{where}: y is missing; it may be left out only where x is a Dataset of (input, target) pairs"
            )
        inputs = tree_of(x, where) if is_tree(x) else batch_of(x, where)
        samples = Samples(
            inputs, targets_column(y, f"{where}: y"), column(groups, f"{where}: groups"), mapped=mapped_rows(x)
        )
        for name, leaf in flatten(samples.inputs, "x").items():
            rows = _rows(leaf, f"{where}: {name}")
            if rows != len(samples):
                raise BadData(f"{where}: {name} has {rows} rows and y has {len(samples)}; they must be equally long")
    if samples.groups is not None and (samples.groups.ndim != 1 or not _hashable(samples.groups)):
        raise BadData(f"{where}: groups must be one name or number per sample, not shape {samples.groups.shape}")
    if samples.groups is not None and len(samples.groups) != len(samples):
        raise BadData(f"{where}: {len(samples.groups)} groups for {len(samples)} samples; give one group per sample")
    return replace(samples, columns=read_columns(columns, len(samples), where))


def _hashable(groups: Column) -> bool:
    return groups.dtype != object or all(isinstance(each, Hashable) for each in groups)


def _rows(leaf: Leaf, where: str) -> int:
    if isinstance(leaf, Tensor) and leaf.dim() == 0:
        raise BadData(f"{where} is a single number; give one row per sample")
    return len(leaf)


def _read_arrow(x: Any, y: Any, groups: Any, workers: int, where: str, collate: Collate | None) -> Samples:
    for name, given in (("collate", collate), ("workers", workers or None)):
        if given is not None:
            raise BadData(f"{where}: {name} has no effect on a Dataset of Hugging Face: whole columns are read at once")
    inputs, targets, owners = named_columns(x, y, groups, where)
    return Samples(inputs, targets, column(owners))


def is_dataset(x: Any) -> bool:
    """Whether x holds its own targets: torch's Dataset, or that of Hugging Face."""
    return isinstance(x, Dataset) or is_arrow(x)


def _read_dataset(
    dataset: Dataset[Any], y: Any, groups: Any, workers: int, where: str, collate: Collate | None
) -> Samples:
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise BadData(
            f"{where}: {type(dataset).__name__} can't be read by index; give pdcl.Iterated(dataset), or a Dataset with "
            "__getitem__ and __len__, or write it to a memory-mapped array first: np.lib.format.open_memmap(…)"
        )
    if y is None and len(dataset) and (not isinstance(first := dataset[0], tuple | list) or len(first) != 2):
        held = f"{len(first)} values" if isinstance(first, tuple | list) else type(first).__name__
        raise BadData(f"{where}: a sample of {type(dataset).__name__} is {held}; give pairs (input, target)")
    targets = targets_of(dataset) if y is None else targets_column(y)
    if len(targets) != len(dataset):
        raise BadData(f"{where}: the Dataset has {len(dataset)} samples and {len(targets)} targets")
    return Samples(dataset, targets, column(groups), workers, collate=collate)


def targets_of(dataset: Dataset[Any]) -> Column:
    """Every target of `dataset`: from what it knows of itself, otherwise in one pass over it."""
    known = known_targets(dataset)
    if known is not None and len(known) and np.array_equal(known[0], column(dataset[0][1])):
        return known
    found = (dataset[row][1] for row in range(len(dataset)))  # type: ignore[arg-type]
    return targets_column([_one(column(each)) for each in found])  # type: ignore[no-any-return]


def _one(target: Column | None) -> Any:
    """A single target as a plain value, which keeps its type beside those of other types."""
    return target.item() if target is not None and target.ndim == 0 else target


def known_targets(dataset: Any) -> Column | None:
    """The targets that `dataset` lists without reading samples, or None."""
    if isinstance(dataset, Subset):
        inner = known_targets(dataset.dataset)
        return None if inner is None else inner[np.asarray(dataset.indices)]
    if isinstance(dataset, ConcatDataset):
        return _joined([known_targets(part) for part in dataset.datasets])
    for attribute in ("targets", "labels"):
        values = getattr(dataset, attribute, None)
        if values is not None and not callable(values) and len(values) == len(dataset):
            return np.asarray(targets_column(values))
    return None


def _joined(parts: Sequence[Column | None]) -> Column | None:
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if len(found) == len(parts) else None
