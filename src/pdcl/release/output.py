"""A verdict for each of its readers: a terminal, a program, a merge request, a CI server."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pdcl.printable import for_json, for_markdown, printable
from pdcl.release.covering import Coverage
from pdcl.release.criteria import CRITERIA, PAIRED
from pdcl.release.deciding import FAIL, PASS, UNDECIDED, Judged
from pdcl.release.outcome import Verdict
from pdcl.screen import Screen

STYLES = {PASS: "bold green", FAIL: "bold red", UNDECIDED: "bold yellow"}
HEADINGS = ("group", "samples", "measured", "limit", "estimate", "bounds", "verdict")


def cells(row: Judged) -> tuple[str, ...]:
    """A row as text. Bounds hold for all rows at once."""
    counted = str(row.samples) if row.units == row.samples else f"{row.samples} of {row.units}"
    bounds = f"{number(row, row.lower)} … {number(row, row.upper)}"
    verdict = row.verdict + (" *" if row.verdict == PASS and not row.alone else "")
    measured = CRITERIA[row.criterion]
    return (printable(row.group), counted, measured, number(row, row.limit), number(row, row.estimate), bounds, verdict)


def number(row: Judged, value: float | None) -> str:
    if value is None:
        return "–"
    if row.criterion in PAIRED:
        return f"{100 * value:+.2f} pt"
    return f"{value:.4f}" if row.criterion == "loss" else f"{100 * value:.2f} %"


def remarks(verdict: Verdict) -> list[str]:
    """What stands under the table."""
    lines = [f"{verdict.verdict}: {verdict.confidence_text}."]
    if any(row.verdict == PASS and not row.alone for row in verdict.rows):
        lines.append("* passes as one of all groups, which pass together; not on its own (Holm).")
    if any(row.units != row.samples for row in verdict.rows):
        lines.append("samples n of g: n samples of g independent groups, each of which counts once.")
    if clips := dict.fromkeys(f"{row.clip:.4g}" for row in verdict.rows if row.clip is not None):
        text = "no number of samples bounds larger ones, so that PASS needs that no loss reaches it"
        lines.append(f"Losses count up to {', '.join(clips)} in bounds: {text}.")
    if any(row.beyond for row in verdict.rows):
        told = (f"{row.group} {row.beyond:,} of {row.samples:,}" for row in verdict.rows if row.beyond)
        lines.append(f"Losses that reach it: {', '.join(told)}.")
    methods = ", ".join(dict.fromkeys(row.method for row in verdict.rows))
    lines.append(f"Bounds: {methods}; one-sided each, for all rows at once (Bonferroni).")
    return [*lines, *map(printable, verdict.notes), verdict.caveat]


def table(verdict: Verdict) -> Table:
    made = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in HEADINGS:
        made.add_column(name, justify="left" if name in ("group", "measured", "verdict") else "right")
    for row in verdict.rows:
        *most, last = cells(row)
        made.add_row(*(Text(cell) for cell in most), Text(last, STYLES[row.verdict]))
    return made


def show(verdict: Verdict, console: Console | None = None) -> None:
    """The verdict on a terminal."""
    console = console or Screen()
    console.print(table(verdict))
    console.print()
    head, *rest = remarks(verdict)
    console.print(Text(head, STYLES[verdict.verdict]))
    for line in rest:
        console.print(Text(line))
    for group, levers in advised(verdict):
        console.print(Text(f"\n{printable(group)}:", "bold"))
        for lever in levers:
            console.print(Text(f"  {printable(lever)}"))


def advised(verdict: Verdict) -> list[tuple[str, list[str]]]:
    """Advice by group, each said once: a task may be judged twice with the same numbers."""
    found: dict[tuple[str, ...], list[str]] = {}
    for group, levers in verdict.levers.items():
        found.setdefault((group.partition(",")[0], *levers), []).append(group)
    return [
        (" and ".join([names[0], *(n.rpartition(", ")[2] for n in names[1:])]), list(key[1:]))
        for key, names in found.items()
    ]


def as_text(verdict: Verdict) -> str:
    buffer = StringIO()
    show(verdict, Screen(file=buffer, width=110, color_system=None))
    return buffer.getvalue()


def as_json(verdict: Verdict) -> str:
    return for_json(json.dumps(verdict.as_json(), indent=1, ensure_ascii=False)) + "\n"


def as_markdown(verdict: Verdict) -> str:
    lines = [f"## Gate: {verdict.verdict}", "", f"| {' | '.join(HEADINGS)} |", "|" + "---|" * len(HEADINGS)]
    for row in verdict.rows:
        _, *rest = cells(row)
        lines.append(f"| {' | '.join([for_markdown(row.group), *rest])} |")
    lines += ["", *(f"- {for_markdown(line)}" for line in remarks(verdict))]
    for group, levers in advised(verdict):
        lines += ["", f"**{for_markdown(group)}**", "", *(f"- {for_markdown(lever)}" for lever in levers)]
    return "\n".join(lines) + "\n"


def as_junit(verdict: Verdict) -> str:
    """One test case per row, and per task or class without samples: FAIL is a failure, UNDECIDED an error, so that
    neither is green."""
    uncovered = Coverage.from_json(verdict.question).reasons
    counts = {kind: sum(row.verdict == kind for row in verdict.rows) for kind in (FAIL, UNDECIDED)}
    about = {
        "name": "pdcl gate",
        "tests": str(len(verdict.rows) + len(uncovered)),
        "failures": str(counts[FAIL]),
        "errors": str(counts[UNDECIDED] + len(uncovered)),
    }
    suite = ElementTree.Element("testsuite", about)
    for row in verdict.rows:
        case = ElementTree.SubElement(suite, "testcase", classname=f"gate.{row.criterion}", name=printable(row.group))
        if row.verdict != PASS:
            kind = "failure" if row.verdict == FAIL else "error"
            entry = ElementTree.SubElement(case, kind, message=" · ".join(cells(row)[1:]), type=row.verdict)
            entry.text = "\n".join(map(printable, verdict.levers.get(title(row), [])))
    for reason in map(printable, uncovered):
        case = ElementTree.SubElement(suite, "testcase", classname="gate.coverage", name=reason)
        ElementTree.SubElement(case, "error", message=reason, type=UNDECIDED)
    ElementTree.SubElement(suite, "system-out").text = "\n".join(remarks(verdict))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def title(row: Judged) -> str:
    """What the levers of a row stand under."""
    return f"{row.verdict} {row.group}, {CRITERIA[row.criterion]}"


FORMATS: dict[str, Callable[[Verdict], str]] = {
    "table": as_text,
    "json": as_json,
    "md": as_markdown,
    "junit": as_junit,
}
