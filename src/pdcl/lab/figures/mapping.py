"""Where stored samples lie, as the network sees them, and which of them have large duals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdcl.errors import RecordError
from pdcl.lab.comparing import Group
from pdcl.lab.figures.borders import Borders
from pdcl.lab.figures.drawn import Drawn
from pdcl.lab.figures.maps import Map, map_of, read_map
from pdcl.lab.figures.selecting import level, titled
from pdcl.lab.figures.style import COLOURS, MARKERS, figure, shortened
from pdcl.lab.reports.dossier import read_story
from pdcl.lab.reports.holdings import Holdings, read_holdings

# Beyond this many classes a legend of them leaves no room for the map: a task is one marker then.
MOST_CLASSES = 14


def draw_map(drawn: Drawn, suffix: str, groups: Sequence[Group], memory: int | None, sample_duals: bool) -> None:
    """The map of a run whose samples have duals of their own; else of any that left a snapshot, or kept its map.

    sample_duals: of the first kind only.
    """
    found = _to_map([g for g in groups if not sample_duals or level(g.first) == "sample"], memory)

    def draw_it() -> Any | None:
        if found is None:
            return None
        member, source = found
        shown = source if isinstance(source, Map) else map_of(source)
        if shown is None:
            return None
        drawn.mapped[member.first.path] = shown
        return samples_map(shown, *names_of(member), titled(member))

    which = " with a dual for every sample" if sample_duals else ""
    reason = f"no run{which} left a memory.safetensors with features"
    drawn.put("map", suffix, draw_it, reason, [] if found is None else [found[0].first])


def _to_map(groups: Sequence[Group], memory: int | None) -> tuple[Group, Map | Holdings] | None:
    """Of those with a map or features: a dual per sample first, then this memory, then any duals, then the largest."""
    found: list[tuple[Any, ...]] = []
    for member in groups:
        run = member.first
        wanted = level(run) == "sample", run.memory == memory
        try:
            if (kept := read_map(run.path)) is not None:
                priced = max(kept.points["dual"], default=0) > 0
                found.append((*wanted, priced, kept.points["of"], member, kept))
            elif (held := read_holdings(run.path)) is not None and held.features is not None:
                found.append((*wanted, bool(held.dual.max(initial=0) > 0), len(held.x), member, held))
        except RecordError:
            continue
    best = max(found, key=lambda each: each[:4], default=None)
    return best and best[4:]


def names_of(member: Group) -> tuple[list[str], list[str]]:
    """Names of tasks, and of classes by their index."""
    story = read_story(member.first.path, points=4)
    tasks = [", ".join(each.classes) or each.name for each in story.chapters]
    return tasks, story.labels or [name for each in story.chapters for name in each.classes]


@dataclass(frozen=True)
class Cloud:
    """Samples that share a colour and a marker, and the name that the legend has for them."""

    rows: Any
    name: str
    colour: str
    marker: str


def samples_map(found: Map, tasks: Sequence[str], classes: Sequence[str] = (), title: str = "") -> Any:
    """t-SNE of stored samples: a colour per task, a marker per class of it (one per task, if there are many classes).

    Markers are larger where the dual is larger, by the largest dual of their own task.
    """
    dual = np.array(found.points["dual"], dtype=float)
    size = _sizes(dual, np.array(found.points["task"]))
    # Every class has a marker of its own where all are known, and few enough.
    pairs = {*zip(found.points["task"], found.points["label"], strict=True)}
    by_class = all(label is not None and label >= 0 for _, label in pairs) and len(pairs) <= MOST_CLASSES
    clouds = list(_clouds(found.points, tasks, classes if by_class else None))
    with figure(width=1.3, height=1.2) as (made, axes):
        for each in clouds:
            x, y = (np.array(found.points[key])[each.rows] for key in ("x", "y"))
            own = {"s": size[each.rows], "color": each.colour, "marker": each.marker}
            axes.scatter(x, y, **own, alpha=0.75, linewidths=0.3, edgecolors="white")
        axes.set(xticks=[], yticks=[], title=title)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        _legend(made, clouds, by_class)
        if share := border_text(found.borders):
            # Below the whole figure: an axis label wider than its panel would be cut off.
            made.supxlabel(share, fontsize=8)
        return made


def _sizes(dual: Any, task: Any) -> Any:
    """Of markers: 75 for the largest dual of each task, 5 for none; 12 for all where no sample of a task has one."""
    largest = np.array([dual[task == k].max() for k in task.tolist()])
    return np.where(largest > 0, 5 + 70 * dual / np.where(largest > 0, largest, 1), 12.0)


def _clouds(points: Mapping[str, Any], tasks: Sequence[str], classes: Sequence[str] | None) -> Iterator[Cloud]:
    """One for each class, or for each task where classes is None."""
    task = np.array(points["task"])
    labels = np.array([-1 if label is None else label for label in points["label"]])
    for k in np.unique(task).tolist():
        here = task == k
        task_name = tasks[k] if k < len(tasks) else str(k + 1)
        # After the last colour they start again, with other markers.
        colour, again = COLOURS[k % len(COLOURS)], k // len(COLOURS)
        if classes is None:
            yield Cloud(np.flatnonzero(here), shortened(task_name), colour, MARKERS[(k + again) % len(MARKERS)])
            continue
        for place, label in enumerate(np.unique(labels[here]).tolist()):
            name = classes[label] if label < len(classes) else str(label)
            marker = MARKERS[(2 * k + again + place) % len(MARKERS)]
            yield Cloud(np.flatnonzero(here & (labels == label)), shortened(name), colour, marker)


def _legend(made: Any, clouds: Sequence[Cloud], by_class: bool) -> None:
    """Markers of one size: on the map their size is a dual."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], linestyle="", marker=c.marker, color=c.colour, markersize=5) for c in clouds]
    tasks = len({c.colour for c in clouds}) == len(clouds)
    title = "class,\na colour per task" if by_class and not tasks else "task"
    made.legend(handles, [c.name for c in clouds], loc="outside right center", title=title)


def border_text(found: Borders | None) -> str:
    """How the map's caption says where large duals lie."""
    if found is None:
        return ""
    return f"at a class border:\n{100 * found.large:.0f} % of large duals, {100 * found.all:.0f} % of all samples"
