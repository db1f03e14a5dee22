"""How far an axis reaches: every run of the methods that are near each other, and a note on those far behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MARGIN = 0.06
# Room for a note, so that no marker lies under it.
NOTE = 0.14


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
        notes = [f"{label} {_span(lines[label])}" for label in far]
        text = ("below: " if below else "above: ") + ", ".join(notes)
        axes.text(
            0.98, 0.02 if below else 0.98, text, transform=axes.transAxes, fontsize=6,
            ha="right", va="bottom" if below else "top",
        )  # fmt: skip


def mark_cut_off(axes: Any) -> None:
    """A small arrow at the edge of the panel for each interval that goes on beyond it."""
    low, high = axes.get_ylim()
    for box in axes.containers:
        line, _, bars = box.lines
        for (x, mean), segment in zip(line.get_xydata(), bars[0].get_segments() if bars else (), strict=False):
            ends = [value for _, value in segment]
            # Of a mean that is itself outside the note says where it is.
            for edge, marker, beyond in ((low, "v", min(ends) < low), (high, "^", max(ends) > high)):
                if beyond and low <= mean <= high:
                    axes.plot([x], [edge], marker, color=line.get_color(), markersize=4.5, clip_on=False, zorder=4)


def _span(values: Sequence[float]) -> str:
    ends = list(dict.fromkeys(f"{value:.0f}" for value in (min(values), max(values))))
    return "–".join(ends)


def far_behind(lines: Mapping[str, Sequence[float]], worse: Any = min) -> list[str]:
    """Methods below a gap that is wider than all the better ones together, as long as these are the majority."""
    sign = 1 if worse is min else -1
    spans = {label: (min(sign * v for v in runs), max(sign * v for v in runs)) for label, runs in lines.items()}
    order = sorted(spans, key=lambda label: -spans[label][1])
    for kept in range(len(order) // 2 + 1, len(order)):
        near, far = order[:kept], order[kept:]
        low, high = min(spans[label][0] for label in near), max(spans[label][1] for label in near)
        if low - max(spans[label][1] for label in far) > high - low:
            return far
    return []
