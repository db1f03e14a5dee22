"""How many places in memory a limit needs: runs of `even` at a few sizes, and a curve through each task's errors.

error_k(n) = a + c · n^(-0.6), a ≥ 0, c ≥ 0, for n places of task k; a is what more memory can't mend. Errors are those
after the last task, on a tenth of the training data that was held out; test data is not touched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdcl.errors import UsageError
from pdcl.judging.places import Curve, fit
from pdcl.limits.limits import as_limits
from pdcl.limits.tolerance import Tolerance, describe
from pdcl.methods.catalog import method
from pdcl.past.held_back import allowed
from pdcl.running.options import resolve
from pdcl.running.result import Result
from pdcl.running.run import run
from pdcl.streams.task import Stream

# The joint objective over an evenly divided memory, whatever a stream's table says of duals and limits.
EVEN: dict[str, Any] = {"tolerance": None, "guard": 0, "witness": 0, "base": 1.0, "drift": 0.1, "soften": 0.6}


@dataclass(frozen=True)
class Need:
    """What one task needs. limit: as an error rate, None where it has none. samples: of its training data."""

    name: str
    written: str
    limit: float | None
    curve: Curve
    samples: int

    @property
    def places(self) -> int | None:
        """Places that the limit needs; None where it is out of reach or can't be told."""
        found = None if self.limit is None else self.curve.places(self.limit)
        return None if found is None or found > self.samples else max(1, math.ceil(found))

    @property
    def sentence(self) -> str:
        if self.limit is None:
            return "no limit"
        if self.places is not None:
            return f"{self.places:,} place{'s' * (self.places != 1)}{self._untried(self.places)}"
        if not self.curve.falls:
            return "can't be told: its error doesn't fall with memory in these runs"
        if self.limit <= self.curve.a:
            return f"out of reach: a = {100 * self.curve.a:.1f} %"
        return f"out of reach: more than the {self.samples:,} samples that it has"

    def _untried(self, places: int) -> str:
        tried = [n for n, _ in self.curve.points]
        if places < min(tried):
            return " (below what was tried)"
        return " (beyond what was tried)" if places > math.ceil(max(tried)) else ""


@dataclass(frozen=True)
class Total:
    """What memory must hold for all limits that can be planned. tasks: of the stream, the newest too.

    largest: the largest need of a past task. summed: all needs, and the largest once more for the newest task.
    alike: all limits are written alike, so memory is divided evenly. unknown: limits out of reach, or untold.
    """

    tasks: int
    classes: int
    largest: int
    summed: int
    alike: bool
    unknown: int

    @property
    def sentence(self) -> str:
        left = f"; and {self.unknown} limit{'s' * (self.unknown != 1)} out of reach or unknown"
        and_more = left if self.unknown else ""
        if not self.largest:
            return f"in all: unknown{and_more}"
        even = f"{self.tasks} tasks, the newest too, × the largest need ({self.largest:,})"
        most, last = self._with_witnesses(self.tasks * self.largest)
        if self.alike:
            return f"in all: {most:,} places: {even}, since limits that are alike leave memory even{last}{and_more}"
        least, first = self._with_witnesses(self.summed)
        return (
            f"in all: {least:,} to {most:,} places: at best the sum of needs, the newest task counted as the largest"
            f"{first}; where memory is divided evenly, {even}{last}{and_more}"
        )

    def _with_witnesses(self, replayed: int) -> tuple[int, str]:
        memory = memory_for(replayed, self.tasks, self.classes)
        return memory, f", and {memory - replayed:,} for witnesses" if memory > replayed else ""


def memory_for(replayed: int, tasks: int, classes: int) -> int:
    """The least memory that leaves so many places for replay, beside the witnesses that a stated limit sets aside."""
    memory, short = replayed, 1
    while short > 0:
        witnesses = tasks * allowed(None, None, True, memory, tasks, classes=classes).witnesses
        short = replayed + witnesses - memory
        memory += max(short, 0)
    return memory


def total(stream: Stream, needs: Sequence[Need]) -> Total:
    """Of all needs of a stream's past tasks, what its memory comes to."""
    limited = [need for need in needs if need.limit is not None]
    places = [need.places for need in limited if need.places is not None]
    largest = max(places, default=0)
    classes = stream.spec.outputs if stream.spec.kind == "classification" else 0
    alike = len({need.written for need in needs}) <= 1
    return Total(len(stream.tasks), classes, largest, sum(places) + largest, alike, len(limited) - len(places))


def usual_sizes(stream: Stream) -> list[int]:
    """Half, once and twice the memory that a stream has if nothing is said."""
    memory = resolve(method("even"), stream, None, {}).values.get("memory")
    if not isinstance(memory, int):
        raise UsageError(f"memory={memory!r} is no number of samples; say what to try: --memory 100,200,400")
    return [memory // 2, memory, 2 * memory]


def plan(
    stream: Stream,
    tolerance: Any,
    sizes: Sequence[int],
    *,
    preset: str = "auto",
    seeds: Sequence[int] = (0, 1),
    **options: Any,
) -> list[Need]:
    """What each past task needs to keep its limit to the end of the stream. sizes: memories to try, two or more."""
    limits = as_limits(tolerance)
    if len(set(sizes)) < 2:
        raise UsageError(f"a curve needs two sizes of memory or more, not {list(sizes)}: --memory 100,200,400")
    past = stream.tasks[:-1]
    stated = {task.index: limits.of(task.name, task.index) for task in past}
    for task in past:
        limit = stated[task.index]
        if limit is not None and limit.unit != "error":
            raise UsageError(f"the limit of {task.name} is a loss; places are planned for error rates: +2pt, 5%")
    held = stream.for_tuning()
    runs = {
        size: [run(held, "even", preset=preset, memory=size, seed=each, **{**EVEN, **options}) for each in seeds]
        for size in sorted(set(sizes))
    }
    return [_need(task.name, stated[task.index], len(held.tasks[task.index].data), runs, task.index) for task in past]


def _need(name: str, limit: Tolerance | None, samples: int, runs: Mapping[int, Sequence[Result]], task: int) -> Need:
    """From a task's error when it was learned, over all runs, and its places and error at the end, for each size."""
    learned, points = [], []
    for made in runs.values():
        learned += [1 - each.accuracy["class_il"][task][task] for each in made]
        places = np.mean([each.partitions[-1][task] for each in made])
        points.append((float(places), float(np.mean([1 - each.accuracy["class_il"][-1][task] for each in made]))))
    value = None if limit is None else limit.of(0, float(np.mean(learned)))
    return Need(name, "–" if limit is None else describe(limit), value, fit(points), samples)
