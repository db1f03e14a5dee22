"""Everything that a page shows of one run, as plain values. What is absent is named, with the reason."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdcl.errors import RecordError
from pdcl.lab.reports import holdings
from pdcl.lab.reports.command import command
from pdcl.lab.reports.story import Story
from pdcl.lab.reports.tail import Tail, read_object
from pdcl.lab.reports.thinning import rounded
from pdcl.records import schema
from pdcl.records.checksum import is_sealed
from pdcl.records.naming import unlimited
from pdcl.records.reading import todays
from pdcl.records.writing import finite

# The verdict of the gate, copied beside the run or in the evidence folder that was put there.
GATE = ("verdict.json", "evidence/verdict.json", "gate/verdict.json")

# Beyond this, what stands in a file is no measurement.
LARGEST = 1e300


@dataclass(frozen=True)
class Detail:
    """How much of each run goes onto a page.

    `near`: place stored samples by t-SNE, which takes a second; by principal components if False; not at all if None.
    """

    points: int = 400
    samples: int = 24
    near: bool | None = True


@dataclass
class Files:
    """The files of a run as far as they can be read."""

    path: Path
    config: dict[str, Any]
    result: dict[str, Any] | None
    problems: list[str]


def read_files(path: Path, root: Path | None = None) -> Files:
    """Config and result of a run; what can't be read becomes a problem instead of an error."""
    problems: list[str] = []
    config = todays(_read(path / schema.CONFIG, root, problems))
    if missing := schema.missing_keys(config, schema.Config):
        problems.append(f"{schema.CONFIG} lacks {', '.join(missing)}")
    result = _read(path / schema.RESULT, root, problems, is_sealed) or None
    if result is not None and (missing := schema.missing_keys(result, schema.Result)):
        problems.append(f"{schema.RESULT} lacks {', '.join(missing)}")
        result = None
    return Files(path, config, result, problems)


def _read(
    path: Path, root: Path | None, problems: list[str], check: Callable[[bytes, Path], Any] | None = None
) -> dict[str, Any]:
    try:
        return read_object(path, root, check) or {}
    except RecordError as error:
        problems.append(str(error).replace(str(path.parent), "").lstrip("/\\"))
        return {}


def read_story(path: Path, root: Path | None = None, points: int = 400) -> Story:
    """All events of a run, folded."""
    story, tail = Story(points), Tail(path / schema.EVENTS, root)
    for event in tail.events():
        story.hear(event)
    story.bad += tail.bad
    return story


def dossier(files: Files, story: Story, detail: Detail, root: Path | None = None) -> dict[str, Any]:
    """The whole of one run for a page."""
    absent: dict[str, str] = {}
    content = {
        **identity(files),
        "story": story.as_json(detail.points),
        "accuracy": _accuracy(files.result, story),
        "confusion": (files.result or {}).get("confusion") or [],
        "labels": _labels(story),
        "partitions": _partitions(files.result, story),
        "config": _config(files.config),
        "command": _command(files.config),
        "gate": _gate(files.path, root),
        **_memory(files, detail, absent, root),
    }
    if not story.events:
        absent["events"] = f"There is no {schema.EVENTS} to draw this from."
    if files.result is None:
        absent["result"] = f"The run has no {schema.RESULT} yet."
    return {**finite(content), "absent": absent, "problems": files.problems}


def identity(files: Files) -> dict[str, Any]:
    """What a run is called, and its numbers."""
    config, result = files.config, files.result or {}
    cost = result.get("cost") or {}
    return {
        "id": hashlib.sha256(os.fsencode(files.path.absolute())).hexdigest()[:16],
        "name": files.path.name,
        "stream": _word(config.get("stream"), "unknown stream"),
        "method": _word(config.get("method"), "unknown method"),
        "label": _word(config.get("label") or config.get("method"), files.path.name) + unlimited(_values(config)),
        "preset": _word(config.get("preset"), ""),
        "memory": config.get("memory") if isinstance(config.get("memory"), int | str) else None,
        "seed": config.get("seed") if isinstance(config.get("seed"), int) else None,
        "mean_accuracy": _share(result.get("mean_accuracy")),
        "mean_forgetting": _share(result.get("mean_forgetting")),
        "seconds": _share(cost.get("seconds") if isinstance(cost, dict) else None),
    }


def _values(config: Mapping[str, Any]) -> dict[str, Any]:
    options = config.get("options")
    known = options if isinstance(options, dict) else {}
    return {name: each.get("value") for name, each in known.items() if isinstance(each, dict)}


def _word(value: Any, otherwise: str) -> str:
    return str(value)[:300] if isinstance(value, str | int | float) and value != "" else otherwise


def _share(value: Any) -> float | None:
    """A finite number, else None: integers may be too large for one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        return None
    return float(value)


def _accuracy(result: Mapping[str, Any] | None, story: Story) -> dict[str, list[list[float | None]]]:
    """Both matrices: from the result, or as far as the events have come."""
    if result is not None and isinstance(result.get("accuracy"), dict):
        return {kind: _matrix(result["accuracy"].get(kind)) for kind in ("class_il", "task_il")}
    told = {"class_il": story.class_il, "task_il": story.task_il}
    return {kind: _matrix([rows[task] for task in sorted(rows)]) for kind, rows in told.items()}


def _matrix(rows: Any) -> list[list[float | None]]:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        return []
    return [[rounded(_share(value)) for value in row] for row in rows]


def _labels(story: Story) -> list[str]:
    """Names of the head's outputs: those announced, or the classes in the order they came."""
    return story.labels or [name for chapter in story.chapters for name in chapter.classes]


def _partitions(result: Mapping[str, Any] | None, story: Story) -> dict[str, Any]:
    """Samples held per task after each task, and how far that is from equal shares: half the sum of differences."""
    told = [story.partitions[task] for task in sorted(story.partitions)]
    held = (result or {}).get("partitions") or told
    rows = [row for row in held if _is_counts(row)] if isinstance(held, list) else []
    return {"counts": rows, "distance": [distance_from_uniform(row) for row in rows], "capacity": story.capacity}


def _is_counts(row: Any) -> bool:
    return isinstance(row, list) and all(isinstance(count, int) for count in row)


def distance_from_uniform(counts: Sequence[int]) -> float | None:
    """Total variation between the shares of memory and equal ones: 0 is uniform, near 1 is all in one task of many."""
    total = sum(counts)
    return rounded(sum(abs(count / total - 1 / len(counts)) for count in counts) / 2) if total else None


def _config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Options with their sources, and all else that a config holds."""
    found = config.get("options")
    options = found if isinstance(found, dict) else {}
    rows = [[name, each.get("value"), each.get("source")] for name, each in options.items() if isinstance(each, dict)]
    rest = {key: value for key, value in config.items() if key != "options"}
    return {"options": sorted(rows, key=lambda row: str(row[0])), "rest": rest}


def _command(config: Mapping[str, Any]) -> str | None:
    try:
        return command(config)
    except (KeyError, TypeError, AttributeError):
        return None


def _gate(path: Path, root: Path | None) -> dict[str, Any] | None:
    for name in GATE:
        try:
            found = read_object(path / name, root)
        except RecordError as error:
            return {"verdict": "unreadable", "problem": str(error)}
        if found is not None:
            return found
    return None


def _memory(files: Files, detail: Detail, absent: dict[str, str], root: Path | None) -> dict[str, Any]:
    """Stored samples and their map."""
    path = files.path
    missing = f"The run left no {holdings.FILE}: it keeps no memory, was run with --no-snapshot, or hasn't ended."
    try:
        held = holdings.read_holdings(path, root)
    except RecordError as error:
        held, missing = None, f"{error}"
    if held is None or not len(held.x):
        absent |= {"samples": missing, "map": missing}
        return {"samples": None, "map": None}
    found = {"samples": holdings.samples(held, detail.samples) if detail.samples else None}
    if not detail.samples:
        absent["samples"] = "Left out with --no-samples."
    if detail.near is None:
        absent["map"] = "The map is being drawn …"
        return {**found, "map": None}
    chart = holdings.chart(held, detail.near)
    if chart is None:
        absent["map"] = "The snapshot holds no features, or too few samples, to place on a map."
    return {**found, "map": chart}
