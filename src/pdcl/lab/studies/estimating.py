"""How long runs will take: from runs of the same kind, or a rough table; None where neither helps."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from pdcl.lab.studies.spec import RunSpec

# Seconds of a run with a memory on one core of a laptop, with the epochs of the preset `tuned`.
ROUGH = {
    "digits": 3.0, "synthetic": 2.0, "mnist": 12.0, "organa": 60.0, "speech": 60.0, "tiny_imagenet": 600.0,
    "banking77": 25.0,
}  # fmt: skip
# How many times as long a method takes as replay does.
SLOWER = {"joint": 3.0, "gem": 8.0, "gss": 3.5, "xder": 3.0, "agem": 1.5, "pdcl0": 1.3, "pdcl": 1.3, "pdcl-s": 1.5}


class Estimator:
    """Learns from every finished run; what is nearest to the run in question counts."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, ...], list[float]] = defaultdict(list)

    @classmethod
    def from_records(cls, out: Path) -> Estimator:
        """What the finished runs of a directory took, tuning included."""
        from pdcl.records.table import TUNING, scan

        found = cls()
        for place in (out, out / TUNING):
            for row in scan(place) if place.is_dir() else ():
                found.learn(row.stream, row.label, row.memory, row.seconds)
        return found

    def learn(self, stream: str, label: str, memory: int | str | None, seconds: float) -> None:
        if math.isfinite(seconds):
            for key in ((stream, label, str(memory)), (stream, label), (stream,)):
                self._seen[key].append(seconds)

    def seconds(self, spec: RunSpec) -> float | None:
        """How long one run takes; None where nothing is known."""
        for key in ((spec.stream, spec.label, str(spec.memory)), (spec.stream, spec.label), (spec.stream,)):
            if key in self._seen:
                return statistics.fmean(self._seen[key])
        rough = ROUGH.get(spec.stream)
        return None if rough is None else rough * SLOWER.get(spec.method, 1.0)

    def total(self, specs: Iterable[RunSpec], workers: int) -> float | None:
        """How long all of them take side by side; None where one is unknown."""
        found = [self.seconds(spec) for spec in specs]
        known = [seconds for seconds in found if seconds is not None]
        if len(known) < len(found):
            return None
        # The last run to start may be a long one, and then it runs alone.
        return max(sum(known) / workers, max(known, default=0.0))
