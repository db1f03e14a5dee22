"""How runs divided memory, and ζ, by which the paper says what a sample more is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pdcl.algorithm.partition_rules import Generalization
from pdcl.lab.figures.style import COLOURS, HATCHES, SIZE, figure, look, ordered, places, shortened
from pdcl.lab.figures.sweeps import FEWEST
from pdcl.lab.reports.dossier import distance_from_uniform
from pdcl.metrics import interval

# Inches that a legend's entry takes: its handle, and each letter; and the part of a figure's height for each row.
HANDLE, LETTER = 0.45, 0.05
ROW = 0.055
# Shares of whole samples are never quite equal.
EVEN = 0.005


def partition(counts: Sequence[Sequence[int]], names: Sequence[str], title: str = "") -> Any:
    """Samples held per task after every task, stacked."""
    after = range(1, len(counts) + 1)
    width = max(len(row) for row in counts)
    shown = [shortened(name) for name in names[:width]]
    # Room for a tick below every bar.
    wide = 1 + 0.06 * max(0, len(counts) - 5)
    columns = max(1, int(SIZE[0] * wide / (HANDLE + LETTER * max(map(len, shown)))))
    with figure(width=wide, height=1 + ROW * math.ceil(width / columns)) as (made, axes):
        below = np.zeros(len(counts))
        for k in range(width):
            held = np.array([row[k] if k < len(row) else 0 for row in counts], dtype=float)
            axes.bar(after, held, bottom=below, width=0.7, label=shown[k], **_filled(k))
            below += held
        axes.set(xlabel="after task", ylabel="samples in memory", title=title)
        axes.set_xticks(list(after))
        axes.grid(axis="x", visible=False)
        # Below the panel: names of tasks are long, and beside it they would take the room of the bars.
        made.legend(loc="outside lower center", title="task", ncols=columns)
        return made


def distance(partitions: Mapping[str, list[list[list[int]]]], title: str = "") -> Any:
    """Distance of the partition from equal shares after every task: mean over seeds with 95 % intervals, by method.

    Methods that stay at 0 would lie on each other: they are named in a note instead.
    """
    means: dict[str, list[tuple[float, float]]] = {}
    for label, made in partitions.items():
        each = [[distance_from_uniform(row) or 0.0 for row in counts] for counts in made]
        # After every task that all runs have; no interval of too few runs.
        found = [interval(values) for values in zip(*each, strict=False)]
        means[label] = [(mean, half if len(each) >= FEWEST else 0.0) for mean, half in found]
    even = [label for label in ordered(means) if max(mean for mean, _ in means[label]) < EVEN]
    with figure() as (made, axes):
        for label, place in places(partitions).items():
            if label not in even:
                mean, half = zip(*means[label], strict=True)
                after = range(1, len(mean) + 1)
                axes.errorbar(after, mean, yerr=half, capsize=2, elinewidth=0.8, label=label, **look(place))
        axes.set(xlabel="after task", ylabel="distance from uniform", title=title)
        top = max([0.1, *(mean + half for label in means if label not in even for mean, half in means[label])])
        axes.set_ylim(-0.12 * top if even else -0.04 * top, 1.05 * top)
        if even:
            axes.text(0.98, 0.02, f"0: {', '.join(even)}", transform=axes.transAxes, fontsize=6, ha="right")
        axes.xaxis.get_major_locator().set_params(integer=True)
        if len(even) < len(means):
            made.legend(*axes.get_legend_handles_labels(), loc="outside right center")
        return made


def _filled(k: int) -> dict[str, Any]:
    """Colour and hatch of the k-th task, told apart in grey too."""
    # After the last colour they start again, with other hatches.
    hatch = HATCHES[(k + k // len(COLOURS)) % len(HATCHES)]
    return {"color": COLOURS[k % len(COLOURS)], "hatch": hatch, "edgecolor": "white", "linewidth": 0.8}


def zeta() -> Any:
    """100 ζ(n) = 100 √(ln n / n) for n up to 20, as the paper draws it. It is convex from about n = 4.7 on."""
    n = np.linspace(1, 20, 600)
    with figure() as (made, axes):
        axes.plot(n, 100 * np.sqrt(np.log(n) / n), color=COLOURS[0])
        axes.axvspan(np.exp((4 + np.sqrt(28)) / 6), 20, color=COLOURS[0], alpha=0.07, linewidth=0)
        axes.text(14, 20, "convex", color=COLOURS[0])
        least = Generalization().minimum
        for at, marker, text in ((np.e, "o", "falls from n = e"), (least, "s", f"BP: n ≥ {least}")):
            height = 100 * np.sqrt(np.log(at) / at)
            axes.plot([at], [height], marker, color=COLOURS[1], mfc="white")
            axes.annotate(text, (at, height), (6, 2), textcoords="offset points", fontsize=7, va="bottom")
        axes.set(xlabel="samples n", ylabel="100 √(ln n / n)", xlim=(0, 20), ylim=(0, None), xticks=[0, 5, 10, 15, 20])
        return made
