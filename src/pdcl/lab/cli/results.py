"""`pdcl results`: the numbers of finished runs, over seeds and against each other."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from pdcl.cli.form import plain
from pdcl.errors import UsageError
from pdcl.lab.comparing import Group, compare, group
from pdcl.lab.comparing.tables import render, show
from pdcl.printable import printable
from pdcl.records import Survey, survey
from pdcl.screen import Screen


@dataclass
class Results:
    """Show what finished runs reached: means over seeds with their 95 % intervals, and paired differences."""

    directory: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Directory that holds runs, or one run."""

    format: Literal["table", "md", "latex", "csv", "json"] = "table"
    """How to print them. csv holds the differences if --against is given, else the means."""

    against: Annotated[tuple[str, ...], tyro.conf.arg(metavar="METHOD ...")] = ()
    """Methods to compare all others with, seed by seed."""


def main(argv: Sequence[str] | None = None) -> int:
    options = tyro.cli(
        plain(Results),
        args=argv,
        prog="pdcl results",
        config=(tyro.conf.PositionalRequiredArgs, tyro.conf.AvoidSubcommands),
    )
    found = survey(options.directory)
    if not found.rows:
        raise UsageError(_nothing(options.directory, found))
    groups = group(found.rows)
    comparisons = [entry for baseline in options.against for entry in compare(groups, baseline)]
    if options.format == "table":
        show(groups, comparisons)
    else:
        sys.stdout.write(render(groups, comparisons, options.format))
    # What is piped into a file is the table alone.
    notes = Screen(stderr=options.format != "table", soft_wrap=True)
    for line in [*_left_out(found), f"next: {_next(options, groups)}"]:
        notes.print(printable(line))
    return 0


def _nothing(directory: Path, found: Survey) -> str:
    if found.unfinished:
        return f"no run in {directory} is finished; continue one with `pdcl resume {found.unfinished[0]}`"
    if found.unreadable:
        return f"no run in {directory} can be read: {found.unreadable[0]}"
    return f"there are no runs in {directory}; make one with `pdcl run digits pdcl --out {directory}`"


def _left_out(found: Survey) -> list[str]:
    """What the table doesn't show, and why."""
    lines = [f"Left out: {error}" for error in found.unreadable[:3]]
    if len(found.unreadable) > 3:
        lines.append(f"Left out: {len(found.unreadable) - 3} more that can't be read")
    if bare := sum(not row.verified for row in found.rows):
        lines.append(
            f"Not verified: {bare} of {len(found.rows)} results have no checksum, as older versions wrote them"
        )
    if found.unfinished:
        lines.append(f"Left out: {len(found.unfinished)} unfinished, such as {found.unfinished[0]} (`pdcl resume` it)")
    return lines


def _next(options: Results, groups: list[Group]) -> str:
    """One command worth typing now: compare, take the table elsewhere, or run what is missing."""
    directory, chosen = shlex.quote(str(options.directory)), shlex.join(options.against)
    methods = list(dict.fromkeys(member.first.label for member in groups))
    row, seeds = groups[0].first, len(groups[0].rows)
    own = "" if row.preset == "auto" else f" --preset {shlex.quote(row.preset)}"
    own += f" --memory {shlex.quote(str(row.memory))}" if row.memory else ""
    stream, out = shlex.quote(row.stream), shlex.quote(str(row.path.parent))
    if len(methods) == 1:
        other = "er-ring" if row.method != "er-ring" else "pdcl"
        return f"pdcl run {stream} {other}{own} --seeds {seeds} --out {out}"
    if not options.against:
        return f"pdcl results {directory} --against {shlex.quote(methods[-1])}"
    if options.format == "table":
        return f"pdcl results {directory} --against {chosen} --format latex"
    return f"pdcl run {stream} {shlex.quote(row.method)}{own} --seeds {2 * seeds} --out {out}"
