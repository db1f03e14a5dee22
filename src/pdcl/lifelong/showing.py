"""A bar on a terminal while `learn` and `update` train: time left, the loss, and how limits stand on stored samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pdcl.learning.events import DualsMoved, Event, Listener, Stepped, TaskBegan, in_unit
from pdcl.screen import Screen

if TYPE_CHECKING:
    from rich.console import Console

    from pdcl.lifelong.learner import Learner


@contextmanager
def shown(learner: Learner, epochs: int, listener: Listener, console: Console | None = None) -> Iterator[Listener]:
    """The listener, which also draws a bar where there is a terminal; the bar is gone at the end."""
    console = console or Screen(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield listener
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(30),
        TimeRemainingColumn(),
        TextColumn("{task.fields[limits]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        row, limits = bar.add_task("learning", total=None, limits=""), ""

        def hear(event: Event) -> None:
            nonlocal limits
            match event:
                case TaskBegan():
                    bar.update(row, description=event.name, total=event.steps)
                case DualsMoved():
                    limits = standing(event, learner)
                case Stepped():
                    total = bar.tasks[0].total or 0
                    done = min(event.epoch * total // epochs + event.step + 1, total)
                    bar.update(row, completed=done, limits=f"loss {event.loss:.3g}  {limits}")
            listener(event)

        yield hear


def standing(event: DualsMoved, learner: Learner) -> str:
    """How many limits are met on stored samples now, and which one is furthest over."""
    over = [k for k, slack in enumerate(event.slacks) if slack > 0]
    if not over:
        return f"{len(event.slacks)} of {len(event.slacks)} limits met on stored samples"
    worst = max(over, key=lambda k: event.slacks[k])
    names = {entry["task"]: str(entry["name"]) for entry in learner.lineage.tasks}
    unit = dict(enumerate(learner.report().units)).get(worst, "loss")
    by = f"{names.get(worst, f'task {worst + 1}')} over by {in_unit(event.slacks[worst], unit)}"
    return f"{len(event.slacks) - len(over)} of {len(event.slacks)} limits met on stored samples, {by}"
