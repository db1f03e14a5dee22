"""`pdcl.prices`: what the duals of a run say that its tolerances cost, and how far to believe them (Theorem 1).

P(ε + γ) − P(ε) ≥ −λ_k γ, about:   loosening ε_k by γ wins at most about λ_k γ on the current task
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from pdcl.algorithm.dual_rules import effective_tolerance
from pdcl.algorithm.prices import price
from pdcl.errors import RecordError, UsageError
from pdcl.given import path_of, short
from pdcl.learning.evaluation import predictions
from pdcl.learning.report import Report, Trace
from pdcl.lifelong.learner import Learner
from pdcl.networks import eval_mode
from pdcl.printable import printable
from pdcl.records.reading import read_config, read_events
from pdcl.running.rebuild import recalled
from pdcl.running.result import Result
from pdcl.streams.task import Stream

STEP = 0.01
STEADY = 0.05
FEWEST = 16


@dataclass(frozen=True)
class Price:
    """λ of one past task at the end of the current one. `doubts` are reasons not to take it at its word; `no_price`
    says why it is a mere weight: what is differentiated isn't what the tolerance measures. `measured`: what 0.01 more
    room wins by a solve, where the learner can solve (`exact`): of the objective, or of the mean error on guards."""

    task: int
    name: str
    dual: float
    tolerance: float
    unit: str
    on_memory: float | None
    on_validation: float | None
    samples: int | None
    moving: bool | None
    doubts: list[str] = field(default_factory=list)
    no_price: str | None = None
    measured: float | None = None

    @property
    def wins(self) -> float:
        """λ_k · 0.01."""
        return float(price(torch.tensor(self.dual, dtype=torch.float64), STEP))

    def __str__(self) -> str:
        if self.no_price is not None:
            said = f"λ = {self.dual:.3g} is a weight, not a price: {self.no_price}"
        else:
            loosening = f"loosening this tolerance ({self.tolerance:.4g}) by {STEP}"
            said = f"λ = {self.dual:.3g}: {loosening} may win at most about {self.wins:.2g} on the current task"
        if self.measured is not None:
            of = "points of the mean error on guards" if self.unit == "error" else "by a solve with that limit"
            gain = 100 * self.measured if self.unit == "error" else self.measured
            room = "one point more room" if self.unit == "error" else f"{STEP} more room"
            said += f"; {room} wins {gain:.2g} {of}"
        return f"{printable(self.name)}: {said}" + "".join(f"\n    but {doubt}" for doubt in self.doubts)


@dataclass(frozen=True)
class Prices(Sequence[Price]):
    """The prices of all past tasks while `current` was learned."""

    current: str
    rows: list[Price]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __str__(self) -> str:
        return "\n".join([f"While {self.current!r} was learned:", *(f"  {row}" for row in self.rows)])


def prices(run: Result | Learner | str | Path, stream: Stream | None = None) -> Prices:
    """The prices of a run: a result, its directory, or a learner that has just learned.

    stream: where a task's test data is taken from, to see whether a tolerance is met beyond memory. A run's directory
    knows its stream.
    """
    learner, stream, found = brought_back(run, stream)
    names = task_names(stream, len(found.tolerances) + 1)
    beyond = [None] * len(names) if stream is None else _beyond_memory(learner, stream, found.units)
    rows = [_price(k, names[k], found, beyond[k], learner) for k in range(len(found.tolerances))]
    return Prices(names[-1], rows)


def brought_back(
    run: Result | Learner | str | Path, stream: Stream | None = None
) -> tuple[Learner, Stream | None, Trace]:
    """The learner, its stream if known, and the dual steps of the last task; UsageError where there were none."""
    if stream is not None and not isinstance(stream, Stream):
        raise UsageError(f"stream={short(stream)} must be a stream: pdcl.stream('digits')")
    learner, path = _parts(run)
    if path is not None and (stream is None or learner is None):
        learner, own = _recalled(path, learner)
        stream = own if stream is None else stream
    found = _of_events(path) if path is not None else None
    found = found or (Trace() if learner is None else learner.report().trace)
    if learner is None or not found.duals:
        raise UsageError("there are no prices: this run has no duals yet (a method without them, or one task only)")
    return learner, stream, found


def _parts(run: Result | Learner | str | Path) -> tuple[Learner | None, Path | None]:
    if isinstance(run, Result):
        return run.learner, run.path
    return (run, None) if isinstance(run, Learner) else (None, path_of(run, "run"))


def _recalled(path: Path, learner: Learner | None) -> tuple[Learner | None, Stream | None]:
    try:
        return recalled(path)
    except (RecordError, UsageError):
        if learner is None:
            raise
        return learner, None


def _of_events(path: Path) -> Trace | None:
    """The dual steps of the last task that a record tells of."""
    read_config(path)
    moved: list[dict[str, Any]] = []
    counts: list[int] = []
    unit = "loss"
    before: list[int] = []
    for event in read_events(path):
        if event["event"] == "duals_moved":
            moved = [event] if not moved or moved[-1]["task"] != event["task"] else [*moved, event]
        elif event["event"] == "partitioned":
            before, counts = counts, event["counts"]
        elif event["event"] == "tolerance_set":
            unit = event["unit"]
    if not moved:
        return None
    duals, slacks = [event["duals"] for event in moved], [event["slacks"] for event in moved]
    tolerances = moved[-1]["tolerances"]
    return Trace(duals, slacks, tolerances, before, [unit] * len(tolerances))


def task_names(stream: Stream | None, count: int) -> list[str]:
    return [f"task {k + 1}" if stream is None else stream.tasks[k].name for k in range(count)]


def _beyond_memory(learner: Learner, stream: Stream, units: list[str]) -> list[float | None]:
    """What every past task has on its test data, in the unit of its tolerance."""
    measures = [learner.goal.error if unit == "error" else learner.goal.loss for unit in units]
    with torch.no_grad(), eval_mode(learner.model):
        pairs = zip(measures, stream.tasks, strict=False)
        found = [measure(*predictions(learner, task.test)) for measure, task in pairs]
    return [float(values.double().mean()) for values in found]


def _price(k: int, name: str, found: Trace, beyond: float | None, learner: Learner) -> Price:
    path = [step[k] for step in found.duals]
    tolerance, slack = found.tolerances[k], found.slacks[-1][k]
    on_memory = None if slack is None or slack != slack else tolerance + slack
    samples = found.counts[k] if k < len(found.counts) else None
    moving = is_moving(path)
    said = learner.report()
    doubts = list(_doubts(path, moving, tolerance, on_memory, beyond, samples, said))
    reason = "the tolerance is an error rate" if found.units[k] == "error" else said.no_price
    return Price(
        k, name, path[-1], tolerance, found.units[k], on_memory, beyond, samples, moving, doubts, reason,
        learner.room_gains(k, STEP),
    )  # fmt: skip


def is_moving(path: list[float]) -> bool | None:
    """Whether a dual changed by more than 5 % over the last quarter of its steps; None: too few steps to tell."""
    if len(path) < 4:
        return None
    tail = path[-max(2, len(path) // 4) :]
    return max(tail) - min(tail) > STEADY * max(max(tail), 1e-2)


def _doubts(
    path: list[float],
    moving: bool | None,
    tolerance: float,
    on_memory: float | None,
    beyond: float | None,
    samples: int | None,
    said: Report,
) -> Any:
    if moving is None and not said.solved:
        yield f"after {len(path)} dual steps it is too early to tell whether it has settled"
    elif moving:
        before = path[-max(2, len(path) // 4)]
        yield f"it is still moving: {before:.3g} a quarter of the task earlier; train longer before you trust it"
    if on_memory is not None and on_memory > tolerance * (1 + STEADY):
        yield f"the tolerance is not met on memory ({on_memory:.3g}), so the price is at least this"
    elif beyond is not None and beyond > tolerance and not said.solved:
        yield f"it is met on memory but not on validation data ({beyond:.3g}): memorised, a price of the stored samples"
    if samples is not None and samples < FEWEST:
        yield f"it rests on {samples} stored samples"
    if said.decay > 0:
        yield f"dual decay relaxes the tolerance to {effective_tolerance(tolerance, path[-1], said.decay):.3g}"
    if said.prices_drift:
        yield "it also prices the drift of outputs"
