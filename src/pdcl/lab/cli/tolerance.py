"""`pdcl tolerance STREAM`: what its tasks can reach without constraints, and tolerances that can be met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table
from rich.text import Text

from pdcl.cli.form import plain
from pdcl.lab.cli.asking import numbers
from pdcl.screen import Screen

if TYPE_CHECKING:
    from pdcl.lab.studies.attainable import Level, Reach
    from pdcl.lab.studies.places import Need
    from pdcl.streams.task import Stream


@dataclass
class Tolerance:
    """Measure what every task of a stream reaches without constraints, propose tolerances, and check a stated one."""

    stream: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STREAM")]
    """Name of a stream."""
    tolerance: Annotated[str | None, tyro.conf.arg(metavar="TOLERANCE")] = None
    """A tolerance to check: 0.05 (loss), 5% (error rate), +2pt, 0.05,0.02,… (one per task), NAME:+2pt, *:5%."""
    plan: bool = False
    """Say how many places in memory the tolerance needs, from runs of `even` at a few sizes."""
    memory: Annotated[str | None, tyro.conf.arg(metavar="SIZES")] = None
    """Memories that --plan tries, such as 100,200,400; otherwise half, once and twice the stream's own."""
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
    plugin: str | None = None
    """A Python file that registers streams."""


def main(argv: list[str]) -> int:
    asked = tyro.cli(plain(Tolerance), args=argv, prog="pdcl tolerance", config=(tyro.conf.AvoidSubcommands,))
    from pdcl.lab.studies.attainable import reach
    from pdcl.learning.stated import check_against, refuse_segments
    from pdcl.limits.tolerances import read_limits
    from pdcl.streams.catalog import load

    if asked.plugin is not None:
        from pdcl.running.plugins import load_file

        load_file(asked.plugin)
    stated = read_limits(asked.tolerance)
    _check(asked)
    stream = load(asked.stream, **({} if asked.data is None else {"data": asked.data}))
    refuse_segments(asked.tolerance)
    check_against(asked.tolerance, stream.tasks)
    options = {} if asked.epochs is None else {"epochs": asked.epochs}
    if asked.plan:
        return _plan(asked, stream, options)
    found = reach(stream, preset=asked.preset, together=asked.together, seed=asked.seed, **options)
    console = Screen(soft_wrap=True)
    console.print(_table(found))
    console.print("loss: on training data. held out: a tenth of the training data; test data is not touched.\n")
    doubts = [] if stated is None else [doubt for each in found if (doubt := each.doubt(stated))]
    for doubt in doubts:
        console.print(Text(f"warning: {doubt}", style="yellow"))
    if stated is not None and not doubts:
        console.print(f"{asked.tolerance}: nothing measured here speaks against it")
    proposed = ",".join(f"{each.proposal:.3g}" for each in found)
    console.print(f"next: pdcl run {asked.stream} pdcl --tolerance {proposed}")
    return 0


def _check(asked: Tolerance) -> None:
    from pdcl.errors import UsageError

    if asked.plan and asked.tolerance is None:
        raise UsageError("--plan needs a limit to plan for: --tolerance +2pt")
    if asked.memory is not None and not asked.plan:
        raise UsageError(f"--memory {asked.memory} has no effect without --plan")


def _plan(asked: Tolerance, stream: Stream, options: dict[str, Any]) -> int:
    from pdcl.lab.studies.places import plan, total, usual_sizes

    sizes = usual_sizes(stream) if asked.memory is None else _sizes(asked.memory)
    seeds, preset = (asked.seed, asked.seed + 1), asked.preset or "auto"
    needs = plan(stream, asked.tolerance, sizes, preset=preset, seeds=seeds, **options)
    console = Screen(soft_wrap=True)
    tried = f"memory {', '.join(map(str, sizes))}, seeds {seeds[0]} and {seeds[1]}, preset {preset}"
    console.print(f"runs: even on {asked.stream}, {tried}")
    console.print(_needs(needs))
    console.print(
        "errors: after the last task, on a tenth of the training data, held out; the newest has nothing to keep yet\n"
        f"fit: error(n) = a + c·n^-0.6 through {len(sizes)} sizes, so a rough number; off: its largest miss, in points"
    )
    console.print(total(stream, needs).sentence)
    return 0


def _sizes(text: str) -> list[int]:
    from pdcl.errors import UsageError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--memory {text} must be whole numbers of samples, such as 100,200,400") from None


def _needs(needs: list[Need]) -> Table:
    columns = ("task", "limit", "at most", "error (places)", "a", "c", "off", "needs")
    table = numbers(columns, ("task", "limit", "needs"))
    for need in needs:
        most = "–" if need.limit is None else f"{100 * need.limit:.1f} %"
        points = ", ".join(f"{100 * error:.1f} % ({n:g})" for n, error in need.curve.points)
        fit = f"{100 * need.curve.a:.1f} %", f"{need.curve.c:.3g}", f"{100 * need.curve.off:.1f}"
        table.add_row(Text(need.name), Text(need.written), most, points, *fit, need.sentence)
    return table


def _table(found: list[Reach]) -> Table:
    columns = ("task", "loss alone", "held out", "error", "loss together", "held out", "error", "proposed")
    table = numbers(columns, ("task",))
    for each in found:
        table.add_row(Text(each.name), *_cells(each.alone), *_cells(each.together), f"{each.proposal:.3g}")
    return table


def _cells(level: Level | None) -> list[str]:
    if level is None:
        return ["–", "–", "–"]
    error = "–" if level.held_out_error is None else f"{100 * level.held_out_error:.2f} %"
    return [f"{level.loss:.4f}", f"{level.held_out_loss:.4f}", error]
