"""Many runs as one table: a row for every finished run below a directory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pdcl.errors import RecordError, UsageError
from pdcl.records import checksum, reading, schema
from pdcl.records.naming import unlimited
from pdcl.storage.disk import ASIDE

# Runs lie in the directory given or in directories below it, as a study leaves them.
DEPTH = 3
# Runs that chose options, scored on held-out training data: no part of a table unless it is asked for by name.
TUNING = "tuning"

# What values of the wrong kind raise, in files that have all their keys.
MALFORMED = (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Row:
    """One finished run: what it was and the numbers that tables show. `label`: the method, or a variant's own name.

    `verified`: its result carries a checksum, which is right. Those of older versions carry none.
    """

    path: Path
    stream: str
    method: str
    label: str
    preset: str
    memory: int | str | None
    seed: int
    options: dict[str, Any] = field(hash=False)
    mean_accuracy: float
    mean_forgetting: float
    task_il: float
    seconds: float
    cpu_seconds: float
    peak_memory_mb: float
    verified: bool = True

    @property
    def in_effect(self) -> dict[str, Any]:
        """Options without those that are None: they do nothing, and another version may not have them."""
        return {name: value for name, value in self.options.items() if value is not None}

    @property
    def ran(self) -> str:
        """The label and, where it doesn't say it all, what ran: `pdcl, no limits = even`."""
        return self.label + unlimited(self.options)


@dataclass
class Survey:
    """What was found below a directory."""

    rows: list[Row] = field(default_factory=list)
    unfinished: list[Path] = field(default_factory=list)
    unreadable: list[RecordError] = field(default_factory=list)


def scan(directory: str | Path) -> list[Row]:
    """Every finished run in or below a directory, ordered by path."""
    return survey(directory).rows


def survey(directory: str | Path) -> Survey:
    """All runs in or below a directory: rows for the finished ones, paths of the others, errors for the damaged."""
    if not os.path.isdir(directory):
        raise UsageError(f"{directory} is not a directory; give one that holds runs, such as the --out of `pdcl run`")
    found = Survey()
    for path in _runs(os.fspath(directory), DEPTH):
        try:
            row = _row(path)
        except RecordError as error:
            found.unreadable.append(error)
        except MALFORMED as error:
            text = f"{path} holds a run with values of the wrong kind ({type(error).__name__}: {str(error)[:200]})"
            found.unreadable.append(RecordError(text, path))
        else:
            found.rows.append(row) if row else found.unfinished.append(Path(path))
    found.rows.sort(key=lambda row: str(row.path))
    return found


def _runs(directory: str, depth: int) -> Iterator[str]:
    """Directories with a config.json. A run is not looked into, nor is what is hidden, tuning or moved aside."""
    if os.path.exists(os.path.join(directory, schema.CONFIG)):
        yield directory
    elif depth:
        with os.scandir(directory) as entries:
            for entry in entries:
                hidden = entry.name.startswith(".") or entry.name == TUNING or ASIDE in entry.name
                # Links to elsewhere are followed, those that lead nowhere are no runs.
                if not hidden and os.path.isdir(entry.path):
                    yield from _runs(entry.path, depth - 1)


def _row(path: str) -> Row | None:
    """The row of one run, None if it has no result. Reads two small files and none of the events."""
    text = _text(path, schema.RESULT)
    if text is None:
        return None
    name = Path(path, schema.RESULT)
    result = reading.checked(reading.result_in(text, name, _last_rows), name, schema.Result)
    config = _config(path)
    last = result["accuracy"]["task_il"][-1:] or [[]]
    return Row(
        path=Path(path),
        stream=config["stream"],
        method=config["method"],
        label=config.get("label") or config["method"],
        preset=config["preset"],
        memory=config["memory"],
        seed=int(config["seed"]),
        options=_options(config),
        mean_accuracy=_number(result["mean_accuracy"]),
        mean_forgetting=_number(result["mean_forgetting"]),
        task_il=_mean(last[0]),
        **{name: _number(result["cost"][name]) for name in schema.Cost.__annotations__},
        verified=checksum.KEY in result,
    )


def _last_rows(text: bytes) -> bytes:
    """A result with the last row of each matrix alone: tables show no other, and parsing them is most of the work.

    It knows matrices as our writer writes them, `[[…], …, […]]`; others stay as they are.
    """
    if b"[[[" in text:
        return text
    parts, place = [], 0
    while (start := text.find(b"[[", place)) >= 0 and (end := text.find(b"]]", start)) >= 0:
        parts += [text[place : start + 1], text[text.rfind(b"[", start, end) : end]]
        place = end
    return b"".join([*parts, text[place:]])


def _text(run: str, name: str) -> bytes | None:
    path = os.path.join(run, name)
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{path} can't be read: {error.strerror}", path) from error


def _config(run: str) -> schema.Config:
    path = os.path.join(run, schema.CONFIG)
    content = reading.parsed(_text(run, schema.CONFIG) or b"", path)
    return cast(schema.Config, reading.checked(content, path, schema.Config))


def _options(config: schema.Config) -> dict[str, Any]:
    """The options of the method and, as `stream.NAME`, of its stream; memory and seed have columns of their own."""
    values = {name: option["value"] for name, option in config["options"].items() if name not in ("memory", "seed")}
    own = {name: value for name, value in values.items() if schema.tells_runs_apart(name, value)}
    return own | {f"stream.{name}": value for name, value in config["stream_options"].items()}


def _number(value: float | None) -> float:
    if isinstance(value, str | bool):
        raise TypeError(f"{value!r} is no number")
    return math.nan if value is None else float(value)


def _mean(values: Sequence[float | None]) -> float:
    return sum(map(_number, values)) / len(values) if values else math.nan
