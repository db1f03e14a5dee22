"""Many finished runs as one small file, and back: gzip, one JSON object per run and line.

A packed run keeps config.json and result.json to the byte, so that a study counts it as done and tables show it. Of its
events the single training steps go, and of each task's dual steps all but a few; numbers are rounded. Checkpoints and
snapshots of memory are left out.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from pdcl.errors import RecordError, RunFinished, UsageError
from pdcl.records import checksum, reading, schema
from pdcl.records.naming import SAFE, safe
from pdcl.records.record import Record, fill_directory
from pdcl.records.writing import dumps
from pdcl.storage.disk import reported, write_whole

# Of each task; enough to draw λ over time.
DUAL_STEPS = 12
LARGEST = 64 * 2**20
TEXTS = (schema.CONFIG, schema.RESULT)

Extra = Callable[[Path], Mapping[str, bytes]]
Steps = Callable[[Path], int]


@dataclass(frozen=True)
class Unpacked:
    """Runs that were written, and those that were there already."""

    written: list[Path]
    kept: list[Path]


def pack(runs: Iterable[Path], out: Path, extra: Extra = lambda run: {}, steps: Steps = lambda run: DUAL_STEPS) -> int:
    """Write finished runs into one file; returns how many. extra: more files of a run, by name; steps: how many dual
    steps of each task it keeps."""
    lines = [_packed(run, extra(run), steps(run)) for run in sorted(runs, key=lambda run: run.name)]
    content = BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb", compresslevel=9, mtime=0) as file:
        file.writelines(line.encode() + b"\n" for line in lines)
    with reported(out):
        write_whole(out, content.getvalue())
    return len(lines)


def unpack(path: Path, out: Path) -> Unpacked:
    """Make records of a packed file's runs in a directory; a run that is there already stays as it is."""
    # All of it is read before any run is written: a damaged file leaves nothing behind.
    packed, found = list(_read(path)), Unpacked([], [])
    with reported(out):
        out.mkdir(parents=True, exist_ok=True)
        for name, files in packed:
            obstacle = Record.obstacle(out, name, json.loads(files[schema.CONFIG]))
            if obstacle is None:
                fill_directory(out / name, files)
                found.written.append(out / name)
            elif isinstance(obstacle, RunFinished):
                found.kept.append(out / name)
            else:
                raise obstacle
    return found


def _packed(run: Path, extra: Mapping[str, bytes], steps: int) -> str:
    """One line: names and texts of files; what isn't text as base64."""
    texts = {name: (run / name).read_text(encoding="utf-8") for name in TEXTS}
    if (run / schema.EVENTS).is_file():
        texts[schema.EVENTS] = "".join(dumps(event) + "\n" for event in thinned(reading.read_events(run), steps))
    binary = {}
    for name, content in extra.items():
        try:
            texts[name] = content.decode()
        except UnicodeDecodeError:
            binary[name] = base64.b64encode(content).decode()
    return dumps({"schema": schema.VERSION, "run": run.name, "texts": texts, "binary": binary})


def thinned(events: Iterable[dict[str, Any]], steps: int = DUAL_STEPS) -> Iterator[dict[str, Any]]:
    """Events without training steps, and with at most so many dual steps of each task, the last among them."""
    waiting: list[dict[str, Any]] = []
    for event in events:
        kind = event.get("event")
        if kind == "stepped":
            continue
        if kind != "duals_moved" or (waiting and waiting[0]["task"] != event["task"]):
            yield from _some(waiting, steps)
            waiting = []
        if kind == "duals_moved":
            waiting.append(event)
        else:
            yield _rounded(event)
    yield from _some(waiting, steps)


def _some(moved: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    step = -(-len(moved) // most) or 1
    # Without the time: no two dual steps are told apart by it.
    return [{name: value for name, value in _rounded(event).items() if name != "time"}
            for event in moved[::-1][::step][::-1]]  # fmt: skip


def _rounded(event: dict[str, Any]) -> dict[str, Any]:
    """Four significant digits: more can't be seen in a figure or table."""

    def short(value: Any) -> Any:
        if isinstance(value, list):
            return [short(each) for each in value]
        if isinstance(value, dict):
            return {name: short(each) for name, each in value.items()}
        return float(f"{value:.4g}") if isinstance(value, float) else value

    return {name: short(value) for name, value in event.items()}


def _read(path: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Name and files of each packed run."""
    for number, line in enumerate(_lines(path), 1):
        content = reading.parsed(line, path, f"line {number} of ")
        if content.get("schema") != schema.VERSION:
            raise RecordError(f"line {number} of {path} has schema version {content.get('schema')}, not 1", path)
        try:
            files = {name: text.encode() for name, text in content["texts"].items()}
            files |= {name: base64.b64decode(text, validate=True) for name, text in content["binary"].items()}
            name = safe(content["run"])
            missing = [each for each in TEXTS if each not in files]
            odd = [each for each in files if not SAFE.fullmatch(each)]
        except (KeyError, TypeError, AttributeError, ValueError, UsageError) as error:
            raise RecordError(f"line {number} of {path} is no packed run: {error}", path) from error
        if missing or odd:
            what = f"lacks {', '.join(missing)}" if missing else f"holds a file called {odd[0]!r}"
            raise RecordError(f"line {number} of {path} {what}: it was not written by pdcl, or changed since", path)
        checksum.is_sealed(files[schema.RESULT], path)
        yield name, files


def _lines(path: Path) -> list[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (OSError, EOFError) as error:
        raise RecordError(f"{path} holds no packed runs: {error}", path) from error
    if len(content) > LARGEST:
        raise RecordError(f"{path} holds more than {LARGEST >> 20} MB", path)
    return content.splitlines()
