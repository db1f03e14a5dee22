"""The user's columns, read and checked: one string or integer per sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from pdcl.streams.checks import BadData
from pdcl.streams.columns import Values

# Names that files of samples use for something else.
TAKEN = ("x", "y", "task", "group")


def read_columns(columns: Any, count: int, where: str) -> Values:
    """The user's columns as NumPy arrays of strings, integers or booleans, one value for each of `count` samples."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise BadData(
            f'{where}: columns is a {type(columns).__name__}; give a dict of names and values: {{"plan": [...]}}'
        )
    return {_checked_name(name, where): _read_one(name, values, count, where) for name, values in columns.items()}


def _checked_name(name: Any, where: str) -> str:
    if not isinstance(name, str) or not name or "=" in name:
        raise BadData(f"{where}: a column is called {name!r}; its name must be a text without '='")
    if name in TAKEN:
        raise BadData(f"{where}: a column is called {name!r}, which pdcl uses itself; rename it")
    return name


def _read_one(name: str, values: Any, count: int, where: str) -> npt.NDArray[Any]:
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    plain = [values] if isinstance(values, str | bytes) or not isinstance(values, Iterable) else list(values)
    if len(plain) != count:
        raise BadData(f"{where}: column {name!r} has {len(plain)} values for {count} samples; give one per sample")
    found = np.empty(count, dtype=object)
    found[:] = [_checked_value(value, name, row, where) for row, value in enumerate(plain)]
    return found


def _checked_value(value: Any, name: str, row: int, where: str) -> Any:
    """A string, integer or boolean as a plain Python value."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer():
        return int(plain)
    if not isinstance(plain, str | int):
        advice = "fill missing values with a name of their own, and cut numbers into ranges"
        raise BadData(
            f"{where}: column {name!r} holds {value!r} in row {row}; values are strings or integers ({advice})"
        )
    return plain


def require_equal_columns(parts: Sequence[Values], where: str) -> None:
    """Raise `BadData` unless all tasks have the same columns: a limit by segment has to hold in every task."""
    first = sorted(parts[0]) if parts else []
    for index, part in enumerate(parts):
        if sorted(part) != first:
            raise BadData(
                f"{where}: task {index} has the columns {sorted(part)}, task 0 has {first}; give all the same"
            )
