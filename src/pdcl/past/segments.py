"""Limits by segment: which stored samples have a stated value of a column that came with the data.

Memory keeps a small integer per stated column and sample: the number of the value among those with a limit, from 1 on,
and 0 for any other. So a column of many values costs no more than one of two.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pdcl.limits.limits import Segment
from pdcl.limits.tolerance import Tolerance
from pdcl.streams.columns import CodedColumn

# The memory's column that holds the numbers.
CODES = "codes"


class Segments:
    """limits: by (column, value), in the order of constraints. table: per column, its values that have a number."""

    def __init__(self, limits: Mapping[Segment, Tolerance]) -> None:
        self.limits = dict(limits)
        self.table: dict[str, list[str]] = {}
        self.take_table({})

    def __len__(self) -> int:
        return len(self.limits)

    @property
    def names(self) -> list[str]:
        """As rows of a report are called."""
        return ["=".join(key) for key in self.limits]

    def take_table(self, saved: Mapping[str, list[str]]) -> None:
        """Number values as a saved state does; stated ones that it doesn't know come behind."""
        self.table = {column: list(values) for column, values in saved.items()}
        for column, value in self.limits:
            known = self.table.setdefault(column, [])
            if value not in known:
                known.append(value)

    def blank(self, samples: int) -> Tensor:
        """Numbers of samples that have no stated value: [n, columns]."""
        return torch.zeros(samples, len(self.table), dtype=torch.int16)

    def widened(self, codes: Tensor) -> Tensor:
        """Numbers that were given before columns behind theirs were stated: [n, columns]."""
        found = self.blank(len(codes))
        found[:, : codes.shape[1]] = codes
        return found

    def encode(self, columns: Mapping[str, CodedColumn], index: Tensor) -> Tensor:
        """Numbers of the samples at these positions: [n, columns]."""
        codes = self.blank(len(index))
        for place, (column, values) in enumerate(self.table.items()):
            if column in columns:
                found = columns[column]
                number = {value: 1 + i for i, value in enumerate(values)}
                meaning = torch.tensor([number.get(str(name), 0) for name in found.names], dtype=torch.int16)
                codes[:, place] = meaning[found.codes[index]]
        return codes

    def masks(self, codes: Tensor) -> Tensor:
        """Which samples are in each segment: [segments, n]. codes: [n, columns]."""
        places = {column: place for place, column in enumerate(self.table)}
        numbers = [(places[column], 1 + self.table[column].index(value)) for column, value in self.limits]
        found = [codes[:, place] == number for place, number in numbers]
        return torch.stack(found) if found else torch.zeros(0, len(codes), dtype=torch.bool)
