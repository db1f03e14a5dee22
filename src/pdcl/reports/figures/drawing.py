"""All figures that a set of runs has the data for, and a word on those that it hasn't."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from pdcl.errors import RecordError, UsageError
from pdcl.records import Group, Row, group
from pdcl.records.reading import read_result
from pdcl.reports.dossier import read_story
from pdcl.reports.figures import runs, sweeps
from pdcl.reports.figures.style import save
from pdcl.reports.holdings import read_holdings
from pdcl.reports.writing import find


@dataclass
class Drawn:
    """What was written, by figure, and what was not, with the reason."""

    paths: list[Path] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


def draw(directories: Sequence[Path], out: Path) -> Drawn:
    """Every plot of the paper, once per stream and preset."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError("figures need matplotlib: pip install 'pdcl[figures]'") from error
    found = find(directories)
    rows = list(found.rows.values())
    if not rows:
        raise UsageError(f"no finished run in {', '.join(map(str, directories))}; make one with `pdcl run digits pdcl`")
    out.mkdir(parents=True, exist_ok=True)
    drawn = Drawn()
    drawn.skipped |= {str(error.path): str(error) for error in found.unreadable}
    _put(drawn, out, "zeta", runs.zeta, "")
    settings = groupby(sorted(rows, key=_setting), _setting)
    for (stream, preset), members in settings:
        suffix = stream if preset in ("default", "auto") else f"{stream}-{preset}"
        _setting_figures(drawn, out, suffix, list(members))
    return drawn


def _setting(row: Row) -> tuple[str, str]:
    return row.stream, row.preset


def _setting_figures(drawn: Drawn, out: Path, suffix: str, rows: list[Row]) -> None:
    groups = group(rows)
    for metric in sweeps.METRICS:
        draw_it = partial(sweeps.versus_memory, groups, metric) if _largest(groups) else None
        _put(drawn, out, f"{metric}-memory-{suffix}", draw_it, "no run keeps a memory counted in samples")
    for option, symbol in (("tolerance", "tolerance ε"), ("alpha", "α")):
        reason = f"no two groups of runs differ in {option} alone; vary it with `pdcl run … --{option}`"
        _put(drawn, out, f"{option}-{suffix}", partial(sweeps.ablation, rows, option, symbol), reason)
    _divided(drawn, out, suffix, groups)
    _priced(drawn, out, suffix, rows, groups)


def _divided(drawn: Drawn, out: Path, suffix: str, groups: list[Group]) -> None:
    """Partition and map of the run that shows most: the largest memory's best method with unequal shares."""
    held = {member.label: _partitions(member) for member in _largest(groups)}
    held = {label: each for label, each in held.items() if each}
    best = next((member for member in _largest(groups) if _uneven(held.get(member.label, []))), None)
    best = best or next((member for member in _largest(groups) if member.label in held), None)
    reason = "no run keeps a memory"
    _put(drawn, out, f"distance-{suffix}", (lambda: runs.distance(held)) if held else None, reason)
    if best is None:
        drawn.skipped |= {f"partition-{suffix}": reason, f"map-{suffix}": reason}
        return
    names = _names(best)
    _put(drawn, out, f"partition-{suffix}", lambda: runs.partition(held[best.label][0], names), reason)
    snapshot = _snapshot(_largest(groups))
    draw_map = (lambda: runs.samples_map(snapshot, names)) if snapshot is not None else None
    _put(drawn, out, f"map-{suffix}", draw_map, "no run left a memory.safetensors with features")


def _priced(drawn: Drawn, out: Path, suffix: str, rows: list[Row], groups: list[Group]) -> None:
    """λ for several tolerances where there are some, else λ of one run."""
    lines = [line for line in sweeps.varied(rows, "tolerance") if len(line) > 1]
    if lines:
        line = max(lines, key=len)
        stories = {value: read_story(member.first.path, points=300) for value, member in line.items()}
        _put(drawn, out, f"duals-tolerance-{suffix}", lambda: runs.duals(line, stories), "no run has duals")
        return
    drawn.skipped[f"duals-tolerance-{suffix}"] = "no two groups of runs differ in tolerance alone"
    for member in groups:
        story = read_story(member.first.path, points=300)
        if story.duals.rows:
            _put(drawn, out, f"duals-{suffix}", partial(runs.single_duals, story), "no run has duals")
            return


def _put(drawn: Drawn, out: Path, name: str, draw_it: Callable[[], Any | None] | None, reason: str) -> None:
    made = draw_it() if draw_it is not None else None
    if made is None:
        drawn.skipped[name] = reason
    else:
        drawn.paths += save(made, out, name)


def _largest(groups: Iterable[Group]) -> list[Group]:
    """The groups with the largest memory, the best first."""
    held = [member for member in groups if isinstance(member.first.memory, int) and member.first.memory]
    most = max((member.first.memory for member in held), default=None, key=lambda size: int(size or 0))
    return [member for member in held if member.first.memory == most]


def _partitions(member: Group) -> list[list[list[int]]]:
    found = [read_result(row.path)["partitions"] for row in member.rows]
    return [counts for counts in found if counts and all(counts)]


def _uneven(partitions: list[list[list[int]]]) -> bool:
    return any(max(counts[-1]) - min(counts[-1]) > 1 for counts in partitions)


def _snapshot(groups: list[Group]) -> Any | None:
    """The first snapshot whose samples carry duals; else the first there is."""
    first = None
    for member in groups:
        try:
            held = read_holdings(member.first.path)
        except RecordError:
            continue
        if held is not None and held.features is not None:
            if held.dual.max(initial=0) > 0:
                return held
            first = first or held
    return first


def _names(member: Group) -> list[str]:
    chapters = read_story(member.first.path, points=4).chapters
    return [", ".join(each.classes) or each.name for each in chapters] or [str(k + 1) for k in range(1000)]
