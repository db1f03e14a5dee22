"""What trackers are told of an event: numbers to plot, and facts that are said once."""

from __future__ import annotations

from typing import Any

from pdcl.learning.events import (
    DualsMoved,
    Evaluated,
    Event,
    Partitioned,
    PromisesJudged,
    RunBegan,
    RunEnded,
    Stepped,
    TaskBegan,
)

Numbers = dict[str, float]


def numbers_of(event: Event) -> Numbers:
    """What an event has to plot, by name.

    >>> numbers_of(Evaluated(1, [0.9, 0.7], [1.0, 1.0]))
    {'accuracy/0': 0.9, 'accuracy/1': 0.7, 'mean_accuracy': 0.8}
    """
    match event:
        case Stepped():
            return {"loss": event.loss, **event.scalars}
        case DualsMoved():
            return _each("dual", event.duals) | _each("slack", event.slacks) | _each("tolerance", event.tolerances)
        case Partitioned():
            return _each("memory", event.counts)
        case Evaluated():
            return _scores(event.task, event.class_il)
        case PromisesJudged():
            verdicts = [row["verdict"] for row in event.promises["rows"]]
            return {f"limits/{name}": float(verdicts.count(name)) for name in sorted(set(verdicts))}
        case RunEnded():
            return {"final/mean_accuracy": event.mean_accuracy, "final/mean_forgetting": event.mean_forgetting}
        case _:
            return {}


def _scores(task: int, scores: list[float]) -> Numbers:
    """Scores of the tasks seen so far. `learn` measures the new task alone, or nothing."""
    if len(scores) <= task:
        return {f"accuracy/{task}": scores[0]} if scores else {}
    seen = scores[: task + 1]
    return _each("accuracy", seen) | {"mean_accuracy": round(sum(seen) / len(seen), 12)}


def _each(name: str, values: list[Any]) -> Numbers:
    """One number per task; a task without one (NaN: no limit) is left out."""
    return {f"{name}/{k}": float(value) for k, value in enumerate(values) if value == value}


def facts_of(event: Event) -> dict[str, str | int]:
    """What an event says once: the run's settings, a task's name."""
    if isinstance(event, RunBegan):
        return {"stream": event.stream, "method": event.method, "epochs": event.epochs, "seed": event.seed}
    return {f"task/{event.task}": event.name} if isinstance(event, TaskBegan) else {}
