"""Columns beside x and y: what else is known of every sample (a plan, a region), for limits and reports by segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

Values = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class CodedColumn:
    """One column of n samples: sample i has the value `names[codes[i]]`; `codes` is (n,) int64."""

    codes: Tensor
    names: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def values(self) -> list[Any]:
        """The value of every sample, as the user wrote it."""
        return [self.names[code] for code in self.codes.tolist()]

    def subset(self, index: Tensor) -> CodedColumn:
        """The column of the samples at these positions."""
        return CodedColumn(self.codes[index], self.names)


Columns = Mapping[str, CodedColumn]


def subset_of(columns: Columns, index: Tensor) -> dict[str, CodedColumn]:
    """Every column of the samples at these positions."""
    return {name: column.subset(index) for name, column in columns.items()}


class ColumnCodes:
    """Columns of several sides and tasks as integers that mean the same in all of them."""

    def __init__(self, parts: Sequence[Values]) -> None:
        self._names: dict[str, dict[Any, int]] = {}
        for part in parts:
            for name, values in part.items():
                known = self._names.setdefault(name, {})
                for value in values.tolist():
                    known.setdefault(value, len(known))

    def encode(self, part: Values) -> dict[str, CodedColumn]:
        return {name: self._encoded(self._names[name], values) for name, values in part.items()}

    @staticmethod
    def _encoded(known: dict[Any, int], values: npt.NDArray[Any]) -> CodedColumn:
        codes = torch.tensor([known[value] for value in values.tolist()], dtype=torch.int64)
        return CodedColumn(codes, tuple(known))


def encoded(columns: Values) -> dict[str, CodedColumn]:
    """Columns of one set of samples."""
    return ColumnCodes([columns]).encode(columns)
