"""Rows of a table as columns of raw values: from CSV, Parquet, a DataFrame, or a list of dicts."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.given import few, short
from pdcl.streams.checks import BadData

FILES = (".csv", ".tsv", ".parquet")
DELIMITERS = ",;\t|"
DECIMAL = re.compile(r"[+-]?\d+,\d+")
Raw = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Rows:
    """Raw values by column, each [n]; None where a value is missing. `lines` are the numbers that errors name."""

    place: str
    columns: dict[str, Raw]
    lines: npt.NDArray[np.int64]
    unit: str = "row"

    def __len__(self) -> int:
        return len(self.lines)

    def at(self, row: int) -> str:
        """Where a row stands, for people."""
        return f"{self.place}, {self.unit} {self.lines[row]}"

    def taken(self, rows: Any) -> Rows:
        """The rows at these positions."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return replace(self, columns=columns, lines=self.lines[rows])

    def column(self, name: str, asked: str) -> Raw:
        """A column that an option names."""
        if name not in self.columns:
            raise BadData(f"{self.place} has no column {name!r}, which {asked} names; it has {few(self.columns, 20)}")
        return self.columns[name]

    def full_column(self, name: str, asked: str) -> Raw:
        """A column that must not have missing values."""
        values = self.column(name, asked)
        if (row := next((row for row, value in enumerate(values) if value is None), None)) is not None:
            raise BadData(f"{self.at(row)}: column {name!r}, which {asked} names, is empty; fill it or drop the row")
        return values


def is_table_file(given: Any) -> bool:
    """Whether this is the path of a table."""
    return isinstance(given, str | Path) and Path(given).suffix.lower() in FILES


def is_frame(given: Any) -> bool:
    """Whether this is a DataFrame, found without importing pandas."""
    return type(given).__name__ == "DataFrame" and hasattr(given, "to_dict")


def are_dicts(given: Any) -> bool:
    return isinstance(given, list | tuple) and bool(given) and all(isinstance(row, Mapping) for row in given)


def read_rows(given: Any) -> Rows:
    """The rows of a file, a DataFrame or a list of dicts."""
    if isinstance(given, Rows):
        return given
    if is_table_file(given):
        path = Path(given)
        if not path.is_file():
            raise BadData(f"{path}: there is no such file")
        return _parquet(path) if path.suffix.lower() == ".parquet" else _csv(path)
    if is_frame(given):
        return _arrow_like("the DataFrame", {str(name): given[name].tolist() for name in given.columns}, len(given))
    if are_dicts(given):
        names = list(dict.fromkeys(name for row in given for name in row))
        return _arrow_like(
            "the list of rows", {str(name): [row.get(name) for row in given] for name in names}, len(given)
        )
    if isinstance(given, Mapping):
        raise BadData(f"a dict is one row of a table, and rows come as a list: [{short(given)}]")
    raise BadData(f"a table is a file ({', '.join(FILES)}), a DataFrame or a list of dicts, not {short(given)}")


def _arrow_like(place: str, columns: Mapping[str, Sequence[Any]], count: int) -> Rows:
    if not count:
        raise BadData(f"{place} has no rows")
    return Rows(place, {name: _raw(values) for name, values in columns.items()}, np.arange(count))


def _raw(values: Sequence[Any]) -> Raw:
    """Python values; NaN, NaT, pandas.NA and empty text are None."""
    found = np.empty(len(values), dtype=object)
    found[:] = [None if _is_missing(value) else value for value in values]
    return found


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def _parquet(path: Path) -> Rows:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise BadData(f"{path}: Parquet needs pyarrow: pip install pyarrow") from error
    try:
        table = parquet.read_table(path)
    except (OSError, arrow.ArrowException) as error:
        raise BadData(f"{path} can't be read as Parquet: {str(error).splitlines()[0]}") from error
    return _arrow_like(str(path), table.to_pydict(), table.num_rows)


def _pointed(cell: str) -> str:
    """2,5 as 2.5: where semicolons part the cells, a comma is a decimal point."""
    return cell.replace(",", ".") if DECIMAL.fullmatch(cell.strip()) else cell


def _csv(path: Path) -> Rows:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            delimiter = max(DELIMITERS, key=first.count)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            cells, lines = [], []
            for row in reader:
                if row:
                    cells.append([_pointed(cell) for cell in row] if delimiter == ";" else row)
                    lines.append(reader.line_num)
    except UnicodeDecodeError as error:
        raise BadData(
            f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8, or give the DataFrame of "
            f'pandas.read_csv(path, encoding="cp1252")'
        ) from error
    except csv.Error as error:
        raise BadData(f"{path}, line {reader.line_num}: {error}; mend or drop that line") from error
    if len(cells) < 2:
        raise BadData(f"{path} has no rows below its header" if cells else f"{path} is empty")
    header = [name.strip() for name in cells[0]]
    if "" in header:
        raise BadData(
            f"{path}, line {lines[0]}: column {header.index('') + 1} has no name; give it one (pandas writes row "
            "numbers there: to_csv(path, index=False) leaves them out)"
        )
    if twice := [name for name in header if header.count(name) > 1]:
        raise BadData(f"{path}, line {lines[0]}: two columns are called {twice[0]!r}; give each a name of its own")
    for row, line in zip(cells[1:], lines[1:], strict=True):
        if len(row) != len(header):
            raise BadData(f"{path}, line {line} has {len(row)} cells, and the header has {len(header)}; mend that line")
    columns = dict(zip(header, map(_raw, zip(*cells[1:], strict=True)), strict=True))
    return Rows(str(path), columns, np.asarray(lines[1:]), "line")
