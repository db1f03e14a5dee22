"""The table that a report opens with, as plain values: groups over seeds, and differences to every method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pdcl.lab.comparing import Comparison, Group, compare, group
from pdcl.lab.reports.finding import finding, headline, settings
from pdcl.lab.reports.thinning import rounded
from pdcl.metrics import Paired
from pdcl.records import Row
from pdcl.records.writing import finite

METRICS = ("mean_accuracy", "mean_forgetting", "task_il", "seconds", "cpu_seconds", "peak_memory_mb")
# Against every method as a baseline: beyond this many only those most worth comparing with.
MOST_BASELINES = 12


def summary(rows: Sequence[Row], ids: dict[str, str]) -> dict[str, Any]:
    """Groups, comparisons and the findings; `ids` are those of runs, by path."""
    groups = sorted(group(rows), key=lambda member: (member.first.stream, member.first.preset, not member.first.memory))
    findings = [finding(setting) for setting in settings(groups)]
    place = {id(member): number for number, member in enumerate(groups)}
    content = {
        "groups": [_group(member, ids) for member in groups],
        "baselines": baselines(groups),
        "differences": [
            _difference(entry, place) for baseline in baselines(groups) for entry in compare(groups, baseline)
        ],
        "headline": headline(findings) if findings else "No run here is finished yet.",
        "findings": [{"kind": each.kind, "text": each.text, "place": each.place} for each in findings],
    }
    found: dict[str, Any] = finite(content)
    return found


def baselines(groups: Sequence[Group]) -> list[str]:
    """Methods to compare with, plain replay first: it is what a better method has to beat."""
    labels = list(dict.fromkeys(member.first.label for member in groups))
    usual = [name for name in ("er-ring", "er", "finetune") if name in labels]
    return [*usual, *(name for name in labels if name not in usual)][:MOST_BASELINES] if len(labels) > 1 else []


def _group(member: Group, ids: dict[str, str]) -> dict[str, Any]:
    row = member.first
    content: dict[str, Any] = {
        "stream": row.stream,
        "preset": row.preset,
        "method": row.method,
        "label": member.label,
        "memory": row.memory,
        "seeds": member.seeds,
        "runs": [ids[str(each.path)] for each in member.rows],
    }
    for metric in METRICS:
        mean, half = member.estimate(metric)
        content[metric] = [rounded(mean), rounded(half)]
    return content


def _difference(entry: Comparison, place: dict[int, int]) -> dict[str, Any]:
    return {
        "group": place[id(entry.group)],
        "baseline": entry.baseline.first.label,
        "against": entry.baseline.label,
        "accuracy": _paired(entry.accuracy),
        "forgetting": _paired(entry.forgetting),
    }


def _paired(value: Paired) -> dict[str, Any]:
    return {
        "mean": rounded(value.mean),
        "low": rounded(value.low),
        "high": rounded(value.high),
        "n": value.n,
        "clear": value.clear,
    }
