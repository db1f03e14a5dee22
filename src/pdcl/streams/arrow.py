"""Hugging Face's `datasets.Dataset`, read batch by batch from its Arrow table, which may be larger than memory.

One column is the target; the others are inputs: numbers side by side make a table, one column of lists a tensor,
several columns a dict by their names. Lists of unequal length are sequences. Columns go from Arrow to tensors as a
whole; sample by sample only where the library itself decodes them (images) or a transform of the user's makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from pdcl.ragged import Ragged
from pdcl.streams.checks import BadData
from pdcl.streams.data import column_of
from pdcl.streams.inputs import Column, inputs_of, targets_column
from pdcl.trees import Leaf, Tree, map_leaves

# The columns that are taken for targets where none is named.
TARGETS = ("label", "labels", "y")


def is_arrow(x: Any) -> bool:
    """Whether this is a `datasets.Dataset`, found without importing the library."""
    return any(cls.__name__ == "Dataset" and cls.__module__.startswith("datasets.") for cls in type(x).__mro__)


class ArrowRows(Dataset[Any]):
    """The input columns of a `datasets.Dataset`. `read_batch` gives many rows at once."""

    def __init__(self, source: Any, apart: Sequence[str] = (), where: str = "x") -> None:
        self.source, self.apart, self.where = source, tuple(apart), where
        self.custom = source.format["type"] == "custom"
        names = [name for name in source.format["columns"] if name not in apart]
        if not names and not self.custom:
            raise BadData(f"{where}: the Dataset has no column of inputs; its columns are {source.column_names}")
        self.decoded = [name for name in names if not self.custom and self._is_decoded(name)]
        self.plain = [name for name in names if name not in self.decoded]
        self.sequences = set() if self.custom else {name for name in self.plain if self._is_uneven(name)}
        self._arrow = None if self.custom or not self.plain else _only(source, self.plain, "arrow")
        self._pictures = _only(source, self.decoded, "torch") if self.decoded else None

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, row: int) -> Any:
        return (map_leaves(lambda leaf: next(iter(leaf)), self.read_batch([row])),)

    def select(self, rows: Sequence[int]) -> ArrowRows:
        """These rows, as a Dataset of their own."""
        return ArrowRows(self.source.select(rows), self.apart, self.where)

    def read_batch(self, rows: list[int]) -> Tree:
        """The inputs of these rows."""
        if self.custom:
            return self._transformed(self.source[rows])
        table = None if self._arrow is None else self._arrow[rows]
        leaves = {name: self._leaf(name, table[name]) for name in self.plain} if table is not None else {}
        if (
            leaves
            and not self.decoded
            and all(isinstance(leaf, Tensor) and leaf.dim() == 1 for leaf in leaves.values())
        ):
            return torch.stack([leaf.float() for leaf in leaves.values()], 1)  # type: ignore[union-attr]
        if self._pictures is not None:
            leaves |= {name: self._picture(name, self._pictures[rows][name]) for name in self.decoded}
        return next(iter(leaves.values())) if len(leaves) == 1 else dict(leaves)

    def _leaf(self, name: str, column: Any) -> Leaf:
        return leaf_of(column, name in self.sequences, f"{self.where}: column {name!r}")

    def _picture(self, name: str, found: Any) -> Tensor:
        if not isinstance(found, Tensor):
            way = "bring them to one size with d.map(…) first"
            raise BadData(f"{self.where}: column {name!r} holds images of different sizes; {way}")
        return found

    def _transformed(self, given: dict[str, Any]) -> Tree:
        leaves = {name: _made(values) for name, values in given.items() if name not in self.apart}
        return next(iter(leaves.values())) if len(leaves) == 1 else leaves

    def _is_decoded(self, name: str) -> bool:
        return type(self.source.features[name]).__name__ == "Image"

    def _is_uneven(self, name: str) -> bool:
        """Whether a column's lists have several lengths: from their offsets alone, no value is read."""
        import pyarrow.compute as pc

        found: set[int] = set()
        for chunk in self.source.data.column(name).chunks:
            values = _storage(chunk)
            if not _is_list(values):
                return False
            limits = pc.min_max(pc.list_value_length(values))
            found |= {limits["min"].as_py(), limits["max"].as_py()} - {None}
        return len(found) > 1


def named_columns(x: Any, y: Any, groups: Any, where: str) -> tuple[ArrowRows, Column, Any]:
    """Inputs, raw targets and groups of a `datasets.Dataset`; `y` and `groups` may name columns of it."""
    if y is None:
        known = [name for name in TARGETS if name in x.column_names]
        if len(known) != 1:
            raise BadData(f'{where}: say which column holds the targets, such as y="label"; there are {x.column_names}')
        y = known[0]
    apart = [given for given in (y, groups) if isinstance(given, str)]
    for name in apart:
        if name not in x.column_names:
            raise BadData(f"{where}: there is no column {name!r}; there are {x.column_names}")
    targets = values_of(x, y, where) if isinstance(y, str) else targets_column(y)
    if len(targets) != len(x):
        raise BadData(f"{where}: the Dataset has {len(x)} rows and {len(targets)} targets")
    return ArrowRows(x, apart, where), targets, values_of(x, groups, where) if isinstance(groups, str) else groups


def inputs_alone(x: Any) -> ArrowRows:
    """The input columns of a Dataset whose targets, if it has some, aren't asked for."""
    return ArrowRows(x, TARGETS)


def values_of(x: Any, name: str, where: str) -> Column:
    """One column as a whole: targets or groups, which are held in memory."""
    import pyarrow as pa

    column = _only(x, [name], "arrow")[:][name]
    if column.null_count:
        raise BadData(f"{where}: column {name!r} has missing values; fill or drop such rows first")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.asarray(column.to_pylist())
    if not _is_list(_storage(column.combine_chunks())):
        return np.asarray(column.to_numpy())
    uneven = len(set(_lengths(_storage(column.combine_chunks())).tolist())) > 1
    return np.asarray(targets_column(leaf_of(column, uneven, f"{where}: column {name!r}"), where))


def leaf_of(column: Any, uneven: bool, where: str) -> Leaf:
    """An Arrow column as a tensor rows × …, or as sequences where its lists have several lengths."""
    import pyarrow as pa

    values = _storage(column.combine_chunks())
    rows, sizes, lengths = len(values), [], None
    while _is_list(values):
        _refuse_missing(values, where)
        if uneven and lengths is None:
            lengths = torch.from_numpy(_lengths(values).astype(np.int64))
        else:
            sizes.append(_one_length(values, where))
        values = _storage(values.flatten())
    _refuse_missing(values, where)
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_boolean(values.type)):
        raise BadData(f"{where} holds {values.type}; {_way_out(values.type, where)}")
    numbers = inputs_of(values.to_numpy(zero_copy_only=False), where)
    # Small integers are Arrow's way to save room (a mask takes int8); networks are made for what the library gives.
    numbers = numbers.long() if pa.types.is_signed_integer(values.type) else numbers
    if lengths is not None:
        return Ragged(numbers.reshape(-1, *sizes), lengths)
    return numbers.reshape(rows, *sizes)


def _way_out(kind: Any, where: str) -> str:
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return (
            'tokenize them: d.map(lambda rows: tokenizer(rows["text"]), batched=True, remove_columns=["text"]), or '
            'give list(d["text"]), with tokenizer= of pdcl.split'
        )
    return f"make numbers of it with d.map(…), or leave it out: d.remove_columns([{where.rpartition(' ')[2]}])"


def _only(source: Any, names: list[str], form: str) -> Any:
    return source.select_columns(names).with_format(form)


def _made(values: Any) -> Tree:
    """What a user's transform gave for one column: a whole column, or a list of samples."""
    return column_of(list(values)) if isinstance(values, list | tuple) else inputs_of(values)


def _storage(values: Any) -> Any:
    """The array itself; `Array2D` and its like are kept as lists of lists."""
    return values.storage if hasattr(values, "storage") else values


def _is_list(values: Any) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(kind(values.type) for kind in kinds)


def _lengths(values: Any) -> Any:
    import pyarrow.compute as pc

    return pc.list_value_length(values).to_numpy(zero_copy_only=False)


def _one_length(values: Any, where: str) -> int:
    found = np.unique(_lengths(values))
    if len(found) > 1:
        raise BadData(f"{where} has rows of different lengths ({found[0]} and {found[-1]}); pad or cut them to one")
    return int(found[0]) if len(found) else 0


def _refuse_missing(values: Any, where: str) -> None:
    if values.null_count:
        raise BadData(f"{where} has missing values; fill or drop such rows first")
