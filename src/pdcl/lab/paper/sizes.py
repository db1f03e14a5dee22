"""What the paper compares, at every size of memory: Figures 3 and 6 as differences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pdcl.lab.paper.cells import row_of, section, shown
from pdcl.lab.paper.judging import STREAMS, beats
from pdcl.lab.paper.runs import NOT_RUN, SIZE, Finding, Runs
from pdcl.records import Row

# What Section 5 names: weights, partition, selection; then ours against the other baselines.
PAIRS = (
    ("pdcl0", "er"), ("pdcl", "pdcl0"), ("pdcl-s", "pdcl"),
    *(("pdcl", label) for label in ("er", "er-ring", "gss", "xder", "agem")),
)  # fmt: skip
METRICS = {"mean_accuracy": "accuracy", "mean_forgetting": "less forgetting"}
TEXT = """## By size of memory

The same differences at every size that was run: points, paired 95 % interval, seeds. A **bold** one has an interval
that leaves 0 out."""


def by_size(rows: Sequence[Row]) -> str:
    """The section of the page; empty where only one size was run."""
    runs = Runs(rows)
    sizes = sorted({memory for stream, memory in runs.settings() if stream in STREAMS})
    if sizes in ([], [SIZE]):
        return ""
    lines = []
    for name, metric in METRICS.items():
        for first, second in PAIRS:
            for stream in STREAMS:
                found = [beats(first, second, stream, memory, name, runs) for memory in sizes]
                if any(each.verdict != NOT_RUN for each in found):
                    lines.append(row_of(f"{first} over {second}", metric, stream, *map(cell, found)))
    return section(TEXT, f"methods | in | stream | {' | '.join(map(str, sizes))}", "lll" + "r" * len(sizes), lines)


def cell(found: Finding) -> str:
    """A difference with its interval and seeds, bold where the interval leaves 0 out."""
    if found.verdict == NOT_RUN:
        return ""
    if math.isnan(found.low):
        return f"{shown(found.number, '+.1f')} (1)"
    text = f"{shown(found.number, '+.1f')} ({shown(found.low, '+.1f')} to {shown(found.high, '+.1f')}, {found.n})"
    return f"**{text}**" if found.low > 0 or found.high < 0 else text
