"""The figures of the page with their captions, and what could not be drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pdcl.lab.figures.drawing import suffix
from pdcl.lab.figures.drawn import Drawn, Shown
from pdcl.lab.figures.grids import STREAMS
from pdcl.lab.paper.captions import ABOUT, KINDS, alternative, caption
from pdcl.lab.paper.price_figure import draw_capacity, draw_prices
from pdcl.lab.paper.runs import Runs
from pdcl.lab.paper.variant_figure import draw_variants
from pdcl.records import Row

Families = Mapping[str, Sequence[str]]


def draw_answers(drawn: Drawn, rows: Sequence[Row]) -> None:
    """Figures of runs that answer single questions: prices, and changed forms of methods."""
    runs = Runs(rows)
    for stream, preset in sorted({(row.stream, row.preset) for row in rows}):
        draw_prices(drawn, runs, stream, suffix(stream, preset))
        draw_capacity(drawn, runs, stream, suffix(stream, preset))
        draw_variants(drawn, runs, stream, suffix(stream, preset))


def gallery(drawn: Drawn, out: Path, families: Families) -> str:
    """Every picture with its caption: one family of presets after the other, in the order of `KINDS`."""
    parts = ["## Figures", ABOUT]
    for title, presets in {**families, "without runs": (None,)}.items():
        shown = {
            name: each for name, each in drawn.shown.items() if (each.rows[0].preset if each.rows else None) in presets
        }
        if shown:
            parts.append(f"### Figures, {title}")
        for name in sorted(shown, key=lambda each: _place(each, shown[each])):
            parts += [f"![{alternative(shown[name])}]({out.stem}/{name}.png)", caption(name, shown[name])]
    return "\n\n".join(parts)


def _place(name: str, shown: Shown) -> tuple[int, int, str]:
    stream = shown.rows[0].stream if shown.rows else ""
    return [*KINDS].index(shown.kind), STREAMS.index(stream) if stream in STREAMS else len(STREAMS), name


def left_out(drawn: Drawn) -> str:
    """What was not drawn, under its reason."""
    names = defaultdict(list)
    for name, reason in drawn.skipped.items():
        names[reason].append(name)
    lines = [f"- {', '.join(each)}: {reason}" for reason, each in names.items()]
    return "\n".join(["Not drawn:", "", *lines]) if lines else ""
