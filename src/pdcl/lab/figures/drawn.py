"""What a set of figures came to: files, what each of them shows, and what could not be drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdcl.lab.comparing import Group
from pdcl.lab.figures.maps import Map
from pdcl.lab.figures.style import save
from pdcl.records import Row
from pdcl.records.table import MALFORMED

Draw = Callable[[], Any | None]


@dataclass(frozen=True)
class Shown:
    """What a figure shows: its kind, such as `partition`, and the runs that are in it."""

    kind: str
    rows: tuple[Row, ...] = ()


@dataclass
class Drawn:
    """What was written, by figure, and what was not, with the reason. shown: by the name of a figure's file; mapped:
    runs that maps show, and their maps; priced: runs whose duals are drawn over time."""

    out: Path
    formats: Sequence[str] | None = None
    paths: list[Path] = field(default_factory=list)
    shown: dict[str, Shown] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    mapped: dict[Path, Map] = field(default_factory=dict)
    priced: set[Path] = field(default_factory=set)

    def put(self, kind: str, suffix: str, draw_it: Draw | None, reason: str, rows: Iterable[Row] = ()) -> None:
        """Draw and save one figure; where there is nothing to draw (None), the reason is kept instead."""
        name = f"{kind}-{suffix}" if suffix else kind
        try:
            made = draw_it() if draw_it is not None else None
        except MALFORMED as error:
            # Files that were changed since: one bad run must not keep the other figures from being drawn.
            made = None
            reason = f"its runs hold values that can't be drawn ({type(error).__name__}: {str(error)[:100]})"
        if made is None:
            self.skipped[name] = reason
            return
        paths = save(made, self.out, name, self.formats)
        self.paths += paths
        self.shown[paths[0].stem] = Shown(kind, tuple(rows))


def rows_of(groups: Iterable[Group]) -> list[Row]:
    return [row for member in groups for row in member.rows]
