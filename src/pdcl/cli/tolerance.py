"""`pdcl tolerance STREAM`: what its tasks can reach without constraints, and tolerances that can be met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from pdcl.studies.attainable import Level, Reach


@dataclass
class Tolerance:
    """Measure what every task of a stream reaches without constraints, propose tolerances, and check a stated one."""

    stream: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STREAM")]
    """Name of a stream."""
    tolerance: Annotated[str | None, tyro.conf.arg(metavar="TOLERANCE")] = None
    """A tolerance to check: 0.05 (loss), 5% (error rate), 0.05,0.02,… (one per task)."""
    together: bool = True
    """Also learn all tasks at once; --no-together saves that time."""
    preset: str | None = None
    """Option table of the stream: default, paper, equal."""
    seed: int = 0
    """Of everything random."""
    epochs: int | None = None
    """Passes over each task, if not the preset's."""
    data: str | None = None
    """Where the data of benchmarks lies."""


def main(argv: list[str]) -> int:
    asked = tyro.cli(Tolerance, args=argv, prog="pdcl tolerance", config=(tyro.conf.AvoidSubcommands,))
    from pdcl.duality.tolerance import as_tolerance
    from pdcl.errors import UsageError
    from pdcl.streams.catalog import load
    from pdcl.studies.attainable import reach

    try:
        stated = None if asked.tolerance is None else as_tolerance(asked.tolerance)
    except ValueError as error:
        raise UsageError(str(error)) from error
    stream = load(asked.stream, **({} if asked.data is None else {"data": asked.data}))
    options = {} if asked.epochs is None else {"epochs": asked.epochs}
    found = reach(stream, preset=asked.preset, together=asked.together, seed=asked.seed, **options)
    console = Console(highlight=False, soft_wrap=True)
    console.print(_table(found))
    console.print("loss: on training data. held out: a tenth of the training data; test data is not touched.\n")
    doubts = [] if stated is None else [doubt for each in found if (doubt := each.doubt(stated))]
    for doubt in doubts:
        console.print(Text(f"warning: {doubt}", style="yellow"))
    if stated is not None and not doubts:
        console.print(f"{asked.tolerance}: nothing measured here speaks against it")
    proposed = ",".join(f"{each.proposal:.3g}" for each in found)
    console.print(f"next: pdcl run {asked.stream} pdcl --tolerance {proposed}", markup=False)
    return 0


def _table(found: list[Reach]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("task", "loss alone", "held out", "error", "loss together", "held out", "error", "proposed"):
        table.add_column(name, justify="left" if name == "task" else "right")
    for each in found:
        table.add_row(Text(each.name), *_cells(each.alone), *_cells(each.together), f"{each.proposal:.3g}")
    return table


def _cells(level: Level | None) -> list[str]:
    if level is None:
        return ["–", "–", "–"]
    error = "–" if level.held_out_error is None else f"{100 * level.held_out_error:.2f} %"
    return [f"{level.loss:.4f}", f"{level.held_out_loss:.4f}", error]
