"""The map of what memory held at the end of a run, and where large duals lie on it.

Made of a run's snapshot; a packed run keeps the map alone, with no sample and no features of one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pdcl.errors import RecordError
from pdcl.lab.figures.borders import Borders, borders
from pdcl.lab.reports.holdings import Holdings, chart
from pdcl.lab.reports.tail import read_object

FILE = "map.json"
# Older maps have `borders`, counted across tasks: those are not shown.
KEY = "borders_in_tasks"


@dataclass(frozen=True)
class Map:
    """points: as `chart` has them; borders: shares of all stored samples, not only of those on the map."""

    points: dict[str, Any]
    borders: Borders | None

    def as_json(self) -> dict[str, Any]:
        return {"points": self.points, KEY: None if self.borders is None else asdict(self.borders)}


def map_of(held: Holdings) -> Map | None:
    """None where there are no features, or too few samples for a map."""
    points = chart(held)
    return None if points is None else Map(points, borders(held))


def read_map(run: Path) -> Map | None:
    """The map that a packed run kept; None where it has none. A damaged one is a RecordError."""
    path = run / FILE
    found = read_object(path)
    if found is None:
        return None
    try:
        points, shares = found["points"], found.get(KEY)
        columns = [points[name] for name in ("x", "y", "task", "label", "dual")]
        if len({len(column) for column in columns}) > 1 or min(points["task"], default=0) < 0 or points["of"] < 0:
            raise ValueError("its columns don't belong together")
        return Map(points, None if shares is None else Borders(float(shares["large"]), float(shares["all"])))
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{path} is no map of a memory: {error}", path) from error
