"""What a run gives back, and what stands of it in `result.json`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdcl import metrics
from pdcl.judging.table import Promises
from pdcl.learning.loop import History
from pdcl.lifelong.learner import Learner
from pdcl.printable import counted


@dataclass(frozen=True, repr=False)
class Result:
    """One learner through one stream. `accuracy["class_il"][j][i]`: score on task i after learning task j."""

    mean_accuracy: float
    mean_forgetting: float
    accuracy: dict[str, list[list[float]]]
    duals: list[list[float]]
    partitions: list[list[int]]
    confusion: list[list[int]]
    cost: dict[str, float]
    learner: Learner | None = field(repr=False, default=None)
    path: Path | None = None
    tables: list[Promises] = field(repr=False, default_factory=list)

    @property
    def promises(self) -> Promises | None:
        """What became of every limit after the last task; None where none is stated. `tables` has each task's."""
        return self.tables[-1] if self.tables else None

    def __repr__(self) -> str:
        tasks = len(self.accuracy.get("class_il", []))
        kept = "" if self.path is None else f", record {self.path}"
        return (
            f"Result(accuracy {_percent(self.mean_accuracy)}, forgetting {_percent(self.mean_forgetting)} over "
            f"{counted(tasks, 'task')}, {self.cost.get('seconds', 0.0):.1f} s{kept})"
        )

    def as_json(self) -> dict[str, Any]:
        keys = ("mean_accuracy", "mean_forgetting", "accuracy", "duals", "partitions", "confusion", "cost")
        return {key: getattr(self, key) for key in keys} | {"promises": [table.as_json() for table in self.tables]}


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def result_of(history: History, learner: Learner, cost: dict[str, float], path: Path | None) -> Result:
    """Read the numbers off the history of a run."""
    return Result(
        metrics.mean_accuracy(history.class_il),
        metrics.mean_forgetting(history.class_il),
        {"class_il": history.class_il, "task_il": history.task_il},
        history.duals,
        history.partitions,
        history.confusion,
        cost,
        learner,
        path,
        [Promises.from_json(table) for table in history.promises],
    )


def peak_memory_mb() -> float:
    """The most memory that this process has held; 0 on Windows, which has no such count in Python."""
    if sys.platform == "win32":
        return 0.0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


class Clock:
    """Wall time, CPU time and peak memory since it was made; `before` is what an interrupted run had spent."""

    def __init__(self, before: dict[str, float] | None = None) -> None:
        self.wall, self.cpu, self.before = time.perf_counter(), time.process_time(), before or {}

    def cost(self) -> dict[str, float]:
        peak = peak_memory_mb()
        return {
            "seconds": round(time.perf_counter() - self.wall + self.before.get("seconds", 0.0), 3),
            "cpu_seconds": round(time.process_time() - self.cpu + self.before.get("cpu_seconds", 0.0), 3),
            "peak_memory_mb": round(max(peak, self.before.get("peak_memory_mb", 0.0)), 1),
        }
