"""What several seeds say together, and what one method wins over another on the same seeds."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pdcl.errors import UsageError
from pdcl.metrics import Paired, interval, paired_difference
from pdcl.records.naming import unlimited
from pdcl.records.table import Row


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed alone. `changed` are the options that tell them from others of their method."""

    rows: tuple[Row, ...]
    changed: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def first(self) -> Row:
        return self.rows[0]

    @property
    def label(self) -> str:
        """The method or variant, with its telling options, and what ran: `pdcl alpha=0.3`, `pdcl, no limits = even`."""
        told = " ".join([self.first.label, *(f"{name}={_shown(value)}" for name, value in self.changed.items())])
        return told + unlimited(self.first.options)

    @property
    def seeds(self) -> list[int]:
        return [row.seed for row in self.rows]

    def by_seed(self, metric: str) -> dict[int, float]:
        """One of Row's numbers for every seed."""
        return {row.seed: getattr(row, metric) for row in self.rows}

    def estimate(self, metric: str) -> tuple[float, float]:
        """Mean of one of Row's numbers, and half the width of its 95 % interval over seeds."""
        return interval(list(self.by_seed(metric).values()))


def group(rows: Iterable[Row]) -> list[Group]:
    """Rows gathered over seeds: by stream and preset, then memory, then the best first.

    A copy of a run is no further seed: of several rows with one seed the first counts.
    """
    families: dict[tuple[str, str, str, str], dict[str, dict[int, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        kinds = families[row.stream, row.preset, row.label, str(row.memory)]
        kinds[repr(sorted(row.in_effect.items()))].setdefault(row.seed, row)
    groups = [member for kinds in families.values() for member in _siblings(list(kinds.values()))]
    return sorted(groups, key=_place)


def _siblings(kinds: list[dict[int, Row]]) -> list[Group]:
    """Groups of one method that differ in options; each is told apart by those that vary among them."""
    gathered = [tuple(by_seed[seed] for seed in sorted(by_seed)) for by_seed in kinds]
    names = sorted({name for rows in gathered for name in rows[0].options})
    telling = [name for name in names if len({_text(rows[0].options.get(name)) for rows in gathered}) > 1]
    return [Group(rows, {name: rows[0].options.get(name) for name in telling}) for rows in gathered]


def _place(member: Group) -> tuple[str, str, bool, int | float, str, float]:
    """Where a group stands in a table; a memory counted in bytes comes after those counted in samples."""
    row = member.first
    number = row.memory if isinstance(row.memory, int) else 0
    accuracy = member.estimate("mean_accuracy")[0]
    rank = math.inf if math.isnan(accuracy) else -accuracy
    return row.stream, row.preset, isinstance(row.memory, str), number, str(row.memory), rank


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True)
class Comparison:
    """How a group did against a baseline, over the seeds that both have: group minus baseline."""

    group: Group
    baseline: Group
    accuracy: Paired
    forgetting: Paired


def compare(groups: Sequence[Group], baseline: str) -> list[Comparison]:
    """Every other method against `baseline`, within the same stream, preset and memory (one without any meets all)."""
    known = sorted({member.first.label for member in groups})
    if baseline not in known:
        close = get_close_matches(baseline, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
        raise UsageError(f"no finished run of {baseline!r} here; {hint}")
    return [
        Comparison(member, other, *(_difference(member, other, name) for name in ("mean_accuracy", "mean_forgetting")))
        for member in groups
        for other in groups
        if member.first.label != baseline == other.first.label and _comparable(member.first, other.first)
    ]


def _comparable(one: Row, other: Row) -> bool:
    memory = one.memory == other.memory or not one.memory or not other.memory
    return memory and (one.stream, one.preset) == (other.stream, other.preset)


def _difference(member: Group, baseline: Group, metric: str) -> Paired:
    return paired_difference(member.by_seed(metric), baseline.by_seed(metric))
