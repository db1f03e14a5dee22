"""All figures that a set of runs has the data for, and a word on those that it hasn't."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from pdcl.errors import UsageError
from pdcl.lab.comparing import Group
from pdcl.lab.figures import grids, runs, sweeps
from pdcl.lab.figures.drawn import Drawn, rows_of
from pdcl.lab.figures.duals import draw_duals
from pdcl.lab.figures.mapping import draw_map, names_of
from pdcl.lab.figures.selecting import largest, main_runs, of_memory, partitioned_by_dual, primal_dual, sized, titled
from pdcl.lab.reports.runs import find
from pdcl.records import Row
from pdcl.records.reading import read_result


@dataclass(frozen=True)
class Wanted:
    """What single figures show where there is a choice. memory: runs of this size, where there are some (None: of the
    largest); sample_duals: a map only of a run with a dual for every sample."""

    memory: int | None = None
    sample_duals: bool = False


def draw(directories: Sequence[Path], out: Path, formats: Sequence[str] | None = None) -> Drawn:
    """Every plot of the paper, once per stream and preset, of the runs in these directories."""
    _require_matplotlib()
    found = find(directories)
    if not found.rows:
        raise UsageError(f"no finished run in {', '.join(map(str, directories))}; make one with `pdcl run digits pdcl`")
    drawn = draw_rows(list(found.rows.values()), out, formats)
    drawn.skipped |= {str(error.path): str(error) for error in found.unreadable}
    return drawn


def draw_rows(
    rows: Sequence[Row], out: Path, formats: Sequence[str] | None = None, wanted: Wanted | None = None
) -> Drawn:
    """The same of these runs alone."""
    _require_matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    drawn = Drawn(out, formats)
    drawn.put("zeta", "", runs.zeta, "")
    for (stream, preset), members in groupby(sorted(rows, key=_setting), _setting):
        _setting_figures(drawn, suffix(stream, preset), list(members), wanted or Wanted())
    _grids(drawn, list(rows))
    return drawn


def suffix(stream: str, preset: str) -> str:
    """How the figures of a stream and preset end."""
    return stream if preset == "auto" else f"{stream}-{preset}"


def _require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError("figures need matplotlib: pip install 'pdcl[report]'") from error


def _setting(row: Row) -> tuple[str, str]:
    return row.stream, row.preset


def _setting_figures(drawn: Drawn, suffix: str, rows: list[Row], wanted: Wanted) -> None:
    groups = main_runs(rows)
    for metric in sweeps.METRICS:
        draw_it = partial(sweeps.versus_memory, groups, metric) if largest(groups) else None
        drawn.put(f"{metric}-memory", suffix, draw_it, "no run keeps a memory counted in samples", rows_of(groups))
    own = [row for row in rows if primal_dual(row)]
    for option, symbol in (("tolerance", "tolerance ε"), ("alpha", "α")):
        reason = f"no two groups of runs differ in {option} alone; vary it with `pdcl run … --{option}`"
        shown = [row for line in sweeps.lines(own, option) for row in rows_of(line.values())]
        drawn.put(option, suffix, partial(sweeps.ablation, own, option, symbol), reason, shown)
    _divided(drawn, suffix, of_memory(groups, wanted.memory))
    draw_map(drawn, suffix, groups, wanted.memory, wanted.sample_duals)
    draw_duals(drawn, suffix, rows, groups, wanted.memory)


def _grids(drawn: Drawn, rows: list[Row]) -> None:
    """What the paper shows of all streams side by side, once per preset."""
    for preset, members in groupby(sorted(rows, key=lambda row: row.preset), lambda row: row.preset):
        groups = main_runs(list(members))
        suffix = "" if preset == "auto" else preset
        held = [member for member in groups if sized(member)]
        draw_it = partial(grids.sweep_grid, groups) if grids.swept(groups) else None
        drawn.put("sweeps", suffix, draw_it, "no stream was run with two sizes of memory", rows_of(held))
        shown = rows_of(member for member in held if member.label in grids.WITHOUT_SELECTION)
        draw_it = partial(grids.partition_grid, groups)
        drawn.put("partitioning", suffix, draw_it, "pdcl0 and pdcl haven't both been run", shown)


def _divided(drawn: Drawn, suffix: str, groups: list[Group]) -> None:
    """How memory is divided: distance from equal shares by method, and the evolution of one that follows its duals."""
    held: dict[str, list[list[list[int]]]] = {}
    for member in groups:
        found = [read_result(row.path)["partitions"] for row in member.rows]
        if known := [counts for counts in found if counts and all(counts)]:
            held[member.label] = known
    dividing = [member for member in groups if member.label in held]
    draw_it = partial(runs.distance, held, dividing[0].first.stream) if held else None
    drawn.put("distance", suffix, draw_it, "no run keeps a memory", rows_of(dividing))
    chosen = partitioned_by_dual(dividing)
    draw_it = None
    if chosen is not None:
        names = names_of(chosen)[0] or [str(k + 1) for k in range(1000)]
        draw_it = partial(runs.partition, held[chosen.label][0], names, titled(chosen))
    reason = "no primal-dual method with a partition by dual was run"
    drawn.put("partition", suffix, draw_it, reason, [chosen.first] if chosen else [])
