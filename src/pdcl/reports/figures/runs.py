"""What single runs show: how memory was divided, how duals moved, where stored samples lie."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pdcl.records import Group
from pdcl.reports.borders import Borders
from pdcl.reports.dossier import distance_from_uniform
from pdcl.reports.figures.style import COLOURS, HATCHES, MARKERS, figure, look, places
from pdcl.reports.maps import Map
from pdcl.reports.story import Story
from pdcl.reports.thinning import columns

# Beyond this a legend leaves no room for what it is about.
NAME_WIDTH = 28


def partition(counts: Sequence[Sequence[int]], names: Sequence[str], title: str = "") -> Any:
    """Samples held per task after every task, stacked."""
    after = range(1, len(counts) + 1)
    width = max(len(row) for row in counts)
    with figure() as (made, axes):
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


def shortened(name: str) -> str:
    """A task's name as a legend has room for it."""
    return textwrap.shorten(name, NAME_WIDTH, placeholder="…")


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


def duals(line: Mapping[float, Group], stories: Mapping[float, Story]) -> Any | None:
    """λ over time for a tight, a right and a loose tolerance: the least, the most accurate and the largest there is.

    Each panel has its own axis: the duals of a tight tolerance are hundreds of times those of a loose one.
    """
    if not all(story.duals.rows for story in stories.values()):
        return None
    titles = tight_right_loose(line)
    width = 0.85 * len(titles)
    with figure(width=width, height=0.95, columns=len(titles), squeeze=False) as (made, panels):
        for axes, (value, title) in zip(panels[0], titles.items(), strict=True):
            member = line[value]
            lambdas(axes, stories[value])
            reached = f"{100 * member.estimate('mean_accuracy')[0]:.1f} %"
            axes.set(title=f"{title}: ε = {member.first.options['tolerance']}\naccuracy {reached}", xlabel="step")
        panels[0][0].set_ylabel("λ")
        first = next(iter(line.values())).first
        made.suptitle(f"{first.label}, memory {first.memory}", fontsize=8)
        made.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=8)
        return made


def tight_right_loose(line: Mapping[float, Group]) -> dict[float, str]:
    """What to call the least, the most accurate and the largest tolerance; one of the ends may be the best."""
    values = sorted(line)
    right = max(values, key=lambda value: line[value].estimate("mean_accuracy")[0])
    named = {values[0]: "tight", right: "right", values[-1]: "loose"}
    for end, name in ((values[0], "tight"), (values[-1], "loose")):
        if end == right:
            named[end] = f"{name} and right"
    return dict(sorted(named.items()))


def single_duals(story: Story, title: str = "") -> Any:
    """λ of every past task over time."""
    with figure() as (made, axes):
        lambdas(axes, story)
        axes.set(xlabel="step", ylabel="λ", title=title)
        axes.legend()
        return made


def lambdas(axes: Any, story: Story) -> None:
    x, ys = columns(story.duals)
    steps = [np.nan if each is None else each for each in x]
    for k, y in enumerate(ys[1:]):
        axes.plot(steps, [np.nan if v is None else v for v in y], label=f"task {k + 1}", **{**look(k), "marker": None})
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="x", nbins=4)
    for chapter in story.chapters[1:]:
        axes.axvline(chapter.start, color="#c9ced4", linewidth=0.6, zorder=0)


def samples_map(found: Map, names: Sequence[str], title: str = "") -> Any:
    """t-SNE of stored samples: a colour per task, a marker per class of it, larger where the dual is larger."""
    dual = np.array(found.points["dual"], dtype=float)
    size = 5 + 70 * dual / dual.max() if dual.max() > 0 else np.full(len(dual), 12.0)
    with figure(width=1.2, height=1.2) as (made, axes):
        _scattered(axes, found.points, size, [shortened(name) for name in names])
        axes.set(xticks=[], yticks=[], title=title)
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set_visible(False)
        made.legend(loc="outside right center", title="task", markerscale=1.0)
        if share := border_text(found.borders):
            axes.set_xlabel(share)
        return made


def _scattered(axes: Any, found: Mapping[str, Any], size: Any, names: Sequence[str]) -> None:
    x, y, task = (np.array(found[key]) for key in ("x", "y", "task"))
    labels = np.array([-1 if label is None else label for label in found["label"]])
    for k in np.unique(task):
        for place, label in enumerate(np.unique(labels[task == k])):
            here = (task == k) & (labels == label)
            named = {"label": names[k] if k < len(names) else str(k + 1)} if place == 0 else {}
            marker = MARKERS[(2 * k + place) % len(MARKERS)]
            axes.scatter(
                x[here], y[here], s=size[here], color=COLOURS[k % len(COLOURS)], marker=marker,
                alpha=0.75, linewidths=0.3, edgecolors="white", **named,
            )  # fmt: skip


def border_text(found: Borders | None) -> str:
    """How the map's caption says where large duals lie."""
    if found is None:
        return ""
    return f"at a class border:\n{100 * found.large:.0f} % of large duals, {100 * found.all:.0f} % of all samples"


def _filled(k: int) -> dict[str, Any]:
    """Colour and hatch of the k-th task, told apart in grey too."""
    return {
        "color": COLOURS[k % len(COLOURS)],
        "hatch": HATCHES[k % len(HATCHES)],
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
