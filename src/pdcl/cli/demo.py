"""`pdcl demo`: digits that turn from month to month, learned under limits, and what became of each limit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.table import Table

from pdcl.cli.form import plain
from pdcl.laboratory import lab
from pdcl.screen import Screen

STREAM = {"domains": 4, "rotated": 45}
# At most one error in a hundred on the first month; 15 points more than when it was learned on any other.
LIMITS = {"domain 0": "1%", "*": "+15pt"}
TIMES = {"epochs": 3, "batch": 10}
METHODS: dict[str, dict[str, Any]] = {
    "finetune": TIMES,
    "er": {**TIMES, "memory": 400},
    "pdcl": {**TIMES, "memory": 400, "tolerance": LIMITS, "witness": 50},
}
BEGIN = """Handwritten digits, four months of them: each month the camera is turned by 45° more.
finetune learns each month's digits alone, er replays 400 stored ones, and pdcl has the same memory and limits."""
ACCURACY = "\n[bold]After the last month[/bold]: accuracy in % on test digits of each; domain 0 is the first month."
PROMISES = """
[bold]What pdcl was asked for, and what became of it[/bold]: errors on witnesses, which no step ever saw."""
PRICES = """
[bold]What the limits cost[/bold]: λ of each past month, at its highest while another was learned;
then how many samples memory kept of it. A strict limit has a price, and gets more of memory."""


@dataclass
class Demo:
    """Three methods learn turning digits month by month, one of them under limits; under a minute of one core."""

    out: Path = Path("runs/demo")
    """Where records and the page go. What is finished there is shown, not run again."""

    full: bool = False
    """Instead, seven methods with ten seeds each on five tasks of two digits: some five minutes of one core."""

    workers: int | None = None
    """With --full, runs at a time; as many as there are cores by default."""


def main(argv: list[str]) -> int:
    options = tyro.cli(plain(Demo), args=argv, prog="pdcl demo")
    if options.full:
        code: int = lab("cli.full_demo").main(options.out, options.workers or os.cpu_count() or 1)
        return code
    from pdcl.records.reading import read_result
    from pdcl.reports.writing import write_report

    console = Screen(markup=True, soft_wrap=True)
    console.print(BEGIN)
    paths = {name: _learned(name, options.out, console) for name in METHODS}
    results = {name: read_result(path) for name, path in paths.items()}
    console.print(ACCURACY)
    console.print(_accuracies(results))
    console.print(PROMISES)
    _show_promises(results["pdcl"], console)
    console.print(PRICES)
    console.print(_prices(paths["pdcl"], results["pdcl"]))
    page = write_report(list(paths.values()), options.out / "report.html", title="pdcl demo")
    console.print(f"\npage: {page}   records: {options.out}")
    console.print("next: pdcl run digits pdcl --tolerance +5pt")
    return 0


def _learned(name: str, out: Path, console: Screen) -> Path:
    """The record of a method's run: made, continued or found."""
    from pdcl.errors import RunFinished, RunUnfinished
    from pdcl.running.resume import resume
    from pdcl.running.run import run
    from pdcl.streams.catalog import load

    with console.status(f"{name} learns"):
        try:
            result = run(load("digits", **STREAM), name, out=out, **METHODS[name])
        except RunUnfinished as begun:
            result = resume(begun.path)
        except RunFinished as done:
            return done.path
    assert result.path is not None
    return result.path


def _accuracies(results: Mapping[str, Any]) -> Table:
    """Methods × months after the last one."""
    months = [f"domain {k}" for k in range(STREAM["domains"])]
    table = Table("method", *months, "mean", "CPU s", box=None)
    for name, result in results.items():
        last = [f"{100 * value:.1f}" for value in result["accuracy"]["class_il"][-1]]
        spent = f"{result['cost']['cpu_seconds']:.0f}"
        table.add_row(name, *last, f"{100 * result['mean_accuracy']:.1f}", spent)
    return table


def _show_promises(result: Mapping[str, Any], console: Screen) -> None:
    from pdcl.cli.promises import coloured_table, plain_table
    from pdcl.judging.table import Promises

    promises = Promises.from_json(result["promises"][-1])
    console.print(coloured_table(promises) if console.is_terminal else plain_table(promises))


def _prices(path: Path, result: Mapping[str, Any]) -> Table:
    """For every month but the first: the highest λ of each past one, and the partition of memory after it."""
    from pdcl.records.reading import read_events

    months = range(STREAM["domains"])
    highest = {task: [0.0] * task for task in months}
    for event in read_events(path):
        if event["event"] == "duals_moved":
            known = highest[event["task"]]
            highest[event["task"]] = [max(pair) for pair in zip(known, event["duals"], strict=True)]
    table = Table("", *(f"domain {k}" for k in months), box=None)
    for task in months[1:]:
        prices = [*(f"λ {price:.2f}" for price in highest[task]), "new"]
        cells = [f"{price}, {held}" for price, held in zip(prices, result["partitions"][task], strict=True)]
        table.add_row(f"domain {task} learned", *cells)
    return table
