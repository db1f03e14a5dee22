"""How duals moved: of one run, and of runs that differ in their tolerance ε."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pdcl.lab.comparing import Group
from pdcl.lab.figures.drawn import Drawn
from pdcl.lab.figures.selecting import follows_duals, level, options_given, primal_dual, sized, titled
from pdcl.lab.figures.style import figure, look
from pdcl.lab.figures.sweeps import of_shared_seeds, varied
from pdcl.lab.reports.dossier import read_story
from pdcl.lab.reports.story import Story
from pdcl.lab.reports.thinning import Curve, Values, columns
from pdcl.records import Row

# With one step there is no curve.
FEWEST_STEPS = 2
POINTS = 300
TOO_FEW = f"of some task fewer than {FEWEST_STEPS} dual steps were kept"


def draw_duals(drawn: Drawn, suffix: str, rows: Sequence[Row], groups: Sequence[Group], memory: int | None) -> None:
    """λ over time of one run, and for a tight, the usual and a loose tolerance where there are such runs."""
    _tolerances(drawn, suffix, rows, memory)
    member = priced(groups, memory)
    if member is None:
        drawn.skipped[f"duals-{suffix}"] = "no primal-dual method was run"
        return
    # Packed records keep the steps of one seed, not always of the first.
    stories = {row.path: read_story(row.path, points=POINTS) for row in member.rows}
    row = next((each for each in member.rows if has_curves(stories[each.path])), member.first)
    drawn.priced.add(row.path)
    title = titled(member, row)
    draw_it = partial(single_duals, stories[row.path], title, start_of(row)) if has_curves(stories[row.path]) else None
    drawn.put("duals", suffix, draw_it, f"{title}: {TOO_FEW}", [row])


def priced(groups: Sequence[Group], memory: int | None) -> Group | None:
    """The run whose duals are drawn: one that divides memory by them, of this memory or else the largest."""

    def place(member: Group) -> tuple[Any, ...]:
        row = member.first
        size = int(row.memory or 0) if sized(member) else 0
        return not follows_duals(row), size != memory, -size, level(row) == "sample", member.label

    return min((member for member in groups if primal_dual(member.first)), key=place, default=None)


def has_curves(story: Story) -> bool:
    """Whether every task with duals has enough dual steps to draw."""
    steps = Counter(segment for segment, _, values in story.duals.kept() if len(values) > 1)
    return bool(steps) and min(steps.values()) >= FEWEST_STEPS


def _tolerances(drawn: Drawn, suffix: str, rows: Sequence[Row], memory: int | None) -> None:
    lines = [line for line in varied([row for row in rows if primal_dual(row)], "tolerance") if len(line) > 1]
    if not lines:
        drawn.skipped[f"duals-tolerance-{suffix}"] = "no two groups of runs differ in tolerance alone"
        return
    # One seed for all panels: a difference of seeds must not look like one of ε.
    line = of_shared_seeds(max(lines, key=lambda each: (len(each), next(iter(each.values())).first.memory == memory)))
    names = tight_usual_loose(line)
    stories = {value: read_story(line[value].first.path, points=POINTS) for value in names}
    shown = [line[value].first for value in names]
    drawn.priced |= {row.path for row in shown}
    short = [f"ε = {value:g}" for value, story in stories.items() if not has_curves(story)]
    draw_it = None if short else partial(duals, line, stories)
    reason = f"{_plainly(line)}, {', '.join(short)}: {TOO_FEW}"
    drawn.put("duals-tolerance", suffix, draw_it, reason, shown)


def _plainly(line: Mapping[float, Group]) -> str:
    """The title without the options that tell the method's groups apart: panels name their ε."""
    row = line[min(line)].first
    return f"{row.ran}, memory {row.memory}, seed {row.seed}"


def duals(line: Mapping[float, Group], stories: Mapping[float, Story]) -> Any:
    """λ over time for a tight, the usual and a loose tolerance, on one axis so that heights can be compared."""
    names = tight_usual_loose(line)
    more = {"columns": len(names), "squeeze": False, "sharey": True}
    with figure(width=0.75 * len(names), height=0.95, **more) as (made, panels):
        for axes, (value, name) in zip(panels[0], names.items(), strict=True):
            lambdas(axes, stories[value], start_of(line[value].first))
            axes.set(title=f"{name}: ε = {value:g}", xlabel="step")
        # The panels share this axis: the first alone would decide how far it goes.
        kept = [duals for value in names for _, _, duals in stories[value].duals.kept()]
        panels[0][0].set_ylim(0, 1.05 * max(each for duals in kept for each in duals[1:] if each is not None))
        panels[0][0].set_ylabel("λ")
        made.suptitle(_plainly(line), fontsize=8)
        made.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=8, title="λ of")
        return made


def tight_usual_loose(line: Mapping[float, Group]) -> dict[float, str]:
    """What to call the least tolerance, the preset's own and the largest.

    Where ε was given to every run, the most accurate of those in between stands for the preset's.
    """
    values = sorted(line)
    own = [value for value in values if "tolerance" not in options_given(line[value].first)]
    between = sorted(values[1:-1], key=lambda value: -line[value].estimate("mean_accuracy")[0])
    names = {values[0]: "tight", values[-1]: "loose"}
    if own:
        names[own[0]] = "the preset's" if own[0] in between else f"{names[own[0]]}, the preset's"
    elif between:
        names[between[0]] = "between"
    return dict(sorted(names.items()))


def single_duals(story: Story, title: str = "", start: float | None = None) -> Any:
    """λ of every past task over time."""
    with figure() as (made, axes):
        lambdas(axes, story, start)
        axes.set(xlabel="step", ylabel="λ", title=title)
        # Beside the panel: inside it curves can be anywhere.
        made.legend(loc="outside right center", title="λ of")
        return made


def start_of(row: Row) -> float | None:
    """What every λ of a run starts a task with; None where it goes on from the last one."""
    return None if row.options.get("warm") else float(row.options.get("start") or 0.0)


def from_start(story: Story, start: float) -> Curve:
    """The curve of duals with the point at which each task began: the first dual step comes later."""
    begins = {chapter.task: chapter.start for chapter in story.chapters}
    rows: list[tuple[int, float, Values]] = []
    for segment, x, values in story.duals.kept():
        if segment in begins and (not rows or rows[-1][0] != segment):
            rows.append((segment, begins[segment], [None, *([start] * (len(values) - 1))]))
        rows.append((segment, x, values))
    return Curve(story.duals.limit, rows=rows)


def lambdas(axes: Any, story: Story, start: float | None = None) -> None:
    """Curves of one panel. start: the λ that every task begins with, where it is known."""
    x, ys = columns(story.duals if start is None else from_start(story, start))
    steps = [np.nan if each is None else each for each in x]
    for k, y in enumerate(ys[1:]):
        axes.plot(steps, [np.nan if v is None else v for v in y], label=f"task {k + 1}", **{**look(k), "marker": None})
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="x", nbins=4)
    for chapter in story.chapters[1:]:
        axes.axvline(chapter.start, color="#c9ced4", linewidth=0.6, zorder=0)
