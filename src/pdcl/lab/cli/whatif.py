"""`pdcl whatif RUN --task k`: re-solve the last task at other tolerances of a past one, and hold its price to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.table import Table

from pdcl.cli.form import plain
from pdcl.lab.cli.asking import EngineOptions, numbers
from pdcl.screen import Screen

if TYPE_CHECKING:
    from pdcl.lab.studies.whatif import Curve


@dataclass
class WhatIf(EngineOptions):
    """Re-solve the last task of a run at other tolerances of a past task, from the same starting point."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Directory of a run."""
    task: int
    """The past task whose tolerance changes, counted from 1."""
    tolerance: Annotated[tuple[float, ...], tyro.conf.arg(metavar="LOSS ...")] = ()
    """What its tolerance may be instead; by default five values around what it was."""
    repeats: int = 1
    """Solutions by other seeds, to know the noise."""
    longer: int = 1
    """So many times the epochs and dual steps, to let duals settle."""
    out: Path | None = None
    """Figure to draw; by default whatif-task<k>.png in the run's directory."""


def main(argv: list[str]) -> int:
    asked = tyro.cli(plain(WhatIf), args=argv, prog="pdcl whatif", config=(tyro.conf.AvoidSubcommands,))
    from pdcl.lab.studies.whatif import whatif, write_numbers
    from pdcl.lab.studies.whatif_figure import draw

    with asked.new_engine() as engine:
        how = {"repeats": asked.repeats, "longer": asked.longer}
        found = whatif(asked.run, asked.task - 1, asked.tolerance or None, **how, engine=engine)
    console = Screen(soft_wrap=True)
    console.print(f"{found.name}: ε = {found.tolerance:.4g}, λ = {found.dual:.4g}, P(ε) = {found.value:.4g}")
    console.print(_table(found))
    console.print(_verdict(found))
    place = draw(found, asked.out or asked.run / f"whatif-task{asked.task}.png")
    write_numbers(found, place.with_suffix(".json"))
    console.print(f"figure: {place}, numbers: {place.with_suffix('.json')}")
    if not found.held or found.repeats == 1:
        more = f"--repeats {max(3, 2 * found.repeats)} --longer {2 * asked.longer}"
        console.print(f"next: pdcl whatif {asked.run} --task {asked.task} {more}")
    else:
        console.print(f"next: pdcl report {asked.run.parent}")
    return 0


def _table(found: Curve) -> Table:
    table = numbers(("tolerance", "γ", "P(ε + γ) − P(ε)", "± 2 s.e.", "−λγ", "on memory", ""), ("",))
    for point in found.points:
        spread = "–" if point.error is None else f"{2 * point.error:.4f}"
        where = "above the line" if point.above else "below, within noise" if point.compatible else "below the line"
        moved = f"{found.tolerance + point.change:.4g}", f"{point.change:+.4g}", f"{point.gain:+.4f}"
        table.add_row(*moved, spread, f"{point.line:+.4f}", f"{point.on_memory:.4f}", where)
    return table


def _verdict(found: Curve) -> str:
    share = f"{100 * found.share_above:.0f} % of the points lie above the price line"
    if found.held:
        return f"The price held: {share}, none below it by more than noise."
    return f"The price did not hold: {share}. The dual had not settled, or the problem is far from convex here."
