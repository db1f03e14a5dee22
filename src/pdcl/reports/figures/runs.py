"""How runs divided memory, and ζ, by which the paper says what a sample more is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pdcl.reports.dossier import distance_from_uniform
from pdcl.reports.figures.style import COLOURS, HATCHES, figure, look, places, shortened


def partition(counts: Sequence[Sequence[int]], names: Sequence[str], title: str = "") -> Any:
    """Samples held per task after every task, stacked."""
    after = range(1, len(counts) + 1)
    width = max(len(row) for row in counts)
    # Room for a tick below every bar.
    with figure(width=1 + 0.06 * max(0, len(counts) - 5)) as (made, axes):
        below = np.zeros(len(counts))
        for k in range(width):
            held = np.array([row[k] if k < len(row) else 0 for row in counts], dtype=float)
            axes.bar(after, held, bottom=below, width=0.7, label=shortened(names[k]), **_filled(k))
            below += held
        axes.set(xlabel="after task", ylabel="samples in memory", title=title)
        axes.set_xticks(list(after))
        axes.grid(axis="x", visible=False)
        made.legend(loc="outside right center", title="task")
        return made


def distance(partitions: Mapping[str, list[list[list[int]]]]) -> Any:
    """Distance of the partition from equal shares after every task: mean over seeds, by method."""
    with figure() as (made, axes):
        for label, place in places(partitions).items():
            runs = partitions[label]
            each = [[distance_from_uniform(row) or 0.0 for row in counts] for counts in runs]
            shortest = min(map(len, each))
            mean = np.mean([run[:shortest] for run in each], axis=0)
            axes.plot(range(1, shortest + 1), mean, label=label, **look(place))
        axes.set(xlabel="after task", ylabel="distance from uniform")
        axes.set_ylim(bottom=0)
        axes.xaxis.get_major_locator().set_params(integer=True)
        made.legend(loc="outside right center")
        return made


def _filled(k: int) -> dict[str, Any]:
    """Colour and hatch of the k-th task, told apart in grey too."""
    return {
        "color": COLOURS[k % len(COLOURS)],
        # After the last colour they start again, with other hatches.
        "hatch": HATCHES[(k + k // len(COLOURS)) % len(HATCHES)],
        "edgecolor": "white",
        "linewidth": 0.8,
    }


def zeta() -> Any:
    """ζ(n) = √(ln n / n): what n samples leave uncertain. It is convex from about n = 4.7 on."""
    n = np.geomspace(1, 1000, 600)
    with figure() as (made, axes):
        axes.plot(n, np.sqrt(np.log(n) / n), color=COLOURS[0])
        axes.axvspan(np.exp((4 + np.sqrt(28)) / 6), 1000, color=COLOURS[0], alpha=0.07, linewidth=0)
        axes.text(70, 0.56, "convex", color=COLOURS[0])
        axes.set(xscale="log", xlabel="samples n", ylabel="ζ(n) = √(ln n / n)", xlim=(1, 1000), ylim=(0, None))
        # matplotlib writes powers as formulas, which our style shows as they are typed.
        axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
        return made
