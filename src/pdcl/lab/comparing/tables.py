"""Groups and comparisons as tables and text: for a terminal, a page, a paper, a spreadsheet, a program."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, get_args

from pdcl.errors import UsageError
from pdcl.lab.comparing.aggregate import Comparison, Group
from pdcl.metrics import Paired
from pdcl.printable import for_markdown, printable
from pdcl.records.writing import dumps

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

GROUP_HEAD = ("method", "memory", "accuracy %", "forgetting %", "task-IL %", "seeds", "s/run")
DIFFERENCE_HEAD = ("method", "memory", "accuracy %", "95 % interval", "forgetting %", "seeds")
MINUS = "−"
Text = Literal["md", "latex", "csv", "json"]
METRICS = ("mean_accuracy", "mean_forgetting", "task_il", "seconds", "cpu_seconds", "peak_memory_mb")


@dataclass(frozen=True)
class Sheet:
    """A titled table of finished text; what every format for readers is drawn from."""

    title: str
    head: tuple[str, ...]
    lines: list[tuple[str, ...]]

    @classmethod
    def of(cls, title: str, head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> Sheet:
        """With what runs are called, by whomever, as text that only shows."""
        return cls(printable(title), head, [tuple(map(printable, line)) for line in lines])


def sheets(groups: Sequence[Group], comparisons: Sequence[Comparison] = ()) -> list[Sheet]:
    """One sheet per stream and preset, then one for each of their baselines."""
    result = []
    for setting, members in groupby(groups, _setting):
        result.append(Sheet.of(setting, GROUP_HEAD, map(_group_line, members)))
    for (baseline, setting), found in groupby(comparisons, lambda c: (c.baseline.first.label, _setting(c.group))):
        pairs = list(found)
        ran = {pair.baseline.first.ran for pair in pairs}
        title = f"{setting}: difference to {ran.pop() if len(ran) == 1 else baseline} on the same seeds"
        result.append(Sheet.of(title, DIFFERENCE_HEAD, map(_difference_line, pairs)))
    return result


def _setting(member: Group) -> str:
    return f"{member.first.stream}, preset {member.first.preset}"


def _group_line(member: Group) -> tuple[str, ...]:
    row = member.first
    return (
        member.label,
        _memory(row.memory),
        _estimate(*member.estimate("mean_accuracy")),
        _estimate(*member.estimate("mean_forgetting")),
        _percent(member.estimate("task_il")[0]),
        str(len(member.rows)),
        _number(member.estimate("seconds")[0], ".1f"),
    )


def _difference_line(entry: Comparison) -> tuple[str, ...]:
    won = entry.accuracy
    told_apart = f" vs {entry.baseline.label}" if entry.baseline.changed else ""
    return (
        entry.group.label + told_apart,
        _memory(entry.group.first.memory),
        _percent(won.mean, "+.2f"),
        "unknown" if math.isnan(won.low) else f"{_percent(won.low, '+.2f')} to {_percent(won.high, '+.2f')}",
        _percent(entry.forgetting.mean, "+.2f"),
        str(won.n),
    )


def _memory(memory: int | str | None) -> str:
    return str(memory) if memory else "–"


def _estimate(mean: float, half: float) -> str:
    return _percent(mean) if math.isnan(half) else f"{_percent(mean)} ± {_percent(half)}"


def _percent(value: float, form: str = ".2f") -> str:
    return _number(100 * value, form)


def _number(value: float, form: str) -> str:
    return "unknown" if math.isnan(value) else format(value, form).replace("-", MINUS)


def show(groups: Sequence[Group], comparisons: Sequence[Comparison] = (), console: Console | None = None) -> None:
    """Print every sheet as a table: on a terminal as wide as it is, in a pipe so wide that no number is cut."""
    from pdcl.screen import Screen

    console = console or Screen()
    width = None if console.is_terminal else 160
    for sheet in sheets(groups, comparisons):
        console.print(_table(sheet), width=width)
        console.print()


def _table(sheet: Sheet) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=sheet.title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for position, name in enumerate(sheet.head):
        table.add_column(name, justify="right" if position else "left", no_wrap=position > 0, overflow="fold")
    for line in sheet.lines:
        table.add_row(*line)
    return table


def markdown(sheet: Sheet) -> str:
    rule = ["---", *["---:"] * (len(sheet.head) - 1)]
    cells = [rule if line is rule else list(map(for_markdown, line)) for line in [sheet.head, rule, *sheet.lines]]
    return f"**{for_markdown(sheet.title)}**\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in cells)


def latex(sheet: Sheet) -> str:
    lines = [" & ".join(map(_escaped, line)) + r" \\" for line in [sheet.head, *sheet.lines]]
    return "\n".join(
        [
            f"% {sheet.title}; needs \\usepackage{{booktabs}}",
            rf"\begin{{tabular}}{{l{'r' * (len(sheet.head) - 1)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _escaped(cell: str) -> str:
    text = re.sub(r"([&%$#_{}])", r"\\\1", cell.replace("\\", "/"))
    text = text.replace("~", r"\textasciitilde{}").replace("^", r"\textasciicircum{}")
    return text.replace("±", r"$\pm$").replace(MINUS, "$-$")


def render(groups: Sequence[Group], comparisons: Sequence[Comparison] = (), form: str = "md") -> str:
    """The text of every format but `table`. CSV holds the comparisons if there are any, else the groups."""
    if form not in get_args(Text):
        raise UsageError(f"format {form!r} is unknown; choose one of {', '.join(get_args(Text))}")
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
        "ran": row.ran,
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
    if isinstance(value, str):
        return printable(value)
    return "" if isinstance(value, float) and math.isnan(value) else value
