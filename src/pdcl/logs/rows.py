"""Tables with one row an answer: JSON lines, CSV, Parquet, or what a user's function gives."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pdcl.given import short
from pdcl.logs.log import Answer, LogError, columns_of, hashed, parsed, score_of

ROLES = ("id", "score", "task", "epoch", "prompt")
Row = Mapping[str, Any]


def json_lines(content: bytes, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line with its place."""
    for number, line in enumerate(_text(content, where).split("\n"), 1):
        if line.strip():
            place = f"{where}, line {number}"
            yield place, parsed(line, place)


def read(file: Path, content: bytes) -> list[Row]:
    if file.suffix == ".jsonl":
        return [row for _, row in json_lines(content, str(file))]
    return _csv(file, content) if file.suffix == ".csv" else _parquet(file, content)


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LogError(f"{where}: byte {error.start} is no UTF-8 text") from None


def _csv(file: Path, content: bytes) -> list[Row]:
    text = _text(content, str(file))
    # A prompt may be longer than what Python's module takes by default.
    usual = csv.field_size_limit(sys.maxsize)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        _check_names(file, reader.fieldnames or ())
        found = list(reader)
    except csv.Error as error:
        raise LogError(f"{file} is no CSV: {short(str(error))}") from None
    finally:
        csv.field_size_limit(usual)
    for number, row in enumerate(found, 2):
        if None in row or None in row.values():
            raise LogError(f"{file}, row {number} has more or fewer values than the header has names")
    return list(found)


def _parquet(file: Path, content: bytes) -> list[Row]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise LogError(f"{file}: Parquet needs pyarrow; pip install pyarrow, or write CSV") from None
    try:
        table = parquet.read_table(io.BytesIO(content))
    except Exception as error:
        raise LogError(f"{file} is no Parquet file: {short(str(error))}") from None
    _check_names(file, table.column_names)
    found: list[Row] = table.to_pylist()
    return found


def _check_names(file: Path, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise LogError(f"{file} has several columns {short(name)}; rename all but one")


def answers_of(rows: Iterable[Row], names: Mapping[str, str], where: str) -> list[Answer]:
    """names: the column of each role, where it isn't called like it. Other columns divide items into groups."""
    role = {each: names.get(each, each) for each in ROLES}
    found = []
    for number, row in enumerate(rows, 1):
        place = f"{where}, row {number}"
        if not isinstance(row, Mapping):
            raise LogError(f"{place} is {short(row)}, not a mapping with id and score")
        for needed in ("id", "score", *names):
            if missing(row.get(role[needed])):
                there = ", ".join(map(str, row)) or "none"
                raise LogError(f"{place} has no {role[needed]!r} ({needed}); columns: {there}; --columns {needed}=NAME")
        found.append(_answer(row, role, place))
    return found


def _answer(row: Row, role: Mapping[str, str], place: str) -> Answer:
    said = {each: row.get(name) for each, name in role.items()}
    task, epoch, prompt = (None if missing(said[each]) else said[each] for each in ("task", "epoch", "prompt"))
    return Answer(
        task="all" if task is None else str(task),
        id=str(said["id"]),
        score=score_of(said["score"], place),
        where=place,
        epoch=None if epoch is None else str(epoch),
        prompt=None if prompt is None else hashed(prompt),
        columns=columns_of(row, leave=role.values()),
    )


def missing(value: Any) -> bool:
    """Whether a cell says nothing. NaN is how many tables write that."""
    return (
        value is None
        or (isinstance(value, str) and not value.strip())
        or (isinstance(value, float) and math.isnan(value))
    )
