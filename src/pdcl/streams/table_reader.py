"""The preprocessing of a table: fitted on the first task, part of the model from then on, stored as JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.streams import table_columns
from pdcl.streams.checks import BadData
from pdcl.streams.table_columns import Kind
from pdcl.streams.table_rows import Raw, Rows

# Integers as files and DataFrames hold them: 7, "7", 7.0. "07" is a name.
WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,14})(\.0+)?")
MANY = 20


@dataclass(frozen=True)
class Layout:
    """Which column is what. `columns` are also facts that a limit may name; `groups` holds who a row belongs to."""

    label: str
    task: str | None = None
    groups: str | None = None
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    kind: str = "classification"

    @property
    def apart(self) -> set[str]:
        """Columns that are no inputs."""
        return {self.label, *self.drop, *(name for name in (self.task, self.groups) if name)}


@dataclass(frozen=True)
class TableReader:
    """Rows as inputs [n, width]: every input column by what the first task showed of it.

    whole: its labels are integers, and so are later ones, from a file of texts as from a DataFrame.
    """

    layout: Layout
    inputs: dict[str, Kind] = field(default_factory=dict)
    whole: bool = False

    @classmethod
    def fit(cls, rows: Rows, layout: Layout) -> TableReader:
        names = [name for name in rows.columns if name not in layout.apart]
        if not names:
            raise BadData(f"{rows.place} has no column of inputs beside {sorted(layout.apart)}")
        for name in layout.categories:
            rows.column(name, "categories")
        inputs = {name: table_columns.fitted(rows, name, name in layout.categories) for name in names}
        if layout.kind == "regression":
            return cls(layout, inputs)
        labels = rows.full_column(layout.label, "label")
        _refuse_measurements(rows, layout.label, labels)
        return cls(layout, inputs, all(WHOLE.fullmatch(str(value).strip()) for value in labels))

    def encode(self, rows: Rows) -> tuple[npt.NDArray[np.float32], list[str]]:
        """The inputs, and what people should know: columns that are missing or new, values that are new."""
        lacking = [name for name in self.inputs if name not in rows.columns]
        if len(lacking) == len(self.inputs):
            raise BadData(f"{rows.place} has none of the columns that the model reads: {lacking}")
        blank = {name: np.full(len(rows), None, dtype=object) for name in lacking}
        full = Rows(rows.place, {**rows.columns, **blank}, rows.lines, rows.unit)
        new = [name for name in rows.columns if name not in self.layout.apart | {*self.inputs}]
        parts, notes = [], _differences(rows, lacking, new)
        for name, kind in self.inputs.items():
            numbers, said = kind.encode(full, name)
            parts.append(numbers)
            notes += [f"{rows.place}: {each}" for each in said if name not in lacking]
        return np.concatenate(parts, 1).astype(np.float32), notes

    def labels(self, rows: Rows) -> list[Any]:
        """The label of every row; numbers for regression."""
        if self.layout.kind == "regression":
            rows.full_column(self.layout.label, "label")
            return list(table_columns.numbers(rows, self.layout.label).tolist())
        found = rows.full_column(self.layout.label, "label")
        texts = [value.strip() if isinstance(value, str) else value for value in found]
        return [int(float(value)) if self.whole and WHOLE.fullmatch(str(value)) else value for value in texts]

    def facts(self, rows: Rows) -> dict[str, list[str]] | None:
        """The columns that limits may name, as texts; a missing value is "missing"."""
        found = {name: rows.column(name, "columns") for name in self.layout.columns}
        texts = {name: ["missing" if value is None else str(value) for value in found[name]] for name in found}
        return texts or None

    def owners(self, rows: Rows) -> list[Any] | None:
        name = self.layout.groups
        return None if name is None else rows.full_column(name, "groups").tolist()

    @property
    def width(self) -> int:
        return sum(kind.width for kind in self.inputs.values())

    def as_json(self) -> dict[str, Any]:
        inputs = {name: table_columns.as_json(kind) for name, kind in self.inputs.items()}
        return {"layout": {**vars(self.layout)}, "inputs": inputs, "whole": self.whole}

    @classmethod
    def from_json(cls, saved: dict[str, Any] | None) -> TableReader | None:
        if saved is None:
            return None
        layout: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in saved["layout"].items()
        }
        inputs = {str(n): table_columns.from_json(kind) for n, kind in saved["inputs"].items()}
        return cls(Layout(**layout), inputs, saved.get("whole") is True)


def _refuse_measurements(rows: Rows, name: str, labels: Raw) -> None:
    """BadData for labels that are numbers with digits behind the point, most of them different."""
    measured = {str(value) for value in labels if table_columns.is_fraction(value)}
    if 2 * len(measured) > len(labels) > MANY:
        raise BadData(
            f"{rows.place}: the label {name!r} has {len(measured):,} different numbers in {len(labels):,} rows of the "
            f'first task, such as {min(measured)}; to predict a number: pdcl.table(…, kind="regression")'
        )


def _differences(rows: Rows, lacking: list[str], new: list[str]) -> list[str]:
    notes = []
    if lacking:
        notes.append(f"{rows.place} lacks {_named(lacking)}: read as if every value were missing")
    if new:
        notes.append(f"{rows.place} has {_named(new)}, which the first task didn't have: not read")
    return notes


def _named(columns: list[str]) -> str:
    return f"the column{'s' if len(columns) > 1 else ''} {', '.join(map(repr, columns))}"
