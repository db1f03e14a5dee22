"""What if a tolerance were another? Re-solve a run's last task from the same starting point, and hold the price to it.

P(ε + γ) − P(ε)  against the line  −λ_k γ     (Theorem 1: for a convex problem never below it)
"""

from __future__ import annotations

import itertools
import os
import statistics
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from pdcl.algorithm.prices import value_bound
from pdcl.errors import UsageError
from pdcl.lab.studies.engine import Engine
from pdcl.lab.studies.local import LocalProcesses
from pdcl.learning.batches import EVALUATION_BATCH, seeded
from pdcl.learning.events import DualsMoved, Event
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule
from pdcl.records.checkpoint import APART
from pdcl.records.writing import dumps
from pdcl.running.rebuild import described
from pdcl.storage.disk import reported, write_whole
from pdcl.storage.serialize import as_parts, from_parts
from pdcl.streams.data import everything
from pdcl.streams.task import Stream, Task

CHANGES = (-0.5, -0.25, 0.25, 0.5, 1.0)
SETTLED = 0.5
LOOKS = 30


@dataclass(frozen=True)
class Solved:
    """One solution: the current task's mean loss P, λ_k over the last dual steps, and L_k on memory."""

    value: float
    dual: float
    on_memory: float


@dataclass(frozen=True)
class Point:
    """P(ε + γ) − P(ε), where the line is, and the standard error of their difference (None: one repeat)."""

    change: float
    gain: float
    error: float | None
    line: float
    on_memory: float

    @property
    def above(self) -> bool:
        return self.gain >= self.line

    @property
    def compatible(self) -> bool:
        """Not below the line by more than two standard errors."""
        return self.gain >= self.line - 2 * (self.error or 0.0)


@dataclass(frozen=True)
class Curve:
    """What-if solutions for one past task, and whether its price held."""

    task: int
    name: str
    tolerance: float
    dual: float
    value: float
    points: list[Point]
    repeats: int
    longer: int = 1

    @property
    def share_above(self) -> float:
        return statistics.mean(point.above for point in self.points)

    @property
    def held(self) -> bool:
        return all(point.compatible for point in self.points)


@dataclass(frozen=True)
class Job:
    """One re-solve, for a process that knows nothing else."""

    run: str
    start: dict[str, bytes]
    current: int
    task: int
    change: float
    repeat: int
    longer: int


def whatif(
    run: str | Path,
    task: int,
    tolerances: Sequence[float] | None = None,
    *,
    repeats: int = 1,
    longer: int = 1,
    workers: int = 2,
    engine: Engine | None = None,
) -> Curve:
    """Re-solve the run's last task at other tolerances of past task `task` (from 0).

    tolerances: what ε_k may be instead; by default a few around what it was. repeats: solutions by other seeds, to know
    the noise. longer: so many times the epochs and dual steps, to let duals settle. workers: processes; engine: what
    carries the re-solves instead of them.
    """
    learner, stream, schedule = described(run)
    current = len(stream.tasks) - 1
    if not learner.report().has_tolerances:
        raise UsageError(f"{run}: this method has no tolerances, so there is nothing to change")
    if not 0 <= task < current:
        raise UsageError(f"task {task} is no past task of {run}; choose one of 0 to {current - 1}")
    for each in stream.tasks[:current]:
        Loop(learner, stream, schedule).learn(each)
    epsilon = learner.report().tolerances[task]
    changes = [0.0, *(_changes(epsilon, tolerances))]
    start = as_parts({"learner": learner.state_dict()}, APART)
    place = os.path.abspath(run)
    jobs = [Job(place, start, current, task, c, r, longer) for c in changes for r in range(repeats)]
    solved = _carried_out(jobs, workers, engine)
    table = {change: solved[i * repeats : (i + 1) * repeats] for i, change in enumerate(changes)}
    return replace(curve(task, stream.tasks[task].name, epsilon, table), longer=longer)


def _changes(epsilon: float, tolerances: Sequence[float] | None) -> list[float]:
    if tolerances is None:
        return [share * epsilon for share in CHANGES]
    if bad := [value for value in tolerances if value < 0]:
        raise UsageError(f"a tolerance can't be negative, but {bad[0]} is")
    return sorted({value - epsilon for value in tolerances if value != epsilon})


def _carried_out(jobs: Sequence[Job], workers: int, engine: Engine | None) -> list[Solved]:
    if engine is None and workers == 1:
        return [carry_out(job) for job in jobs]
    with nullcontext(engine) if engine else LocalProcesses(workers) as carrier:
        return carrier.map(carry_out, jobs)


def carry_out(job: Job) -> Solved:
    """What a process does: the learner at its starting point, one tolerance changed, the last task solved."""
    torch.set_num_threads(1)
    learner, stream, schedule = described(job.run)
    learner.load_state_dict(from_parts(job.start)["learner"])
    if job.repeat:
        learner.seed += 1000 * job.repeat
        learner.generator = seeded(learner.seed, 1)
    return solve(learner, stream, replace(schedule, epochs=schedule.epochs * job.longer), job)


def solve(learner: Any, stream: Stream, schedule: Schedule, job: Job) -> Solved:
    """Learn the current task with ε_k + γ. The learner stands at the end of the task before.

    Primal and dual iterates circle around the solution, so all three numbers are means over the last dual steps.
    """
    learner.core.tolerances.loosen(job.task, job.change)
    learner.core.pace = learner.core.pace.longer(job.longer)
    current = stream.tasks[job.current]
    path: list[Solved] = []
    steps = itertools.count()

    def listen(event: Event) -> None:
        core = learner.core
        if isinstance(event, DualsMoved) and looks(next(steps), core.pace.dual_steps_of(core.progress.steps)):
            on_memory = event.slacks[job.task] + event.tolerances[job.task]
            path.append(Solved(mean_loss(learner, current), event.duals[job.task], on_memory))

    Loop(learner, stream, schedule, listen).learn(current)
    columns = [[getattr(each, name) for each in path] for name in ("value", "dual", "on_memory")]
    return Solved(*(statistics.mean(column) for column in columns))


def looks(step: int, steps: int) -> bool:
    """Whether the loss on all data is looked at in this dual step (from 0) of so many: it is dear.

    In some 30 of the last half, evenly spread, the last one among them.
    """
    last = max(1, int(SETTLED * steps))
    return step >= steps - last and (steps - 1 - step) % max(1, last // LOOKS) == 0


@torch.no_grad()
def mean_loss(learner: Any, task: Task) -> float:
    """P: the mean loss over all of the task's training data, in eval mode."""
    total = 0.0
    for index in everything(task.data).split(EVALUATION_BATCH):
        x, y = task.data.fetch(index)
        total += float(learner.losses(learner.evaluated(x), y.to(learner.place)).double().sum())
    return total / len(task.data)


def curve(task: int, name: str, epsilon: float, solved: dict[float, list[Solved]]) -> Curve:
    """Differences to the solution at γ = 0, repeat by repeat: what chance does to both cancels."""
    base = solved[0.0]
    dual = statistics.mean(each.dual for each in base)
    points = []
    for change, found in sorted(solved.items()):
        if change == 0:
            continue
        gains = [one.value - other.value for one, other in zip(found, base, strict=True)]
        # Of the distance to each repeat's own line: λ is as uncertain as P.
        over = [gain + other.dual * change for gain, other in zip(gains, base, strict=True)]
        error = statistics.stdev(over) / len(over) ** 0.5 if len(over) > 1 else None
        on_memory = statistics.mean(each.on_memory for each in found)
        points.append(Point(change, statistics.mean(gains), error, line(dual, change), on_memory))
    value = statistics.mean(each.value for each in base)
    return Curve(task, name, epsilon, dual, value, points, len(base))


def line(dual: float, change: float) -> float:
    """−λ γ: what Theorem 1 lets P change by at least."""
    return float(value_bound(0.0, torch.tensor([dual], dtype=torch.float64), torch.tensor([change])))


def numbers_of(run: str | Path, task: int) -> Path:
    """Where the curve of a run's past task `task` (from 0) is kept."""
    return Path(run) / f"whatif-task{task + 1}.json"


def write_numbers(found: Curve, place: Path) -> None:
    """The curve as JSON, with whether the price held."""
    with reported(place):
        write_whole(place, dumps({**asdict(found), "held": found.held}).encode())
