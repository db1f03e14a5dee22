"""What the tasks of a stream can reach without constraints, so that tolerances can be stated that can be met.

m_k alone: task k just learned, with nothing to keep. m_k together: all tasks learned at once. A tolerance below the
first can't be met by this network and training at all; one below the second can't be met for all tasks at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from pdcl.learning.evaluation import predictions
from pdcl.learning.events import Evaluated, Event
from pdcl.lifelong.learner import Learner
from pdcl.limits.limits import Limits, as_limits
from pdcl.limits.tolerance import Written
from pdcl.methods.catalog import method
from pdcl.networks import eval_mode
from pdcl.running.options import names, resolve
from pdcl.running.run import run
from pdcl.streams.data import Data
from pdcl.streams.task import Stream, Task

FACTOR, FLOOR = 1.1, 0.01


@dataclass(frozen=True)
class Level:
    """Mean loss on what was learned, and loss and error rate on held-out training data (None: no error rate)."""

    loss: float
    held_out_loss: float
    held_out_error: float | None


@dataclass(frozen=True)
class Reach:
    """What one task reaches alone and, where measured, together with all others."""

    task: int
    name: str
    alone: Level
    together: Level | None = None

    @property
    def proposal(self) -> float:
        """max(1.1 · m_k, 0.01), from what is reached together where that is known."""
        reached = max(self.alone.loss, self.together.loss if self.together else 0.0)
        return max(FACTOR * reached, FLOOR)

    def doubt(self, tolerance: Written | Limits) -> str | None:
        """Why a stated tolerance can't be met, if so."""
        stated = as_limits(tolerance).of(self.name, self.task)
        if stated is None:
            return None
        value = stated.of(self.task, self.alone.held_out_error if stated.unit == "error" else self.alone.loss)
        for level, how in ((self.alone, "even alone"), (self.together, "together with all others")):
            reached = None if level is None else level.held_out_error if stated.unit == "error" else level.loss
            if reached is not None and value < reached:
                said, best = (
                    f"{100 * each:.2f} %" if stated.unit == "error" else f"{each:.4g}" for each in (value, reached)
                )
                return f"{self.name}: {said} is infeasible: {how} it reaches only {best}"
        return None


def reach(
    stream: Stream, *, preset: str | None = None, together: bool = True, seed: int = 0, **options: Any
) -> list[Reach]:
    """Measure a stream; its test data is not touched: a tenth of every task's training data is held out instead."""
    held = stream.for_tuning()
    alone = _measured(held, "finetune", preset, {"seed": seed, **options}, each=True)
    joint = _measured(held, "joint", preset, {"seed": seed, **options}, each=False) if together else {}
    return [Reach(task.index, task.name, alone[task.index], joint.get(task.index)) for task in held.tasks]


def _measured(
    stream: Stream, name: str, preset: str | None, options: Mapping[str, Any], each: bool
) -> dict[int, Level]:
    """Every task just after it was learned (`each`), or all at the end."""
    entry = method(name)
    own = {option: value for option, value in options.items() if option in names(entry.load())}
    resolved = resolve(entry, stream, preset, own)
    learner: Learner = entry.load()(**resolved.of(entry.load()))
    levels: dict[int, Level] = {}

    def listen(event: Event) -> None:
        if isinstance(event, Evaluated):
            last = event.task == len(stream.tasks) - 1
            tasks = [stream.tasks[event.task]] if each else list(stream.tasks) if last else []
            levels.update({task.index: _level(learner, task) for task in tasks})

    timing = {option: resolved.values[option] for option in ("epochs", "batch")}
    run(stream, learner, preset=preset, listeners=[listen], **timing)
    return levels


def _level(learner: Learner, task: Task) -> Level:
    with eval_mode(learner.model):
        return Level(_means(learner, task.data)[0], *_means(learner, task.test))


@torch.no_grad()
def _means(learner: Learner, data: Data) -> tuple[float, float | None]:
    scores, targets = predictions(learner, data)
    assert learner.spec is not None
    loss = float(learner.goal.loss(scores, targets).double().mean())
    return loss, None if learner.spec.kind == "regression" else float(learner.goal.error(scores, targets).mean())
