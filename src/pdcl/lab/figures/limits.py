"""How far an axis reaches: every run of the methods that are near each other, and a note on those far behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MARGIN = 0.06
# Room for a note, so that no marker lies under it.
NOTE = 0.14
# Points by which a limit gives way to an interval.
NEARLY = 1.0
# What every claim is about is drawn, however far behind.
ALWAYS = ("er", "pdcl")


def limit(axes: Any, lines: Mapping[str, Sequence[float]], metric: str) -> None:
    """Limits that show each run, in percent, and no more: an interval that reaches further is cut off.

    Methods that are far worse than the rest would press all others together; their values stand as a note instead.
    """
    if not lines:
        return
    far = far_behind(lines, worse=min if metric == "accuracy" else max)
    values = [value for label, runs in lines.items() if label not in far for value in runs]
    room = MARGIN * (max(values) - min(values)) or 1.0
    below = metric == "accuracy"
    noted = room * NOTE / MARGIN if far else 0.0
    axes.set_ylim(min(values) - room - noted * below, max(values) + room + noted * (not below))
    if far:
        ends = {label: (min(lines[label]), max(lines[label])) for label in far}
        notes = [f"{label} {'–'.join(dict.fromkeys(f'{end:.0f}' for end in both))}" for label, both in ends.items()]
        text = ("below: " if below else "above: ") + ", ".join(notes)
        y, va = (0.02, "bottom") if below else (0.98, "top")
        axes.text(0.98, y, text, transform=axes.transAxes, fontsize=6, ha="right", va=va)


def mark_cut_off(axes: Any) -> None:
    """An open arrowhead at the edge of the panel for each interval that goes on beyond it by more than a point."""
    from matplotlib.markers import CARETDOWN, CARETUP

    low, high = axes.get_ylim()
    # Of a mean that is itself outside the note says where it is.
    bars = [bar for bar in _bars(axes) if low <= bar[1] <= high]
    axes.set_ylim(
        min([low, *(end - NEARLY / 5 for *_, end, _ in bars if low - NEARLY <= end < low)]),
        max([high, *(end + NEARLY / 5 for *_, end in bars if high < end <= high + NEARLY)]),
    )
    low, high = axes.get_ylim()
    for x, _, colour, least, most in bars:
        for edge, marker, beyond in ((low, CARETDOWN, least < low), (high, CARETUP, most > high)):
            if beyond:
                # No method has such a marker.
                axes.plot([x], [edge], marker=marker, color=colour, mfc="none", mew=0.9, ms=5, clip_on=False, zorder=4)


def _bars(axes: Any) -> Iterator[tuple[float, float, Any, float, float]]:
    """x, mean, colour, and both ends of every interval."""
    for box in axes.containers:
        line, _, bars = box.lines
        for (x, mean), segment in zip(line.get_xydata(), bars[0].get_segments() if bars else (), strict=False):
            ends = [value for _, value in segment]
            yield x, mean, line.get_color(), min(ends), max(ends)


def far_behind(lines: Mapping[str, Sequence[float]], worse: Any = min) -> list[str]:
    """Methods below a gap that is wider than all the better ones together, as long as these are the majority.

    er and pdcl are never among them: a figure without these answers no question.
    """
    sign = 1 if worse is min else -1
    spans = {label: (min(sign * v for v in runs), max(sign * v for v in runs)) for label, runs in lines.items()}
    order = sorted(spans, key=lambda label: -spans[label][1])
    for kept in range(len(order) // 2 + 1, len(order)):
        near, far = order[:kept], order[kept:]
        if {*far} & {*ALWAYS}:
            continue
        low, high = min(spans[label][0] for label in near), max(spans[label][1] for label in near)
        if low - max(spans[label][1] for label in far) > high - low:
            return far
    return []
