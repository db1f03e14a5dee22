"""The runs behind the page, kept beside it in one small file: `pdcl unpack` makes records of them again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from pdcl.records import Row
from pdcl.records.packing import pack
from pdcl.records.writing import dumps
from pdcl.reports.holdings import FILE
from pdcl.reports.paper.measures import MEASURED, measured_on_snapshot
from pdcl.storage.disk import reported

NAME = "runs.jsonl.gz"


def keep_runs(rows: Sequence[Row], mapped: Collection[Path], place: Path) -> Path:
    """Pack these runs into `place`; those that a map is drawn of keep a thin snapshot of their memory."""
    by_path = {row.path: row for row in rows}

    def extra(run: Path) -> dict[str, bytes]:
        files = {each.name: each.read_bytes() for each in sorted(run.glob("whatif-task*.json"))}
        files[MEASURED] = dumps(measured_on_snapshot(by_path[run])).encode()
        return files | ({FILE: thin_snapshot(run / FILE)} if run in mapped else {})

    with reported(place / NAME):
        pack(by_path, place / NAME, extra)
    return place / NAME


def thin_snapshot(path: Path) -> bytes:
    """A snapshot without inputs, and with features in half precision: what a map needs."""
    from safetensors.numpy import load_file, save

    held = load_file(path)
    held["x"] = np.zeros((len(held["task"]), 1), np.float16)
    if "features" in held:
        held["features"] = held["features"].reshape(len(held["task"]), -1).astype(np.float16)
    return save({name: np.ascontiguousarray(column) for name, column in sorted(held.items())})
