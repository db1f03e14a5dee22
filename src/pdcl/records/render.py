"""Groups and comparisons as text: for a page, a paper, a spreadsheet, a program."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal, get_args

from pdcl.errors import UsageError
from pdcl.metrics import Paired
from pdcl.records.groups import Comparison, Group
from pdcl.records.sheets import latex, markdown, sheets
from pdcl.records.writing import dumps

Text = Literal["md", "latex", "csv", "json"]

METRICS = ("mean_accuracy", "mean_forgetting", "task_il", "seconds", "cpu_seconds", "peak_memory_mb")


def render(groups: Sequence[Group], comparisons: Sequence[Comparison] = (), form: str = "md") -> str:
    """The text of every format but `table`. CSV holds the comparisons if there are any, else the groups."""
    if form not in get_args(Text):
        raise UsageError(f"format {form!r} is none of {', '.join(get_args(Text))}")
    if form == "json":
        content = {"groups": [flat(g) for g in groups], "comparisons": [flat_comparison(c) for c in comparisons]}
        return dumps({"schema": 1, **content}, indent=1) + "\n"
    if form == "csv":
        return _csv([flat_comparison(c) for c in comparisons] if comparisons else [flat(g) for g in groups])
    draw = markdown if form == "md" else latex
    return "\n".join(draw(sheet) for sheet in sheets(groups, comparisons))


def flat(member: Group) -> dict[str, Any]:
    """A group as plain values: means, and half the widths of their 95 % intervals."""
    content: dict[str, Any] = {**_identity(member), "seeds": member.seeds}
    for metric in METRICS:
        content[metric], content[f"{metric}_interval"] = member.estimate(metric)
    return content


def flat_comparison(entry: Comparison) -> dict[str, Any]:
    """A comparison as plain values, with p-values that know of no other comparison."""
    content = {**_identity(entry.group), "against": entry.baseline.first.label}
    content["against_options"] = entry.baseline.changed
    return {**content, **_paired("accuracy", entry.accuracy), **_paired("forgetting", entry.forgetting)}


def _identity(member: Group) -> dict[str, Any]:
    row = member.first
    return {
        "stream": row.stream,
        "preset": row.preset,
        "method": row.method,
        "label": row.label,
        "memory": row.memory,
        "options": member.changed,
    }


def _paired(name: str, paired: Paired) -> dict[str, Any]:
    return {f"{name}_{key}": value for key, value in asdict(paired).items()}


def _csv(entries: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(entries[0] if entries else ())
    for entry in entries:
        writer.writerow(_cell(value) for value in entry.values())
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list):
        return dumps(value) if value else ""
    return "" if isinstance(value, float) and math.isnan(value) else value
