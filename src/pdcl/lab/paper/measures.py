"""What claims are about besides accuracy and forgetting: partitions, duals, borders, wrong labels, prices."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any

import numpy as np

from pdcl.errors import PdclError
from pdcl.lab.figures.borders import among_large, borders
from pdcl.lab.reports.dossier import distance_from_uniform
from pdcl.lab.reports.holdings import read_holdings
from pdcl.records import Row
from pdcl.records.reading import read_config, read_events, read_result

# What was measured on a run's snapshot of memory, beside a packed run: the snapshots are too large to be kept.
MEASURED = "measured.json"
Measure = Callable[[Row], float | None]
ON_SNAPSHOT: dict[str, Measure] = {}


def on_snapshot(measure: Measure) -> Measure:
    """A measure of memory.safetensors; of a packed run, what it was when the run was packed."""
    ON_SNAPSHOT[measure.__name__] = measure

    @wraps(measure)
    def known(row: Row) -> float | None:
        found = _kept(row.path)
        return measure(row) if found is None else found.get(measure.__name__)

    return known


def measured_on_snapshot(row: Row) -> dict[str, float | None]:
    """All measures of a run's snapshot, for its packed form."""
    found = _kept(row.path)
    return {name: measure(row) for name, measure in ON_SNAPSHOT.items()} if found is None else found


def _kept(run: Path) -> dict[str, float | None] | None:
    path = run / MEASURED
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def places(row: Row) -> list[int]:
    """n_k of all tasks at the end."""
    counts: list[list[int]] = read_result(row.path)["partitions"][-1:]
    return counts[0] if counts else []


def past_errors(row: Row) -> list[float]:
    """Final errors of past tasks."""
    return [1 - float(each or 0) for each in read_result(row.path)["accuracy"]["class_il"][-1][:-1]]


def distance(row: Row, past: bool = False) -> float | None:
    """How far the last partition is from equal shares, in percent of places; of past tasks alone, if that is asked."""
    counts = places(row)[:-1] if past else places(row)
    found = distance_from_uniform(counts) if counts else None
    return None if found is None else 100 * found


past_distance = partial(distance, past=True)


def correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Pearson's; None where one of both doesn't vary."""
    if len(a) != len(b) or len(a) < 2 or min(np.std(a), np.std(b)) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def past_duals(row: Row) -> list[float]:
    """Final λ of past tasks in the last task; the artificial dual of the current one is left out."""
    return [each for each in (read_result(row.path)["duals"] or [[]])[-1][:-1] if each is not None]


def past_dual(row: Row) -> float | None:
    """Their mean."""
    duals = past_duals(row)
    return statistics.fmean(duals) if duals else None


def late_growth(row: Row) -> float | None:
    """λ of past tasks at the end of a task minus that at its middle, mean over all; None where no middle was kept."""
    moved: dict[int, list[dict[str, Any]]] = {}
    for event in read_events(row.path):
        if event.get("event") == "duals_moved":
            moved.setdefault(event["task"], []).append(event)
    grown: list[float] = []
    for steps in moved.values():
        end = steps[-1]
        early = [each for each in steps if each["step"] <= end["step"] / 2 + 1]
        if not early:
            return None
        pairs = zip(early[-1]["duals"], end["duals"], strict=True)
        grown += [late - middle for middle, late in pairs if middle is not None and late is not None]
    return statistics.fmean(grown) if grown else None


# A packed run keeps measures by name: one that is measured otherwise from now on has another name.
@on_snapshot
def border_gain_in_tasks(row: Row) -> float | None:
    """Share of large duals at a border of their task's classes minus that of all stored samples, in points."""
    held = read_holdings(row.path)
    found = None if held is None else borders(held)
    return None if found is None else 100 * (found.large - found.all)


@on_snapshot
def wrong_stored(row: Row) -> float | None:
    """Share of stored samples whose label is wrong, in percent."""
    wrong = wrong_labels(row)
    return None if wrong is None else 100 * float(wrong.mean())


@on_snapshot
def wrong_among_large_of_tasks(row: Row) -> float | None:
    """Share of wrong labels among the highest tenth of each task's duals minus that among all, in points."""
    wrong, held = wrong_labels(row), read_holdings(row.path)
    found = None if wrong is None or held is None else among_large(wrong, held)
    return None if found is None else 100 * (found.large - found.all)


@on_snapshot
def rarer_class(row: Row) -> float | None:
    """The share of its task's places that the rarer class of a task has, mean over tasks, in percent: even is 50."""
    held = read_holdings(row.path)
    if held is None or held.y.ndim != 1:
        return None
    counts = [np.unique(held.y[held.task == task], return_counts=True)[1] for task in np.unique(held.task)]
    shares = [each.min() / each.sum() if len(each) > 1 else 0.0 for each in counts]
    return 100 * float(np.mean(shares)) if shares else None


def wrong_labels(row: Row) -> Any | None:
    """Which stored samples carry a wrong label: their ids say which training samples they are."""
    from safetensors.numpy import load_file

    path = row.path / "memory.safetensors"
    options = read_config(row.path)["stream_options"]
    if not path.is_file() or "noise" not in options:
        return None
    held = load_file(path)
    try:
        labels = _true_labels(row.stream, json.dumps({k: v for k, v in options.items() if k != "noise"}))
    except PdclError:
        return None
    return labels[held["id"]] != held["y"]


@cache
def _true_labels(stream: str, options: str) -> Any:
    """Labels of all training samples, task after task: what ids count."""
    from pdcl.streams.catalog import load

    return np.concatenate([task.data.targets.numpy() for task in load(stream, **json.loads(options)).tasks])
