"""A user's arrays, tensors and Datasets, read as columns: inputs, raw targets, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset

from pdcl.ragged import Ragged, is_ragged
from pdcl.streams.checks import BadData
from pdcl.streams.data import Collate, Data, DatasetData, TensorData
from pdcl.trees import Tree, check_names, flatten

Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Samples:
    """Inputs with their raw targets, before anything is encoded or divided."""

    inputs: Tree | Dataset[Any]
    targets: Column
    groups: Column | None = None
    workers: int = 0
    collate: Collate | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def data(self, targets: Tensor, groups: Tensor | None = None) -> Data:
        """The same samples with encoded targets and groups."""
        if isinstance(self.inputs, Dataset):
            return DatasetData(self.inputs, targets, groups=groups, workers=self.workers, collate=self.collate)
        return TensorData(self.inputs, targets, groups=groups)


def read(
    x: Any, y: Any = None, groups: Any = None, workers: int = 0, where: str = "data", collate: Collate | None = None
) -> Samples:
    """`x` and `y` as samples: arrays, tensors, sequences, dicts and tuples of them, or a Dataset in `x` alone."""
    if isinstance(x, TensorDataset) and len(x.tensors) == 2 and y is None:
        x, y = x.tensors
    if isinstance(x, Dataset):
        samples = _read_dataset(x, y, groups, workers, where, collate)
    elif collate is not None:
        raise BadData(f"{where}: collate has no effect on arrays and tensors; it makes batches of a Dataset's samples")
    else:
        if y is None:
            raise BadData(
                f"{where}: y is missing; it may be left out only where x is a Dataset of (input, target) pairs"
            )
        samples = Samples(tree_of(x), column(y), column(groups))
        for name, leaf in flatten(samples.inputs, "x").items():
            if len(leaf) != len(samples):
                raise BadData(
                    f"{where}: {name} has {len(leaf)} rows and y has {len(samples)}; they must be equally long"
                )
    if samples.groups is not None and len(samples.groups) != len(samples):
        raise BadData(f"{where}: {len(samples.groups)} groups for {len(samples)} samples; give one group per sample")
    return samples


def _read_dataset(
    dataset: Dataset[Any], y: Any, groups: Any, workers: int, where: str, collate: Collate | None
) -> Samples:
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise BadData(
            f"{where}: {type(dataset).__name__} can't be read by index; "
            "wrap it in a Dataset with __getitem__ and __len__"
        )
    targets = targets_of(dataset) if y is None else column(y)
    if len(targets) != len(dataset):
        raise BadData(f"{where}: the Dataset has {len(dataset)} samples and {len(targets)} targets")
    return Samples(dataset, targets, column(groups), workers, collate)


def tree_of(x: Any) -> Tree:
    """`x` as a tree: a dict, a tuple of arrays, a list of sequences of unequal length, or one tensor."""
    if isinstance(x, Mapping):
        tree: Tree = {key: tree_of(branch) for key, branch in x.items()}
    elif isinstance(x, tuple) and _is_branch(x):
        tree = tuple(tree_of(branch) for branch in x)
    elif isinstance(x, Ragged):
        return x
    else:
        return Ragged.of(x) if is_ragged(x) else inputs_of(x)
    check_names(tree)
    return tree


def _is_branch(x: Any) -> bool:
    """Whether this is a column of its own, unlike a tuple of numbers, which is a row."""
    if isinstance(x, tuple):
        return all(map(_is_branch, x))
    return isinstance(x, Tensor | np.ndarray | Mapping | Ragged)


def inputs_of(x: Any) -> Tensor:
    """`x` as one tensor in its own dtype; float64 becomes float32, which networks compute in."""
    if isinstance(x, Mapping | Ragged) or is_ragged(x):
        raise BadData(f"one tensor is needed here, not {type(x).__name__} or sequences of unequal length")
    tensor = x.detach() if isinstance(x, Tensor) else torch.as_tensor(np.asarray(x))
    return tensor.float() if tensor.dtype == torch.float64 else tensor


def column(values: Any) -> Any:
    """`values` as a NumPy column (None stays None); sequences of unequal length are its objects."""
    if values is None:
        return None
    if isinstance(values, Ragged) or is_ragged(values):
        found = np.empty(len(values), dtype=object)
        found[:] = [np.asarray(value) for value in values]
        return found
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def targets_of(dataset: Dataset[Any]) -> Column:
    """Every target of `dataset`: from what it knows of itself, otherwise in one pass over it."""
    known = known_targets(dataset)
    if known is not None and len(known) and np.array_equal(known[0], column(dataset[0][1])):
        return known
    return column([column(dataset[row][1]) for row in range(len(dataset))])  # type: ignore[arg-type,no-any-return]


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
            return np.asarray(column(values))
    return None


def _joined(parts: Sequence[Column | None]) -> Column | None:
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if len(found) == len(parts) else None
