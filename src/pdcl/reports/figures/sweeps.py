"""What methods reach as one thing varies: memory, the tolerance ε, the share α."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pdcl.records import Group, Row, group
from pdcl.reports.figures.style import figure, look

METRICS = {"accuracy": "mean_accuracy", "forgetting": "mean_forgetting"}


def versus_memory(groups: Sequence[Group], metric: str) -> Any:
    """Mean over seeds against memory with 95 % intervals; a method without memory is a level line."""
    labels = sorted({member.label for member in groups})
    sizes = sorted({int(member.first.memory or 0) for member in groups if _sized(member)})
    with figure() as (made, axes):
        for place, label in enumerate(labels):
            own = sorted((g for g in groups if g.label == label and _sized(g)), key=lambda g: g.first.memory or 0)
            if own:
                _line(axes, [float(g.first.memory or 0) for g in own], own, metric, label, place)
            else:
                level = next(g for g in groups if g.label == label).estimate(METRICS[metric])[0]
                axes.axhline(100 * level, label=label, **{**look(place), "marker": None})
        if len(sizes) > 1:
            axes.set_xscale("log")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.set(xlabel="memory (samples)", ylabel=f"mean {metric} (%)")
        axes.legend(ncols=2 if len(labels) > 4 else 1)
        return made


def ablation(rows: Sequence[Row], option: str, symbol: str) -> Any | None:
    """Accuracy and forgetting against one option of one method, or None where no method varies it."""
    lines = [line for line in varied(rows, option) if len(line) > 1]
    if not lines:
        return None
    with figure(width=1.6, columns=2) as (made, panels):
        for axes, metric in zip(panels, METRICS, strict=True):
            for place, line in enumerate(lines):
                first = next(iter(line.values())).first
                label = f"{first.label}, memory {first.memory}"
                _line(axes, list(line), list(line.values()), metric, label, place)
            axes.set(xlabel=symbol, ylabel=f"mean {metric} (%)")
            if option == "tolerance":
                axes.set_xscale("log")
        panels[0].legend()
        return made


def varied(rows: Sequence[Row], option: str) -> list[dict[float, Group]]:
    """Groups that differ in this option alone, by its value; those that are most alike first."""
    families: dict[tuple[Any, ...], dict[float, Group]] = defaultdict(dict)
    for member in group(rows):
        row = member.first
        value = amount(row.options.get(option))
        if value is not None:
            rest = {name: each for name, each in row.options.items() if name != option}
            kind = "x" if str(row.options[option]).endswith("x") else ""
            families[row.stream, row.preset, row.label, str(row.memory), kind, repr(sorted(rest.items()))][value] = (
                member
            )
    return [dict(sorted(line.items())) for line in families.values()]


def amount(value: Any) -> float | None:
    """An option as a number: 0.05, or 1.1 of `1.1x`."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    found = re.match(r"\d+(?:\.\d+)?(?:e-?\d+)?", value) if isinstance(value, str) else None
    return float(found[0]) if found else None


def _sized(member: Group) -> bool:
    return isinstance(member.first.memory, int) and member.first.memory > 0


def _line(axes: Any, x: list[float], groups: list[Group], metric: str, label: str, place: int) -> None:
    estimates = [member.estimate(METRICS[metric]) for member in groups]
    means = [100 * mean for mean, _ in estimates]
    halves = [0.0 if math.isnan(half) else 100 * half for _, half in estimates]
    axes.errorbar(x, means, yerr=halves, capsize=2, elinewidth=0.8, label=label, **look(place))
