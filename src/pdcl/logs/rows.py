"""Tables with one row an answer: JSON lines, CSV, Parquet, or what a user's function gives."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pdcl.given import short
from pdcl.logs.log import Answer, LogError, score_of

ROLES = ("id", "score", "task", "epoch", "prompt")
Row = Mapping[str, Any]


def json_lines(content: bytes, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line with its place."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LogError(f"{where}: byte {error.start} is no UTF-8 text") from None
    for number, line in enumerate(text.split("\n"), 1):
        place = f"{where}, line {number}"
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise LogError(f"{place} is no JSON ({short(str(error))}); was the file cut?") from None
        if not isinstance(row, dict):
            raise LogError(f"{place} is {short(row)}, not an object with named values")
        yield place, row


def read(file: Path, content: bytes) -> list[Row]:
    if file.suffix == ".jsonl":
        return [row for _, row in json_lines(content, str(file))]
    return _csv(file, content) if file.suffix == ".csv" else _parquet(file, content)


def _csv(file: Path, content: bytes) -> list[Row]:
    try:
        text = content.decode("utf-8-sig")
        found = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise LogError(f"{file} is no CSV in UTF-8: {short(str(error))}") from None
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
        found: list[Row] = parquet.read_table(io.BytesIO(content)).to_pylist()
    except Exception as error:
        raise LogError(f"{file} is no Parquet file: {short(str(error))}") from None
    return found


def answers_of(rows: Iterable[Row], names: Mapping[str, str], where: str) -> list[Answer]:
    """names: the column of each role, where it isn't called like it. Other columns divide items into groups."""
    role = {each: names.get(each, each) for each in ROLES}
    found = []
    for number, row in enumerate(rows, 1):
        place = f"{where}, row {number}"
        if not isinstance(row, Mapping):
            raise LogError(f"{place} is {short(row)}, not a mapping with id and score")
        for needed in ("id", "score", *names):
            if row.get(role[needed]) in (None, ""):
                there = ", ".join(map(str, row)) or "none"
                raise LogError(f"{place} has no {role[needed]!r} ({needed}); columns: {there}; --columns {needed}=NAME")
        found.append(_answer(row, role, place))
    return found


def _answer(row: Row, role: Mapping[str, str], place: str) -> Answer:
    task, epoch, prompt = (row.get(role[each]) for each in ("task", "epoch", "prompt"))
    rest = {str(k): str(v) for k, v in row.items() if k not in role.values() and isinstance(v, str | int | bool)}
    return Answer(
        task="all" if task is None else str(task),
        id=str(row[role["id"]]),
        score=score_of(row[role["score"]], place),
        where=place,
        epoch=None if epoch is None else str(epoch),
        prompt=None if prompt is None else hashed(prompt),
        columns=rest,
    )


def hashed(prompt: Any) -> str:
    """What was asked, without its content."""
    text = prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
