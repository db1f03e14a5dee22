"""A run as it happens: a live picture on a terminal, plain lines anywhere else."""

from __future__ import annotations

import math
from datetime import timedelta

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pdcl.cli.picturing import Pictured
from pdcl.cli.progress import Progress, Standing
from pdcl.cli.promises import coloured_table, plain_table
from pdcl.judging.table import Promises
from pdcl.learning.events import Evaluated, Event, Infeasible, RunBegan, RunEnded, Warned, in_unit
from pdcl.printable import printable

ROWS = 8


class Display(Pictured):
    """Shows a run while it lasts. Use it in a `with` statement and hand `listener` to the run."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self.progress = Progress()

    def listener(self, event: Event) -> None:
        self.progress.hear(event)
        if line := _line(event, self.progress):
            self.console.print(line, soft_wrap=not self.console.is_terminal)
        if isinstance(event, Evaluated) and self.progress.promises is not None:
            self._print_promises(self.progress.promises)

    def _print_promises(self, promises: Promises) -> None:
        if self.console.is_terminal:
            self.console.print(coloured_table(promises))
        else:
            self.console.print(plain_table(promises), soft_wrap=True)

    def picture(self) -> RenderableType:
        return picture(self.progress)


def _line(event: Event, progress: Progress) -> Text | None:
    """What stays on the screen of an event, if it is worth a line."""
    match event:
        case RunBegan():
            return Text(f"{progress.title} · {_count(event.tasks, 'task')}, {_count(event.epochs, 'epoch')} each")
        case Evaluated():
            return _task_line(progress)
        case Warned():
            return Text(f"warning: {printable(event.message)}", style="yellow")
        case Infeasible():
            return _infeasible_line(event, progress)
        case RunEnded():
            accuracy, forgetting = _percent(event.mean_accuracy), _percent(event.mean_forgetting)
            line = Text(f"accuracy {accuracy}, forgetting {forgetting}, {progress.seconds:.1f} s", style="bold")
            return line.append(_unmet(progress))
    return None


def _task_line(progress: Progress) -> Text:
    """A task that has ended, in columns, so that lines below each other can be compared."""
    mean = sum(progress.scores) / len(progress.scores) if progress.scores else math.nan
    width = len(f"task {progress.tasks or 0}/{progress.tasks or 0}")
    name = _short(progress.name(progress.task), 12)
    line = Text(f"{progress.place:<{width}}  {name:<12}  accuracy {_percent(mean):>8}  {progress.task_seconds:>6.1f} s")
    # What witnesses show follows as a table; stored samples would only contradict it.
    if not progress.standings or progress.witnessed:
        return line
    return line.append("  ").append(_tightest(progress.standings))


def _tightest(standings: list[Standing]) -> Text:
    """The past task that is furthest over its tolerance, or the one with the least room."""
    worst = max(standings, key=lambda standing: standing.slack)
    over = sum(standing.slack > 0 for standing in standings)
    which = f" (task {worst.task + 1}" + (f", +{over - 1})" if over > 1 else ")")
    return Text.assemble("" if over else "least ", _slack(worst), which, " on stored samples")


def _infeasible_line(event: Infeasible, progress: Progress) -> Text:
    task = f"task {event.constrained + 1} ({progress.name(event.constrained)})"
    said = event.sentence(task, progress.units.get(event.constrained, "loss"))
    return Text(f"warning: {said}", style="yellow")


def _unmet(progress: Progress) -> Text:
    """Which tolerances the last task couldn't keep, and what each would have to be."""
    if not progress.unmet or progress.witnessed:
        return Text("")
    asked = ", ".join(
        f"task {k + 1}: {_measured(e.tolerance, progress, e)} → {_measured(e.reached, progress, e)}"
        for k, e in sorted(progress.unmet.items())
    )
    return Text(f"\nnot met, and what it would take ({progress.unit}): {asked}", style="not bold yellow")


def _measured(value: float, progress: Progress, event: Infeasible) -> str:
    """A value in the unit of the task's limit."""
    return in_unit(value, progress.units.get(event.constrained, "loss"))


def picture(progress: Progress) -> RenderableType:
    """What a terminal shows now, in at most 80 columns."""
    parts: list[RenderableType] = [_bar(progress), _speed(progress)]
    if progress.standings:
        parts.append(_standings(progress))
    return Group(*parts)


def _bar(progress: Progress) -> Table:
    row = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(4):
        row.add_column(no_wrap=True)
    bar = ProgressBar(total=max(progress.steps, 1), completed=progress.done, width=24)
    left = "" if progress.left is None else f"{_duration(progress.left)} left"
    row.add_row(Text(progress.place, "bold"), Text(_short(progress.name(progress.task), 24)), bar, left)
    return row


def _speed(progress: Progress) -> Text:
    words = [f"loss {progress.loss:.3f}"] if progress.loss is not None else []
    if progress.rate is not None:
        words += [f"{progress.rate:,.0f} steps/s", f"{progress.rate * progress.batch:,.0f} samples/s"]
    return Text(" · ".join(words), style="dim")


def _standings(progress: Progress) -> Table:
    """Past tasks, each with its room or how far it is over, and its price; of many, those that are tightest."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("past task", f"tolerance ({progress.unit})", "", "λ"):
        table.add_column(name, justify="left" if name in ("past task", "") else "right", no_wrap=True)
    tightest = sorted(progress.standings, key=lambda standing: -standing.slack)[:ROWS]
    for standing in sorted(tightest, key=lambda standing: standing.task):
        name = f"{standing.task + 1}  {_short(standing.name, 24)}"
        table.add_row(Text(name), _amount(standing.tolerance), _slack(standing), f"{standing.dual:.3f}")
    if hidden := len(progress.standings) - len(tightest):
        table.add_row(Text(f"and {hidden} with more room", style="dim"))
    return table


def _slack(standing: Standing) -> Text:
    if standing.slack > 0:
        return Text(f"over by {_amount(standing.slack)}", style="red")
    return Text(f"room {_amount(abs(standing.slack))}", style="green")


def _amount(value: float) -> str:
    return in_unit(value, "loss")


def _percent(share: float) -> str:
    return "unknown" if math.isnan(share) else f"{100 * share:.2f} %"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
