"""Panels side by side as the paper has them: a column for each stream, one look for each method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pdcl.lab.comparing import Group
from pdcl.lab.figures.selecting import sized
from pdcl.lab.figures.style import figure, ordered, places
from pdcl.lab.figures.sweeps import METRICS, memory_panel

STREAMS = ("mnist", "speech", "organa", "tiny_imagenet")
# Inches that an entry of a legend takes.
ENTRY = 0.85
WITHOUT_SELECTION = ("er", "er-ring", "agem", "pdcl0", "pdcl")


def sweep_grid(groups: Sequence[Group], metrics: Sequence[str] = tuple(METRICS)) -> Any | None:
    """Accuracy above forgetting against memory, a column per stream; None where no memory is counted in samples."""
    held = [member for member in groups if sized(member)]
    streams = ordered({member.first.stream for member in held}, STREAMS)
    looks = places(member.label for member in held)
    if not streams:
        return None
    size = {"width": max(1.3, 0.62 * len(streams)), "height": 0.75 * len(metrics) + 0.25}
    with figure(**size, rows=len(metrics), columns=len(streams), squeeze=False) as (made, panels):
        for row, metric in zip(panels, metrics, strict=True):
            for axes, stream in zip(row, streams, strict=True):
                memory_panel(axes, [g for g in held if g.first.stream == stream], metric, looks)
            row[0].set_ylabel(f"mean {metric} (%)")
        for axes, stream in zip(panels[0], streams, strict=True):
            axes.set_title(stream)
        for axes in panels[-1]:
            axes.set_xlabel("memory (samples)")
        _legend(made, panels)
        return made


def swept(groups: Sequence[Group]) -> bool:
    """Whether some stream was run with two sizes of memory."""
    pairs = {(member.first.stream, member.first.memory) for member in groups if sized(member)}
    return len(pairs) > len({stream for stream, _ in pairs})


def partition_grid(groups: Sequence[Group]) -> Any | None:
    """Accuracy of methods that store samples at random: fixed weights, dual weights, partition by dual."""
    chosen = [member for member in groups if member.label in WITHOUT_SELECTION]
    return sweep_grid(chosen, ("accuracy",)) if {"pdcl0", "pdcl"} <= {member.label for member in chosen} else None


def _legend(made: Any, panels: Any) -> None:
    shown: dict[str, Any] = {}
    for axes in panels.flat:
        handles, labels = axes.get_legend_handles_labels()
        shown |= dict(zip(labels, handles, strict=True))
    labels = ordered(shown)
    # As many rows as needed, equally long: no entry stands alone.
    rows = math.ceil(len(labels) * ENTRY / made.get_figwidth())
    columns = math.ceil(len(labels) / rows)
    made.legend([shown[label] for label in labels], labels, loc="outside lower center", ncols=columns)
