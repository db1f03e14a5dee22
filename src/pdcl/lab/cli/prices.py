"""`pdcl prices RUN`: what tolerances cost, by task and, where duals are per sample, by sample (Corollary 1)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from pdcl.cli.form import plain
from pdcl.screen import Screen

if TYPE_CHECKING:
    from pdcl.lab.sample_prices import SamplePrices

SHOWN = 10


@dataclass
class PricesOf:
    """What a run's duals say that its tolerances cost: λ_k of each past task and, for pdcl-s, λ_i / n_k of samples."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Directory of a run."""
    samples: int | None = None
    """How many samples to list, the highest prices first (10); only for runs with a dual per sample."""


def main(argv: list[str]) -> int:
    asked = tyro.cli(plain(PricesOf), args=argv, prog="pdcl prices")
    from pdcl.errors import UsageError
    from pdcl.lab.prices import prices
    from pdcl.lab.sample_prices import prices_by_sample
    from pdcl.records.reading import read_config

    if asked.samples is not None and asked.samples < 1:
        raise UsageError(f"--samples {asked.samples}: list at least one")
    options: dict[str, Any] = {name: each["value"] for name, each in read_config(asked.run)["options"].items()}
    level = options.get("level")
    if asked.samples is not None and level != "sample":
        raise UsageError(f"--samples has no effect: duals of {asked.run} are those of tasks; pdcl-s has one per sample")
    console = Screen(soft_wrap=True)
    console.print(str(prices(asked.run)))
    if level == "sample":
        _show(console, prices_by_sample(asked.run), asked.samples or SHOWN)
    else:
        console.print(f"next: pdcl whatif {asked.run} --task 1 --repeats 3")
    return 0


def _show(console: Console, found: SamplePrices, most: int) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("sample", "task", "class", "λ", "n", "price λ/n", "0.01 looser wins at most"):
        table.add_column(name, justify="left" if name == "task" else "right")
    for row in found.rows[:most]:
        label = "–" if row.label is None else str(row.label)
        won = f"{0.01 * row.price:.2g}"
        table.add_row(str(row.id), row.name, label, f"{row.dual:.3g}", str(row.samples), f"{row.price:.3g}", won)
    console.print("\nSamples that memory still holds, the highest prices first:")
    console.print(table)
    share = f"{100 * found.share_of_highest():.0f} %"
    console.print(f"The highest tenth of these {len(found)} samples has {share} of their prices.")
