"""`pdcl demo --full`: seven methods learn real digits task by task, and what the duals made of it."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from pdcl.lab.comparing import compare, group
from pdcl.lab.comparing.tables import show
from pdcl.metrics import interval
from pdcl.printable import say
from pdcl.records import scan
from pdcl.records.reading import read_result
from pdcl.records.table import Row
from pdcl.screen import Screen

SHOWN = "pdcl"
BASELINES = ("er", "er-ring")


def main(out: Path, workers: int) -> int:
    """Carry out the study `demo` and show it; the exit code."""
    from pdcl.lab.cli.study_display import StudyDisplay
    from pdcl.lab.studies import LocalProcesses, execute, load

    with LocalProcesses(workers) as engine, StudyDisplay(out, workers) as display:
        outcome = execute(load("demo"), out, engine, display.listener)
    for ended in outcome.failures:
        say(f"failed: {ended.job.spec.title}: {ended.cause}")
    if outcome.failures:
        return 1
    # The short demo lies there too, on another form of the stream.
    rows = [row for row in scan(out) if "stream.domains" not in row.options]
    console = Screen(markup=True)
    groups = group(rows)
    console.print(
        "\n[bold]After the last task[/bold]: mean ± 95 % interval over seeds; differences are paired by seed."
    )
    show(groups, [entry for name in BASELINES for entry in compare(groups, name)])
    console.print("\n[bold]Task by task[/bold]: mean accuracy in % on all tasks seen so far, over seeds.")
    console.print(_course(rows))
    shown = min((row for row in rows if row.method == SHOWN), key=lambda row: row.seed)
    console.print(
        f"\n[bold]What the duals of {SHOWN} did[/bold] (seed {shown.seed}), after each task: the price λ of keeping"
    )
    console.print("every past one within its tolerance, and how many samples memory keeps of it.")
    console.print(_prices(shown.path))
    console.print(f"\nrecords: {out}   one run: {shown.path}", soft_wrap=True)
    console.print(f"next: pdcl run digits {SHOWN} --memory 50 --tolerance 5%", soft_wrap=True)
    return 0


def _course(rows: list[Row]) -> Table:
    """Methods × tasks: how accuracy on what was seen so far went down."""
    matrices: dict[str, list[list[list[float]]]] = {}
    for row in rows:
        found = read_result(row.path)["accuracy"]["class_il"]
        matrices.setdefault(row.method, []).append([[value or 0.0 for value in line] for line in found])
    tasks = len(next(iter(matrices.values()))[0])
    table = Table("method", *(f"after {j + 1}" for j in range(tasks)), box=None)
    for name, runs in matrices.items():
        seen = [[sum(matrix[j][: j + 1]) / (j + 1) for matrix in runs] for j in range(tasks)]
        table.add_row(name, *(f"{100 * interval(each)[0]:.1f}" for each in seen))
    return table


def _prices(path: Path) -> Table:
    """After each task: λ of every past one, and the partition of memory."""
    result = read_result(path)
    tasks = len(result["duals"])
    table = Table("", *(f"task {k + 1}" for k in range(tasks)), box=None)
    for j in range(tasks):
        duals = [f"λ {value or 0.0:.2f}" for value in result["duals"][j][:-1]]
        counts = result["partitions"][j]
        cells = [f"{dual}, {n}" for dual, n in zip([*duals, "new"], counts, strict=True)]
        table.add_row(f"after {j + 1}", *cells)
    return table
