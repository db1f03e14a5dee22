"""A model's life as one page: every limit, what was then, what is now and the verdict, update by update."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

from pdcl.errors import PdclError
from pdcl.judging.promise import NEW, Promise
from pdcl.lifelong.entry import REBASED, REFUSED, ROLLED_BACK, UNDONE, decided, newest_promises, promises_of
from pdcl.lifelong.save import KIND
from pdcl.records import schema
from pdcl.records.checkpoint import fitting
from pdcl.records.writing import finite
from pdcl.reports.page import LIFE, page
from pdcl.reports.promises import shown
from pdcl.running.load import load
from pdcl.storage.disk import read_regular
from pdcl.storage.serialize import from_parts, json_in
from pdcl.storage.vault import MANIFEST, READY, Vault

LARGEST = 2**20
NAMES = {"drop": "against the model in use", "since": "since it was learned", "miss": "missed", "alarm": "false alarms"}


def is_model(path: Path) -> bool:
    """Whether a directory is a saved learner, and not a run that holds one."""
    # While a state moves into its place, and after a kill there, its manifest is in `READY`.
    place = next((each for each in (path / MANIFEST, path / READY / MANIFEST) if each.is_file()), None)
    if (path / schema.CONFIG).exists() or place is None:
        return False
    try:
        content = json_in(read_regular(place, LARGEST))
    except (PdclError, OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == KIND


def life(path: Path, title: str | None = None) -> str:
    """The page of the learner saved in this directory."""
    title = title or f"pdcl report: {path.resolve().name}"
    with fitting(path):
        return page(title, finite(_data(path, title)), LIFE)


def _data(path: Path, title: str) -> dict[str, Any]:
    state = from_parts(Vault(path, KIND).read().parts)
    entries: list[dict[str, Any]] = state["lineage"]["entries"]
    newest = newest_promises(entries)
    return {
        "title": title,
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "method": str(state["model"]["learner"]),
        "classes": len(state["model"]["spec"]["labels"]),
        "updates": [_update(entry) for entry in entries],
        "gates": [row for number, entry in enumerate(entries) for row in _gate_rows(number, entry)],
        "tasks": _tasks(entries),
        "newest": None if newest is None else shown(newest),
        "sliders": _sliders(path) if state["model"]["learner"] == "Exact" else [],
    }


def _sliders(path: Path) -> list[dict[str, Any]]:
    """What other limits would give; nothing where the model's features are a module that its owner has."""
    try:
        return load(path).other_limits()
    except PdclError:
        return []


def _update(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        **{key: entry[key] for key in ("task", "name", "how", "when", "samples")},
        "score": entry["result"].get("test"),
        "note": _note(entry),
    }


def _note(entry: dict[str, Any]) -> str:
    result = entry["result"]
    if said := decided(entry):
        return said
    if entry["how"] == REBASED:
        old, new = (_written(result[key], result["unit"]) for key in ("old", "new"))
        return f"limit {result['limit']}: at most {old} before, {new} from now on"
    table = promises_of(entry)
    if table is None:
        return ""
    counts = Counter(row.verdict for row in table)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def _gate_rows(number: int, entry: dict[str, Any]) -> list[list[str]]:
    """What the gate said about an update, group by group: limit, before, now, drop and verdict."""
    record = entry["result"].get("update") or {}
    if entry["how"] == ROLLED_BACK:
        return []
    return [
        [str(number + 1), str(entry["name"]), *_gate_row(row), str(row["verdict"])] for row in record.get("rows", [])
    ]


def _gate_row(row: dict[str, Any]) -> list[str]:
    kind = str(row["criterion"])
    unit = "loss" if kind == "loss" else "error"
    named = f"{row['group']}, {NAMES.get(kind, kind)}"
    if kind in ("drop", "since"):
        points = [f"{100 * row[key]:+.1f} pt" for key in ("limit", "estimate")]
        return [named, points[0], _written(row["before"], unit), _written(row["now"], unit), points[1]]
    return [named, _written(row["limit"], unit), "–", _written(row["estimate"], unit), "–"]


def _written(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{100 * value:.1f} %" if unit == "error" else f"{value:.3g}"


def _tasks(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was measured of each task, by update. Tasks of one name are told apart by the order of their rows.

    What was rolled back is no part of the model, so its measurements aren't either.
    """
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for update, entry in enumerate(entries):
        met: Counter[str] = Counter()
        for row in () if entry["how"] in (ROLLED_BACK, REFUSED, UNDONE) else promises_of(entry) or ():
            key = (row.task, met[row.task])
            met[row.task] += 1
            about = found.setdefault(key, {"name": row.task, "unit": row.unit, "points": []})
            about["unit"] = row.unit
            about["points"].append({**_point(update, row), "unit": row.unit, "new": row.kind == NEW})
    return list(found.values())


def _point(update: int, row: Promise) -> dict[str, Any]:
    scale = 100 if row.unit == "error" else 1
    numbers = {name: getattr(row, name) for name in ("limit", "then", "now", "low", "high")}
    return {
        "update": update,
        "verdict": row.verdict,
        "sentence": row.sentence,
        "written": row.written or "new",
        **{name: None if value is None else scale * value for name, value in numbers.items()},
    }
