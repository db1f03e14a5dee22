"""All figures that a set of runs has the data for, and a word on those that it hasn't."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from pdcl.errors import RecordError, UsageError
from pdcl.records import Group, Row
from pdcl.records.reading import read_result
from pdcl.records.table import MALFORMED
from pdcl.reports.dossier import read_story
from pdcl.reports.figures import grids, runs, sweeps
from pdcl.reports.figures.selecting import largest, main_runs, partitioned_by_dual, primal_dual, titled
from pdcl.reports.figures.style import save
from pdcl.reports.holdings import Holdings, read_holdings
from pdcl.reports.maps import Map, map_of, read_map
from pdcl.reports.writing import find


@dataclass
class Drawn:
    """What was written, by figure, and what was not, with the reason. mapped: runs that maps show, and their maps;
    priced: runs whose duals are drawn over time."""

    paths: list[Path] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    mapped: dict[Path, Map] = field(default_factory=dict)
    priced: set[Path] = field(default_factory=set)
    formats: Sequence[str] | None = None


def draw(directories: Sequence[Path], out: Path, formats: Sequence[str] | None = None) -> Drawn:
    """Every plot of the paper, once per stream and preset, of the runs in these directories."""
    _require_matplotlib()
    found = find(directories)
    if not found.rows:
        raise UsageError(f"no finished run in {', '.join(map(str, directories))}; make one with `pdcl run digits pdcl`")
    drawn = draw_rows(list(found.rows.values()), out, formats)
    drawn.skipped |= {str(error.path): str(error) for error in found.unreadable}
    return drawn


def draw_rows(rows: Sequence[Row], out: Path, formats: Sequence[str] | None = None) -> Drawn:
    """The same of these runs alone."""
    _require_matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    drawn = Drawn(formats=formats)
    _put(drawn, out, "zeta", runs.zeta, "")
    settings = groupby(sorted(rows, key=_setting), _setting)
    for (stream, preset), members in settings:
        suffix = stream if preset in ("default", "auto") else f"{stream}-{preset}"
        _setting_figures(drawn, out, suffix, list(members))
    _grids(drawn, out, list(rows))
    return drawn


def _require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError("figures need matplotlib: pip install 'pdcl[report]'") from error


def _setting(row: Row) -> tuple[str, str]:
    return row.stream, row.preset


def _setting_figures(drawn: Drawn, out: Path, suffix: str, rows: list[Row]) -> None:
    groups = main_runs(rows)
    for metric in sweeps.METRICS:
        draw_it = partial(sweeps.versus_memory, groups, metric) if largest(groups) else None
        _put(drawn, out, f"{metric}-memory-{suffix}", draw_it, "no run keeps a memory counted in samples")
    for option, symbol in (("tolerance", "tolerance ε"), ("alpha", "α")):
        reason = f"no two groups of runs differ in {option} alone; vary it with `pdcl run … --{option}`"
        own = [row for row in rows if primal_dual(row)]
        _put(drawn, out, f"{option}-{suffix}", partial(sweeps.ablation, own, option, symbol), reason)
    _divided(drawn, out, suffix, largest(groups))
    _mapped(drawn, out, suffix, groups)
    _priced(drawn, out, suffix, rows, groups)


def _grids(drawn: Drawn, out: Path, rows: list[Row]) -> None:
    """What the paper shows of all streams side by side, once per preset."""
    for preset, members in groupby(sorted(rows, key=lambda row: row.preset), lambda row: row.preset):
        groups = main_runs(list(members))
        suffix = "" if preset in ("default", "auto") else f"-{preset}"
        _put(drawn, out, f"sweeps{suffix}", partial(grids.sweep_grid, groups), "no memory is counted in samples")
        reason = "pdcl0 and pdcl haven't both been run"
        _put(drawn, out, f"partitioning{suffix}", partial(grids.partition_grid, groups), reason)


def _divided(drawn: Drawn, out: Path, suffix: str, groups: list[Group]) -> None:
    """How memory is divided: distance from equal shares by method, and the evolution of one that follows its duals."""
    held = {member.label: _partitions(member) for member in groups}
    held = {label: each for label, each in held.items() if each}
    reason = "no run keeps a memory"
    _put(drawn, out, f"distance-{suffix}", (lambda: runs.distance(held)) if held else None, reason)
    chosen = partitioned_by_dual(member for member in groups if member.label in held)
    reason = "no primal-dual method with a partition by dual was run"
    if chosen is None:
        drawn.skipped[f"partition-{suffix}"] = reason
        return
    draw_it = partial(runs.partition, held[chosen.label][0], _names(chosen), titled(chosen))
    _put(drawn, out, f"partition-{suffix}", draw_it, reason)


def _mapped(drawn: Drawn, out: Path, suffix: str, groups: list[Group]) -> None:
    """The map of a run whose samples have duals of their own; else of any that left a snapshot, or kept its map."""
    found = _to_map(groups)

    def draw_it() -> Any | None:
        if found is None:
            return None
        member, source = found
        shown = source if isinstance(source, Map) else map_of(source)
        if shown is None:
            return None
        drawn.mapped[member.first.path] = shown
        return runs.samples_map(shown, _names(member), titled(member))

    _put(drawn, out, f"map-{suffix}", draw_it, "no run left a memory.safetensors with features")


def _priced(drawn: Drawn, out: Path, suffix: str, rows: list[Row], groups: list[Group]) -> None:
    """λ for several tolerances where there are some, else λ of one run."""
    lines = [line for line in sweeps.varied(rows, "tolerance") if len(line) > 1]
    if lines:
        line = max(lines, key=len)
        shown = {value: line[value] for value in runs.tight_right_loose(line)}
        stories = {value: read_story(member.first.path, points=300) for value, member in shown.items()}
        drawn.priced |= {member.first.path for member in shown.values()}
        _put(drawn, out, f"duals-tolerance-{suffix}", lambda: runs.duals(line, stories), "no run has duals")
        return
    drawn.skipped[f"duals-tolerance-{suffix}"] = "no two groups of runs differ in tolerance alone"
    for member in groups:
        story = read_story(member.first.path, points=300)
        if story.duals.rows:
            drawn.priced.add(member.first.path)
            draw_it = partial(runs.single_duals, story, titled(member))
            _put(drawn, out, f"duals-{suffix}", draw_it, "no run has duals")
            return


def _put(drawn: Drawn, out: Path, name: str, draw_it: Callable[[], Any | None] | None, reason: str) -> None:
    try:
        made = draw_it() if draw_it is not None else None
    except MALFORMED as error:
        # Files that were changed since: one bad run must not keep the other figures from being drawn.
        made, reason = None, f"its runs hold values that can't be drawn ({type(error).__name__}: {str(error)[:100]})"
    if made is None:
        drawn.skipped[name] = reason
    else:
        drawn.paths += save(made, out, name, drawn.formats)


def _partitions(member: Group) -> list[list[list[int]]]:
    found = [read_result(row.path)["partitions"] for row in member.rows]
    return [counts for counts in found if counts and all(counts)]


def _to_map(groups: list[Group]) -> tuple[Group, Map | Holdings] | None:
    """Of those with a map or features: a dual per sample first, then any duals, then the largest memory."""
    found: list[tuple[bool, bool, int, Group, Map | Holdings]] = []
    for member in groups:
        run = member.first.path
        own = member.first.options.get("level") == "sample"
        try:
            if (kept := read_map(run)) is not None:
                found.append((own, max(kept.points["dual"], default=0) > 0, kept.points["of"], member, kept))
            elif (held := read_holdings(run)) is not None and held.features is not None:
                found.append((own, held.dual.max(initial=0) > 0, len(held.x), member, held))
        except RecordError:
            continue
    best = max(found, key=lambda each: each[:3], default=None)
    return None if best is None else best[3:]


def _names(member: Group) -> list[str]:
    chapters = read_story(member.first.path, points=4).chapters
    return [", ".join(each.classes) or each.name for each in chapters] or [str(k + 1) for k in range(1000)]
