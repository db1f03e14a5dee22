"""Prices as a figure: what another tolerance of the first task changed, beside the line −λγ that Theorem 1 draws."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pdcl.lab.figures.drawn import Drawn
from pdcl.lab.figures.style import COLOURS, figure
from pdcl.lab.figures.sweeps import FEWEST
from pdcl.lab.paper.prices import MORE_STEPS, NARROW, SETTLED, WIDE, above_line, curves, price_points
from pdcl.lab.paper.runs import SIZE, Runs
from pdcl.metrics import interval
from pdcl.records import Row

SMALL = 50
KINDS: dict[str, dict[str, Any]] = {"as printed": MORE_STEPS, "settled": SETTLED}
REASON = "no run has a what-if curve with several solutions a point; make one with `pdcl whatif … --repeats 3`"


def draw_prices(drawn: Drawn, runs: Runs, stream: str, suffix: str) -> None:
    """A panel for the duals as printed and one for those that have settled; nothing for a stream without such runs."""
    found = {name: list(runs.find(stream, "pdcl0", SIZE, **options).values()) for name, options in KINDS.items()}
    if not any(found.values()):
        return
    known = {name: [row for row in rows if price_points(row)] for name, rows in found.items()}
    known = {name: rows for name, rows in known.items() if rows}
    shown = [row for rows in known.values() for row in rows]
    drawn.put("prices", suffix, partial(price_panels, known) if known else None, REASON, shown)


def draw_capacity(drawn: Drawn, runs: Runs, stream: str, suffix: str) -> None:
    """Settled duals of narrow and wide networks, from a small and a large memory: a panel for each."""
    known = {}
    for network in (NARROW, WIDE):
        for memory in (SMALL, SIZE):
            found = runs.find(stream, "pdcl0", memory, **SETTLED, network=network).values()
            if rows := [row for row in found if price_points(row)]:
                above = statistics.fmean(far for row in rows if (far := above_line(row)) is not None)
                units = network.rpartition("-")[2]
                known[f"{units} units, memory {memory}\nabove −λγ by {above:.3f}".replace("-", "−")] = rows
    if known:
        shown = [row for rows in known.values() for row in rows]
        drawn.put("capacity", suffix, partial(price_panels, known), REASON, shown)


def price_panels(known: Mapping[str, Sequence[Row]]) -> Any:
    """P(ε + γ) − P(ε) against γ. Each panel has its own axes: prices as printed are 50 times the settled ones."""
    columns = min(2, len(known))
    lines = math.ceil(len(known) / columns)
    size = {"width": max(1.0, 0.85 * columns), "height": 1.05 * lines}
    with figure(**size, rows=lines, columns=columns, squeeze=False) as (made, panels):
        for axes in panels.flat[len(known) :]:
            axes.set_visible(False)
        for axes, (name, rows) in zip(panels.flat, known.items(), strict=False):
            _line(axes, rows)
            _points(axes, rows)
            axes.set(title=name, xlabel="γ: change of task 1's ε")
            axes.locator_params(nbins=5)
            axes.legend(*axes.get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, -0.22))
        for axes in panels[:, 0]:
            axes.set_ylabel("change of the last task's loss")
        return made


def _line(axes: Any, rows: Sequence[Row]) -> None:
    """−λγ for the mean λ of the runs, and a band from their least to their largest."""
    duals = [curve["dual"] for row in rows for curve in curves(row)]
    changes = [point["change"] for row in rows for point in price_points(row)]
    ends = [min(0.0, *changes), max(0.0, *changes)]
    mean, low, high = statistics.fmean(duals), min(duals), max(duals)
    span = f" ({low:.2g} to {high:.2g})" if len(duals) > 1 else ""
    axes.plot(ends, [-mean * end for end in ends], color="#777777", linewidth=1.0, label=f"−λγ, λ = {mean:.2g}{span}")
    # Both bounds are lines through 0, where they cross.
    at = sorted({*ends, 0.0})
    axes.fill_between(at, [-low * x for x in at], [-high * x for x in at], color="#777777", alpha=0.2, linewidth=0)


def _points(axes: Any, rows: Sequence[Row]) -> None:
    """Means over seeds with 95 % intervals; of fewer than three runs their own noise, two standard errors."""
    by_change: dict[float, list[dict[str, Any]]] = {}
    for row in rows:
        for point in price_points(row):
            by_change.setdefault(round(point["change"], 9), []).append(point)
    changes = sorted(by_change)
    gains = [[point["gain"] for point in by_change[change]] for change in changes]
    noise = [2 * statistics.fmean(point["error"] for point in by_change[change]) for change in changes]
    halves = [interval(each)[1] if len(each) >= FEWEST else own for each, own in zip(gains, noise, strict=True)]
    means = [statistics.fmean(each) for each in gains]
    axes.errorbar(changes, means, yerr=halves, fmt="o", color=COLOURS[0], capsize=2, label="P(ε + γ) − P(ε)")
    axes.plot(0, 0, "o", color=COLOURS[6], markersize=3)
