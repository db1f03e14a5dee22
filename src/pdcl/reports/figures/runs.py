"""What single runs show: how memory was divided, how duals moved, where stored samples lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pdcl.records import Group
from pdcl.reports.dossier import distance_from_uniform
from pdcl.reports.figures.style import COLOURS, MARKERS, figure, look
from pdcl.reports.holdings import Holdings, chart
from pdcl.reports.story import Story
from pdcl.reports.thinning import columns


def partition(counts: Sequence[Sequence[int]], names: Sequence[str]) -> Any:
    """Samples held per task after every task, stacked."""
    after = range(1, len(counts) + 1)
    width = max(len(row) for row in counts)
    with figure() as (made, axes):
        below = np.zeros(len(counts))
        for k in range(width):
            held = np.array([row[k] if k < len(row) else 0 for row in counts], dtype=float)
            axes.bar(after, held, bottom=below, width=0.7, color=COLOURS[k % len(COLOURS)], label=names[k])
            below += held
        axes.set(xlabel="after task", ylabel="samples in memory")
        axes.set_xticks(list(after))
        axes.grid(axis="x", visible=False)
        made.legend(loc="outside right center", title="task")
        return made


def distance(partitions: Mapping[str, list[list[list[int]]]]) -> Any:
    """Distance of the partition from equal shares after every task: mean over seeds, by method."""
    with figure() as (made, axes):
        for place, (label, runs) in enumerate(partitions.items()):
            each = [[distance_from_uniform(row) or 0.0 for row in counts] for counts in runs]
            shortest = min(map(len, each))
            mean = np.mean([run[:shortest] for run in each], axis=0)
            axes.plot(range(1, shortest + 1), mean, label=label, **look(place))
        axes.set(xlabel="after task", ylabel="distance from uniform")
        axes.set_ylim(bottom=0)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend()
        return made


def duals(line: Mapping[float, Group], stories: Mapping[float, Story]) -> Any | None:
    """λ over time for a tight, a right and a loose tolerance: the least, the middle and the largest there is."""
    if not all(story.duals.rows for story in stories.values()):
        return None
    values = list(line)
    chosen = list(dict.fromkeys([values[0], values[len(values) // 2], values[-1]]))
    titles = ("tight", "right", "loose") if len(chosen) == 3 else ("tight", "loose")
    with figure(width=1.9, height=0.85, columns=len(chosen), sharey=True, squeeze=False) as (made, panels):
        for axes, value, title in zip(panels[0], chosen, titles, strict=False):
            lambdas(axes, stories[value])
            shown = line[value].first.options["tolerance"]
            axes.set(title=f"{title}: ε = {shown}", xlabel="step")
        panels[0][0].set_ylabel("λ")
        panels[0][0].legend()
        return made


def single_duals(story: Story) -> Any:
    """λ of every past task over time."""
    with figure() as (made, axes):
        lambdas(axes, story)
        axes.set(xlabel="step", ylabel="λ")
        axes.legend()
        return made


def lambdas(axes: Any, story: Story) -> None:
    x, ys = columns(story.duals)
    steps = [np.nan if each is None else each for each in x]
    for k, y in enumerate(ys[1:]):
        axes.plot(steps, [np.nan if v is None else v for v in y], label=f"task {k + 1}", **{**look(k), "marker": None})
    axes.set_ylim(bottom=0)
    for chapter in story.chapters[1:]:
        axes.axvline(chapter.start, color="#c9ced4", linewidth=0.6, zorder=0)


def samples_map(held: Holdings, names: Sequence[str]) -> Any | None:
    """t-SNE of stored samples, larger where their dual is larger."""
    found = chart(held)
    if found is None:
        return None
    dual = np.array(found["dual"], dtype=float)
    size = 8 + 60 * dual / dual.max() if dual.max() > 0 else np.full(len(dual), 16.0)
    x, y, task = np.array(found["x"]), np.array(found["y"]), np.array(found["task"])
    with figure(height=1.1) as (made, axes):
        for k in np.unique(task):
            here = task == k
            axes.scatter(
                x[here], y[here], s=size[here], color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)],
                alpha=0.75, linewidths=0.3, edgecolors="white", label=names[k] if k < len(names) else str(k + 1),
            )  # fmt: skip
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set_visible(False)
        made.legend(loc="outside right center", title="task")
        return made


def zeta() -> Any:
    """ζ(n) = √(ln n / n): what n samples leave uncertain. It is convex from about n = 4.7 on."""
    n = np.geomspace(1, 1000, 600)
    with figure() as (made, axes):
        axes.plot(n, np.sqrt(np.log(n) / n), color=COLOURS[0])
        axes.axvspan(np.exp((4 + np.sqrt(28)) / 6), 1000, color=COLOURS[0], alpha=0.07, linewidth=0)
        axes.text(70, 0.56, "convex", color=COLOURS[0])
        axes.set(xscale="log", xlabel="samples n", ylabel="ζ(n) = √(ln n / n)", xlim=(1, 1000), ylim=(0, None))
        return made
