"""A study as it goes on: a line for each run that ends; on a terminal also a bar, what runs now, and when it ends."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pdcl.cli.picturing import Pictured
from pdcl.lab.cli.asking import unfolded
from pdcl.lab.studies import Ended, Planned, RunSpec, Started, Study
from pdcl.lab.studies.curves import Answered
from pdcl.lab.studies.estimating import Estimator
from pdcl.lab.studies.execution import Notice
from pdcl.lab.studies.preview import DONE, Preview
from pdcl.printable import counted as number_of
from pdcl.screen import Screen


class StudyDisplay(Pictured):
    """Shows a study while it lasts. Use it in a `with` statement and hand `listener` to `execute`."""

    def __init__(self, out: Path, workers: int, console: Console | None = None) -> None:
        super().__init__(console)
        self.workers = workers
        self.estimator = Estimator.from_records(out)
        self.ended = 0
        self.waiting: list[RunSpec] = []
        self.later: tuple[RunSpec, ...] = ()
        self.running: dict[RunSpec, float] = {}

    @property
    def total(self) -> int:
        return self.ended + len(self.running) + len(self.waiting) + len(self.later)

    @property
    def left(self) -> float | None:
        """Seconds to the end of the study."""
        ahead = self.estimator.total([*self.running, *self.waiting, *self.later], self.workers)
        if ahead is None:
            return None
        now, saved = time.monotonic(), 0.0
        for spec, start in self.running.copy().items():
            # A run that takes longer than was thought is about to end, but not yet.
            saved += min(now - start, (self.estimator.seconds(spec) or 0.0) - 0.1 * (now - start))
        return max(ahead - saved / self.workers, 0.0)

    def listener(self, notice: Notice) -> None:
        match notice:
            case Planned():
                self._plan(notice)
            case Started():
                self.waiting.remove(notice.job.spec)
                self.running[notice.job.spec] = time.monotonic()
            case Ended():
                self._end(notice)
            case Answered():
                held = "the price held" if notice.held else "the price did not hold"
                above = f"{100 * notice.share_above:.0f} % of points above the line"
                self._say(f"what-if {notice.spec.title}  {above}, {held}  {notice.seconds:.1f} s")

    def _plan(self, notice: Planned) -> None:
        self.ended += notice.done
        self.waiting, self.later = [job.spec for job in notice.jobs], notice.later
        title = f"{notice.title}: " if notice.title else ""
        self._say(f"{title}{len(notice.jobs)} to run, {notice.done} finished before; {_duration(self.left)} left")

    def _end(self, ended: Ended) -> None:
        spec = ended.job.spec
        self.ended += 1
        self.running.pop(spec, None)
        if ended.cause is None:
            self.estimator.learn(spec.stream, spec.label, spec.memory, ended.seconds)
        reached = "failed" if ended.accuracy is None else f"{100 * ended.accuracy:6.2f} %"
        place = f"[{self.ended}/{self.total}]"
        line = f"{place} {spec.title}  {reached}  {ended.seconds:.1f} s  ({_duration(self.left)} left)"
        self._say(line, "" if ended.cause is None else "red")
        if ended.cause is not None:
            self._say(f"    {ended.cause}", "red")
        if ended.note:
            self._say(f"    {ended.note}", "yellow")

    def _say(self, line: str, style: str = "") -> None:
        self.console.print(Text(line, style), soft_wrap=True)

    def picture(self) -> RenderableType:
        """The bar, and below it what runs now and for how long."""
        row = Table.grid(padding=(0, 2, 0, 0))
        bar = ProgressBar(total=max(self.total, 1), completed=self.ended, width=30)
        row.add_row(f"{self.ended}/{self.total}", bar, f"{_duration(self.left)} left")
        now = time.monotonic()
        lines = [Text(f"{spec.title}  {now - start:.0f} s", "dim") for spec, start in self.running.copy().items()]
        return Group(row, *lines)


def preview(found: Preview, workers: int) -> None:
    """What `--dry-run` prints."""
    console = unfolded()
    table = Table("run", "state", "estimate", box=None, padding=(0, 2, 0, 0))
    for spec, state in found.runs:
        name = spec.title + ("" if spec.held_out is None else " (tuning)")
        table.add_row(Text(name), Text(state), "" if state == DONE else _duration(found.estimator.seconds(spec)))
    console.print(table)
    states = Counter(state.partition(":")[0] for _, state in found.runs)
    counted = ", ".join(f"{count} {state}" for state, count in states.most_common())
    console.print(f"{number_of(len(found.runs), 'run')}: {counted}", soft_wrap=True)
    ahead = _duration(found.estimator.total(found.todo, workers))
    console.print(f"estimated time with {workers} at a time: {ahead}")
    if found.curves:
        console.print(f"then what-if curves of {number_of(found.curves, 'run')}, which no estimate covers")


def preview_parts(study: Study, found: Preview, workers: int) -> None:
    """What `--dry-run` prints of a study in parts: how many runs each has and how long those to run may take."""
    console = Screen(soft_wrap=True)
    todo = set(found.todo)
    for name, part in study.parts.items():
        runs = [spec for spec in part.runs() if spec in {run for run, _ in found.runs}]
        ahead = [spec for spec in runs if spec in todo]
        time_left = _duration(found.estimator.total(ahead, workers) if ahead else 0.0)
        console.print(f"part {name:<16} {len(runs):>4} runs, {len(ahead):>4} to run   {time_left}")


def _duration(seconds: float | None) -> str:
    return "unknown" if seconds is None else str(timedelta(seconds=round(seconds)))
