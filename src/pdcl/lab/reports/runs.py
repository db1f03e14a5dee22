"""The page of any set of runs: how much of each it shows, and what it leaves out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdcl.errors import RecordError, UsageError
from pdcl.lab.reports.dossier import Detail, dossier, identity, read_files, read_story
from pdcl.lab.reports.summary import summary
from pdcl.records import Row, survey
from pdcl.reports.page import page

# What 100 runs may take of a page beside plotly's 1.5 MB; fewer runs get more each.
POINTS = 40_000
SAMPLES = 600
MAPS = 12


@dataclass
class Found:
    """Runs of all the directories, each once."""

    rows: dict[Path, Row] = field(default_factory=dict)
    unfinished: list[Path] = field(default_factory=list)
    unreadable: list[RecordError] = field(default_factory=list)


def find(directories: Sequence[Path]) -> Found:
    found = Found()
    for directory in directories:
        here = survey(directory)
        found.rows.update({row.path.resolve(): row for row in here.rows})
        found.unfinished += [path for path in here.unfinished if path.resolve() not in found.rows]
        found.unreadable += here.unreadable
    return found


def report_of_runs(directories: Sequence[Path], samples: bool, title: str | None) -> str:
    """The page for all runs below these directories."""
    found = find(directories)
    if not found.rows:
        raise UsageError(_nothing(directories, found))
    rows = list(found.rows.values())
    runs = [_run(row.path, detail) for row, detail in zip(rows, details(rows, samples), strict=True)]
    ids = {str(row.path): run["id"] for row, run in zip(rows, runs, strict=True)}
    title = title or f"pdcl report: {', '.join(directory.resolve().name for directory in directories)}"
    data = {
        "title": title,
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "summary": summary(rows, ids),
        "runs": runs,
        "left_out": _left_out(found),
    }
    return page(title, data)


def details(rows: Sequence[Row], samples: bool = True) -> list[Detail]:
    """How much of each run: less of each the more there are; a t-SNE map for the first seeds of the first groups."""
    count = len(rows)
    points = max(80, min(500, POINTS // count))
    shown = max(6, min(40, SAMPLES // count)) if samples else 0
    near = set(sorted(range(count), key=lambda place: (rows[place].seed, place))[:MAPS])
    return [Detail(points, shown, place in near) for place in range(count)]


def _run(path: Path, detail: Detail) -> dict[str, Any]:
    files = read_files(path)
    return {**dossier(files, read_story(path, points=detail.points), detail), **identity(files), "status": "finished"}


def _left_out(found: Found) -> list[str]:
    told = [str(error) for error in found.unreadable[:20]]
    if len(found.unreadable) > 20:
        told.append(f"{len(found.unreadable) - 20} more that can't be read")
    return told + [f"{path} is not finished" for path in found.unfinished[:20]]


def _nothing(directories: Sequence[Path], found: Found) -> str:
    where = ", ".join(map(str, directories))
    if found.unfinished:
        return f"no run in {where} is finished; see them with `pdcl watch {directories[0]}`"
    if found.unreadable:
        return f"no run in {where} can be read: {found.unreadable[0]}"
    return f"there are no runs in {where}; make one with `pdcl run digits pdcl --out {directories[0]}`"
