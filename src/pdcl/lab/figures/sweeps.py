"""What methods reach as one thing varies: memory, the tolerance ε, the share α."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pdcl.lab.comparing import Group, group
from pdcl.lab.figures.limits import limit, mark_cut_off
from pdcl.lab.figures.selecting import sized
from pdcl.lab.figures.style import figure, look, places
from pdcl.records import Row

METRICS = {"accuracy": "mean_accuracy", "forgetting": "mean_forgetting"}
# Student's interval for two runs is 13 standard errors long: it says nothing and hides all else.
FEWEST = 3


def versus_memory(groups: Sequence[Group], metric: str) -> Any:
    """Mean over seeds against memory with 95 % intervals; a method without memory is a level line."""
    with figure() as (made, axes):
        memory_panel(axes, groups, metric, places(member.label for member in groups))
        axes.set(xlabel="memory (samples)", ylabel=f"mean {metric} (%)", title=groups[0].first.stream)
        made.legend(*axes.get_legend_handles_labels(), loc="outside right center")
        return made


def memory_panel(axes: Any, groups: Sequence[Group], metric: str, looks: Mapping[str, int]) -> None:
    """The lines of one panel; a method looks the same in every panel that is given the same looks."""
    sizes = sorted({int(member.first.memory or 0) for member in groups if sized(member)})
    # One size of memory: methods beside each other, or all of them would lie on one line.
    alone = len(sizes) == 1
    for x, (label, place) in enumerate(looks.items()):
        found = [member for member in groups if member.label == label]
        places = [(float(x if alone else g.first.memory or 0), g) for g in found if alone or sized(g)]
        own = sorted(places, key=lambda each: each[0])
        if own:
            _line(axes, [at for at, _ in own], [member for _, member in own], metric, label, place)
        elif found:
            axes.axhline(100 * found[0].estimate(METRICS[metric])[0], label=label, **{**look(place), "marker": None})
    if alone:
        axes.set_xticks([(len(looks) - 1) / 2], [str(sizes[0])])
        axes.set_xlim(-0.8, len(looks) - 0.2)
        axes.grid(axis="x", visible=False)
    else:
        axes.set_xscale("log" if sizes else "linear")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
    limit(axes, _by_label(groups, metric), metric)
    mark_cut_off(axes)


def ablation(rows: Sequence[Row], option: str, symbol: str) -> Any | None:
    """Accuracy and forgetting against one option of one method, or None where no method varies it."""
    found = lines(rows, option)
    if not found:
        return None
    with figure(width=1.9, columns=2) as (made, panels):
        for axes, metric in zip(panels, METRICS, strict=True):
            for place, line in enumerate(found):
                first = next(iter(line.values())).first
                _line(axes, list(line), list(line.values()), metric, f"{first.label}, memory {first.memory}", place)
            axes.set(xlabel=symbol, ylabel=f"mean {metric} (%)")
            _ticks(axes, sorted({value for line in found for value in line}), option == "tolerance")
            limit(axes, _by_label([member for line in found for member in line.values()], metric, whole=True), metric)
            mark_cut_off(axes)
        made.suptitle(rows[0].stream, fontsize=8)
        made.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return made


def lines(rows: Sequence[Row], option: str) -> list[dict[float, Group]]:
    """Every set of groups that an ablation of this option shows."""
    return [of_shared_seeds(line) for line in varied(rows, option) if len(line) > 1]


def of_shared_seeds(line: dict[float, Group]) -> dict[float, Group]:
    """The runs of seeds that every value has: others would make a difference of seeds look like one of the option."""
    shared = set.intersection(*({*member.seeds} for member in line.values()))
    if not shared:
        return line
    kept = {value: tuple(row for row in member.rows if row.seed in shared) for value, member in line.items()}
    return {value: replace(line[value], rows=rows) for value, rows in kept.items()}


def _ticks(axes: Any, values: list[float], logarithmic: bool) -> None:
    """A tick at every value that was run, in plain figures; on a logarithmic axis where ratios count."""
    if logarithmic and values[0] > 0:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(values, [f"{value:g}" for value in values], rotation=45 if len(values) > 5 else 0)


def _by_label(groups: Sequence[Group], metric: str, whole: bool = False) -> dict[str, list[float]]:
    """Each line's runs in percent; `whole`: as one line, none of which may be left off."""
    found: dict[str, list[float]] = defaultdict(list)
    for member in groups:
        values = (100 * value for value in member.by_seed(METRICS[metric]).values())
        found["" if whole else member.label] += [value for value in values if math.isfinite(value)]
    return {label: values for label, values in found.items() if values}


def varied(rows: Sequence[Row], option: str) -> list[dict[float, Group]]:
    """Groups that differ in this option alone, by its value; those that are most alike first."""
    families: dict[tuple[Any, ...], dict[float, Group]] = defaultdict(dict)
    for member in group(rows):
        row = member.first
        value = amount(row.options.get(option))
        if value is not None:
            rest = sorted((name, each) for name, each in row.in_effect.items() if name != option)
            kind = "x" if str(row.options[option]).endswith("x") else ""
            families[row.stream, row.preset, row.label, str(row.memory), kind, repr(rest)][value] = member
    return [dict(sorted(line.items())) for line in families.values()]


def amount(value: Any) -> float | None:
    """An option as a number: 0.05, or 1.1 of `1.1x`."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    found = re.match(r"\d+(?:\.\d+)?(?:e-?\d+)?", value) if isinstance(value, str) else None
    return float(found[0]) if found else None


def _line(axes: Any, x: list[float], groups: list[Group], metric: str, label: str, place: int) -> None:
    """Means with 95 % intervals; where a mean has fewer than three runs, the runs themselves instead of an interval."""
    estimates = [member.estimate(METRICS[metric]) for member in groups]
    enough = [len(member.rows) >= FEWEST for member in groups]
    halves = [100 * half if known else 0.0 for (_, half), known in zip(estimates, enough, strict=True)]
    means = [100 * mean for mean, _ in estimates]
    axes.errorbar(x, means, yerr=halves, capsize=2, elinewidth=0.8, label=label, **look(place))
    for at, member, known in zip(x, groups, enough, strict=True):
        if not known:
            values = [100 * value for value in member.by_seed(METRICS[metric]).values()]
            axes.plot([at] * len(values), values, "_", color=look(place)["color"], markersize=5)
