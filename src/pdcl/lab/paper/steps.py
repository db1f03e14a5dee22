"""The paper's three steps, ER → PDCL₀ → PDCL → PDCL-S: one paragraph each, and one figure for all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pdcl.lab.figures.drawn import Drawn
from pdcl.lab.figures.style import COLOURS, figure
from pdcl.lab.figures.sweeps import FEWEST
from pdcl.lab.paper.cells import shown
from pdcl.lab.paper.runs import HELD, NOT_HELD, NOT_RUN, UNDECIDED, Finding, Runs
from pdcl.lab.paper.settings import ACCURACY, EQUAL, FORGETTING, OPEN, PRINTED, TINY, Setting, pooled

# One epoch on it is our choice, and too short for a dual to come in time: it outweighs all other settings.
SHORT = "organa"


@dataclass(frozen=True)
class Step:
    first: str
    second: str
    arrow: str
    says: str
    equal: str = ""


STEPS = (
    Step("pdcl0", "er", "ER → PDCL₀", "dual weights instead of fixed ones"),
    Step("pdcl", "pdcl0", "PDCL₀ → PDCL", "places divided by dual instead of evenly"),
    Step(
        "pdcl-s", "pdcl", "PDCL → PDCL-S", "samples chosen by dual instead of at random",
        ", where selection is our changed one (classes balanced, half of it uniform, duals clipped)",
    ),
)  # fmt: skip
WORDS = {HELD: "gain", NOT_HELD: "lose", UNDECIDED: "make no clear difference", NOT_RUN: "were not run"}


def lead(runs: Runs) -> str:
    """Three sentences."""
    said = []
    for step in STEPS:
        found, count = pooled(step.first, step.second, ACCURACY, PRINTED, runs)
        what = f"{step.says[0].upper()}{step.says[1:]} ({step.arrow})"
        said.append(f"{what} {WORDS[found.verdict]}: {told(found)} over {count} settings as printed.")
    return " ".join(said)


def told(found: Finding) -> str:
    """`+1.2 points (−.3 to +2.7, 5 seeds)`"""
    if found.verdict == NOT_RUN:
        return "no runs"
    many = "1 seed" if found.n == 1 else f"{found.n} seeds"
    span = "" if math.isnan(found.low) else f"{shown(found.low, '+.1f')} to {shown(found.high, '+.1f')}, "
    return f"{shown(found.number, '+.1f')} points ({span}{many})"


def paragraphs(runs: Runs, equal: Runs) -> str:
    """What became of each step: pooled, and the settings in which it holds, is reversed or isn't decided."""
    return "\n\n".join(_paragraph(step, runs, equal) for step in STEPS)


def _paragraph(step: Step, runs: Runs, equal: Runs) -> str:
    first, second = step.first, step.second
    accuracy, count = pooled(first, second, ACCURACY, PRINTED, runs)
    forgotten, _ = pooled(first, second, FORGETTING, PRINTED, runs)
    rest, rest_count = pooled(first, second, ACCURACY, [each for each in PRINTED if each.stream != SHORT], runs)
    found, others = (
        {each.name: each.difference(first, second, ACCURACY, runs) for each in settings}
        for settings in ((*PRINTED, TINY), OPEN)
    )
    gentle, gentle_count = pooled(first, second, ACCURACY, EQUAL, equal)
    text = [
        f"**{step.arrow}: {step.says}.** Over the {count} printed settings with all seeds, {first} minus {second} is "
        f"{told(accuracy)} in accuracy and {told(forgotten)} in forgetting; without {SHORT}, {rest_count} settings, "
        f"{told(rest)} in accuracy.",
        _where(found),
    ]
    if known := [f"{name} {told(finding)}" for name, finding in others.items() if finding.verdict != NOT_RUN]:
        text.append(f"Where the paper is silent: {'; '.join(known)}.")
    if gentle.verdict != NOT_RUN:
        text.append(f"With the preset `equal`, {gentle_count} settings{step.equal}: {told(gentle)}.")
    return " ".join(text)


def _where(found: Mapping[str, Finding]) -> str:
    names = {verdict: [name for name, one in found.items() if one.verdict == verdict] for verdict in WORDS}
    parts = [
        f"{word} in {len(names[verdict])} ({'; '.join(names[verdict])})" if names[verdict] else f"{word} in none"
        for verdict, word in ((HELD, "It holds"), (NOT_HELD, "is reversed"))
    ]
    return f"{', '.join(parts)}, and isn't decided in {len(names[UNDECIDED])}."


@dataclass(frozen=True)
class Line:
    """A setting of the figure: how far down it stands, the runs it asks, and which of the three groups it is of."""

    y: float
    setting: Setting
    runs: Runs
    group: int

    def difference(self, step: Step) -> Finding:
        return self.setting.difference(step.first, step.second, ACCURACY, self.runs)


def draw_steps(drawn: Drawn, runs: Runs, equal: Runs) -> None:
    """One panel a step, a line a setting: differences with their intervals, then what they come to together."""
    lines: list[Line] = []
    for group, (settings, held) in enumerate((((*PRINTED, TINY), runs), (OPEN, runs), (EQUAL, equal))):
        for each in settings:
            # Groups stand apart by more than half a line.
            line = Line(len(lines) + 0.6 * group, each, held, group)
            lines += [line] * any(line.difference(step).verdict != NOT_RUN for step in STEPS)
    rows = [
        row
        for line in lines
        if not line.group
        for step in STEPS
        for label in (step.first, step.second)
        for row in runs.find(line.setting.stream, label, line.setting.memory).values()
    ]
    draw_it = partial(steps_figure, lines, runs) if rows else None
    drawn.put("steps", "", draw_it, "no two methods of a step were run", rows)


def steps_figure(lines: Sequence[Line], runs: Runs) -> Any:
    last = lines[-1].y
    with figure(width=2.0, height=0.45 + 0.075 * len(lines), columns=3, sharey=True) as (made, panels):
        for axes, step in zip(panels, STEPS, strict=True):
            for line in lines:
                found = line.difference(step)
                _mark(axes, line.y, found, COLOURS[line.group], "o" if found.n >= FEWEST else "_")
            together, _ = pooled(step.first, step.second, ACCURACY, PRINTED, runs)
            _mark(axes, last + 1.6, together, "black", "D")
            axes.axvline(0, color="#57606a", linewidth=0.8)
            axes.set(title=step.arrow, xlim=(-32, 22))
            axes.grid(axis="y", visible=False)
        ticks = [*(line.y for line in lines), last + 1.6]
        panels[0].set_yticks(ticks, [*(line.setting.name for line in lines), "all printed settings"])
        panels[0].set_ylim(last + 2.3, -0.7)
        made.supxlabel("points of accuracy gained", fontsize=8)
        return made


def _mark(axes: Any, y: float, found: Finding, colour: str, marker: str) -> None:
    """A point with its interval; of fewer than three seeds the mean alone, as a dash."""
    if found.verdict == NOT_RUN:
        return
    half = found.high - found.number if found.n >= FEWEST and not math.isnan(found.high) else 0.0
    look = {"fmt": marker, "color": colour, "capsize": 1.5, "elinewidth": 0.9, "markersize": 3.5}
    axes.errorbar([found.number], [y], xerr=[half], **look)
