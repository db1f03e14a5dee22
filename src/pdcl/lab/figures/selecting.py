"""Which runs a figure is about: a method's own runs, not those of an ablation of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pdcl.lab.comparing import Group, group
from pdcl.methods.catalog import methods
from pdcl.records import Row
from pdcl.records.reading import read_config

GIVEN = ("user", "study")


def main_runs(rows: Sequence[Row]) -> list[Group]:
    """Groups without ablations: of a method's runs on one stream and preset, those with the fewest options given.

    A sweep over ε gives one option more than the runs at the preset's own ε.
    """
    families: dict[tuple[str, str, str], list[Group]] = defaultdict(list)
    for member in group(rows):
        families[member.first.stream, member.first.preset, member.first.label].append(member)
    kept: list[Row] = []
    for members in families.values():
        given = {id(member): len(options_given(member.first)) for member in members}
        fewest = min(given.values())
        kept += [row for member in members if given[id(member)] == fewest for row in member.rows]
    return group(kept)


def options_given(row: Row) -> frozenset[str]:
    """Options of a run that come from a user or a study instead of its preset; wrong labels are one of them."""
    config = read_config(row.path)
    own = {name for name, option in config["options"].items() if option["source"] in GIVEN}
    noise = {name for name in config["stream_options"] if name == "noise"}
    return frozenset((own | noise) - {"memory", "seed"})


def largest(groups: Iterable[Group]) -> list[Group]:
    """The groups with the largest memory, the best first."""
    held = [member for member in groups if sized(member)]
    most = max((member.first.memory for member in held), default=None, key=lambda size: int(size or 0))
    return [member for member in held if member.first.memory == most]


def of_memory(groups: Iterable[Group], memory: int | None) -> list[Group]:
    """The groups with this memory where there are some; otherwise, and where None is asked for, the largest."""
    held = [member for member in groups if sized(member)]
    return [member for member in held if member.first.memory == memory] or largest(held)


def sized(member: Group) -> bool:
    """Whether its memory is counted in samples."""
    return isinstance(member.first.memory, int) and member.first.memory > 0


def partitioned_by_dual(groups: Iterable[Group]) -> Group | None:
    """A primal-dual method that divides memory by its duals, task level before sample level."""
    found = [member for member in groups if primal_dual(member.first) and follows_duals(member.first)]
    return min(found, key=lambda member: (level(member.first) == "sample", member.label), default=None)


def primal_dual(row: Row) -> bool:
    entry = methods().get(row.method)
    return entry is not None and entry.family == "primal-dual"


def follows_duals(row: Row) -> bool:
    """Whether memory is divided by duals."""
    return bool(row.options.get("partition", "affine") != "uniform" and row.options.get("alpha", 0.5) != 0)


def level(row: Row) -> str:
    """What has a dual: a task or a sample."""
    return str(row.options.get("level", "task"))


def titled(member: Group, row: Row | None = None) -> str:
    """`pdcl, memory 500, seed 0`"""
    shown = row or member.first
    return f"{member.label}, memory {shown.memory}, seed {shown.seed}"
