"""Logs from files: which reader reads which file.

samples_*.jsonl          lm-evaluation-harness (--log_samples)
*.eval, *.json           Inspect
*.jsonl, *.csv, *.parquet  one row an answer, with named columns
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdcl.given import path_of, short
from pdcl.logs import inspect_eval, lm_eval, rows
from pdcl.logs.log import Answer, Log, LogError, as_items
from pdcl.storage.cache import LEDGER

# A user's reader: from a file to rows with id, score, and what else there is.
Reader = Callable[[Path], Iterable[Mapping[str, Any]]]
TABLES = (".jsonl", ".csv", ".parquet")


@dataclass(frozen=True)
class Form:
    """How to read: names of columns by role (id, score, task, epoch, prompt), a metric, a function of the user's."""

    columns: Mapping[str, str] = field(default_factory=dict)
    metric: str | None = None
    reader: Reader | None = None

    def __post_init__(self) -> None:
        if unknown := set(self.columns) - set(rows.ROLES):
            raise LogError(f"columns has no role {sorted(unknown)[0]!r}; roles are {', '.join(rows.ROLES)}")

    def prompt_alone(self, format: str) -> str | None:
        """The field that tells items apart; other columns have fixed names in this format."""
        if other := sorted(set(self.columns) - {"prompt"}):
            raise LogError(f"columns {other[0]}={self.columns[other[0]]} has no effect on logs of {format}")
        return self.columns.get("prompt")


def read_log(given: Any, form: Form, side: str) -> Log:
    """The log at a path: a file, or a directory with the files of one model. side: what messages call it."""
    if isinstance(given, Log):
        return given
    answers: list[Answer] = []
    hashes = {}
    place = path_of(given, side)
    files, unread = _files(place, side, form)
    _one_run(files)
    for file in files:
        content = _content(file)
        hashes[_name(file, place)] = hashlib.sha256(content).hexdigest()
        answers += _answers(file, content, form)
    if not answers:
        raise LogError(f"{side}={given} holds no answer; is it the log of a run that was finished?")
    return Log(as_items(answers), hashes, tuple(_name(file, place) for file in unread))


def _name(file: Path, place: Path) -> str:
    return file.name if file == place else str(file.relative_to(place))


def _files(path: Path, side: str, form: Form) -> tuple[list[Path], list[Path]]:
    """The files to read, and logs of another format beside them."""
    if path.is_file():
        return [path], []
    if not path.is_dir():
        raise LogError(f"{side}={path}: there is no such file or directory")
    every = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.endswith(LEDGER))
    if form.reader is not None:
        return every, []
    for kind in (lm_eval.is_samples, inspect_eval.is_log, lambda p: p.suffix in TABLES):
        if found := [p for p in every if kind(p)]:
            return found, [p for p in every if p.suffix in (".eval", *TABLES) and p not in found]
    raise LogError(f"{side}={path} holds no log: samples_*.jsonl, *.eval, *.jsonl, *.csv or *.parquet")


def _one_run(files: list[Path]) -> None:
    """Two lm-eval runs of one task in one folder are two logs."""
    seen: dict[str, Path] = {}
    for file in filter(lm_eval.is_samples, files):
        first = seen.setdefault(lm_eval.task_of(file), file)
        if first is not file:
            raise LogError(
                f"{file} and {first} are two runs of one task; name one of the files, or move the other away"
            )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise LogError(f"{file} can't be read: {error.strerror}") from error


def _answers(file: Path, content: bytes, form: Form) -> list[Answer]:
    if form.reader is None and lm_eval.is_samples(file):
        return lm_eval.answers(file, content, form.metric, form.prompt_alone("lm-eval"))
    if form.reader is None and inspect_eval.is_log(file):
        return inspect_eval.answers(file, content, form.metric, form.prompt_alone("Inspect"))
    if form.metric is not None:
        raise LogError(f"metric={short(form.metric)} has no effect on {file}; name its column: --columns score=NAME")
    if form.reader is None and file.suffix not in TABLES:
        kind = file.suffix or "a name without an ending"
        raise LogError(f"{file}: no reader for {kind}; unpack it, or read it with a function (docs/logs.md)")
    try:
        found = rows.read(file, content) if form.reader is None else form.reader(file)
        return rows.answers_of(found, form.columns, str(file))
    except LogError:
        raise
    except Exception as error:
        raise LogError(f"{file}: the reader failed, {type(error).__name__}: {short(str(error))}") from error
