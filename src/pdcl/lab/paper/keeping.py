"""The runs behind the page, kept beside it in one small file: `pdcl unpack` makes records of them again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pdcl.lab.figures import maps
from pdcl.lab.figures.drawn import Drawn
from pdcl.lab.figures.selecting import options_given
from pdcl.lab.paper.measures import MEASURED, measured_on_snapshot
from pdcl.lab.studies.packing import DUAL_STEPS, pack
from pdcl.records import Row
from pdcl.records.writing import dumps
from pdcl.storage.disk import reported

NAME = "runs.jsonl.gz"
MIDDLE_AND_LAST = 2
# What is asked of runs with another tolerance is how their duals grow.
SWEPT = "tolerance"


def keep_runs(rows: Sequence[Row], drawn: Drawn, place: Path) -> Path:
    """Pack these runs into `place`: what the page needs of them, and no sample of anybody's data.

    Runs whose duals are drawn over time, and all at other tolerances, keep a dozen dual steps of each task, others the
    middle one and the last; those that a map shows keep the map.
    """
    by_path = {row.path: row for row in rows}

    def extra(run: Path) -> dict[str, bytes]:
        files = {each.name: each.read_bytes() for each in sorted(run.glob("whatif-task*.json"))}
        files[MEASURED] = dumps(measured_on_snapshot(by_path[run])).encode()
        return files | ({maps.FILE: dumps(drawn.mapped[run].as_json()).encode()} if run in drawn.mapped else {})

    def steps(run: Path) -> int:
        return DUAL_STEPS if run in drawn.priced or SWEPT in options_given(by_path[run]) else MIDDLE_AND_LAST

    with reported(place / NAME):
        pack(by_path, place / NAME, extra, steps)
    return place / NAME
