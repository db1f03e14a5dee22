"""Limits of all tasks: by task name, by segment of a column, for the rest ("*") and for the new task ("new").

Written as a mapping, or as the same in one line for the command line and TOML:

    {"legacy": "+2pt", "plan=gold": "+1pt", "*": "+3pt", "new": "10%"}
    "legacy:+2pt, plan=gold:+1pt, *:+3pt, new:10%"

A single tolerance is a limit for the rest: "5%" for each task, "5%,10%" by position. Each limit has its own unit.
A name that holds a sign with a meaning here (: , = " or a space at its ends), or that is called * or new, is written in
double quotes as JSON has them; in a mapping, names with : and , need none.

>>> limits = as_limits('legacy:+2pt, "a,b":5%, *:0.05')
>>> limits.of("legacy", 0), limits.of("a,b", 1).unit, limits.of("2026-10", 2)
(Rise(points=2.0), 'error', Fixed(value=0.05, unit='loss'))
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pdcl.limits.limit import Limit
from pdcl.limits.tolerance import Fixed, PerTask, Rise, Tolerance, Written, as_tolerance, describe

REST, NEW = "*", "new"
Segment = tuple[str, str]
Key = str | tuple[str] | Segment
QUOTED = r'"(?:[^"\\]|\\.)*"'
FORM = 'write NAME:LIMIT, such as "legacy:+2pt, plan=gold:+1pt, *:+3pt, new:10%"; names with : , or = in double quotes'


@dataclass(frozen=True)
class Limits:
    """tasks: by task name. segments: by (column, value). rest: all other tasks. new: what a new task must reach."""

    tasks: Mapping[str, Tolerance] = field(default_factory=dict)
    segments: Mapping[Segment, Tolerance] = field(default_factory=dict)
    rest: Tolerance | None = None
    new: Tolerance | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", dict(self.tasks))
        object.__setattr__(self, "segments", dict(self.segments))
        if not self.tasks and not self.segments and self.rest is None and self.new is None:
            raise ValueError("no limit is stated: give at least one, or leave the tolerance out")
        for name, limit in _named(self):
            if isinstance(limit, PerTask):
                raise ValueError(f"the limit of {name} is a list, {describe(limit)}: one name has one limit")
        if self.new is not None and not isinstance(self.new, Fixed):
            raise ValueError(
                f"the limit of the new task is {describe(self.new)}, but a new task was never measured before: "
                "write what it must reach, an error rate (10%) or a loss (0.3)"
            )

    def of(self, name: str, index: int) -> Tolerance | None:
        """The limit of a task: by its name, or else of the rest, by position where that is a list. None: unlimited."""
        found = self.tasks.get(name, self.rest)
        return Fixed(found.of(index), found.unit) if isinstance(found, PerTask) else found


def as_limits(value: Written | Mapping[Any, Written] | Limits) -> Limits:
    """Limits from what a user writes: one tolerance for all tasks, a mapping by name, or its text."""
    if isinstance(value, Limits):
        return value
    if isinstance(value, Mapping):
        return _collected((_read_key(key), as_tolerance(each)) for key, each in value.items())
    if isinstance(value, str) and ":" in value:
        return _collected((_read_key(key), as_tolerance(each)) for key, each in _pairs(value))
    return Limits(rest=as_tolerance(value))


def describe_limits(limits: Limits) -> str:
    """The text that `as_limits` reads back as the same limits.

    >>> describe_limits(as_limits({"new": 0.3, "*": "5%", ("plan", "gold"): "+1pt", "a:b": "1.1x"}))
    '"a:b":1.1x, plan=gold:+1pt, *:5%, new:0.3'
    """
    named = _named(limits)
    if limits.rest is not None and not named and limits.new is None:
        return describe(limits.rest)
    named += [(key, limit) for key, limit in ((REST, limits.rest), (NEW, limits.new)) if limit is not None]
    return ", ".join(f"{key}:{describe(limit)}" for key, limit in named)


def judged(tolerance: Tolerance, task: int = 0) -> Limit:
    """The limit of one task as `pdcl.judging` judges it."""
    if isinstance(tolerance, Rise):
        return Limit(describe(tolerance), "error", rise=tolerance.floor)
    if isinstance(tolerance, Fixed | PerTask):
        own = Fixed(tolerance.of(task), tolerance.unit)
        return Limit(describe(own), own.unit, value=own.value)
    return Limit(describe(tolerance), tolerance.unit, value=tolerance.floor, factor=tolerance.factor)


def _named(limits: Limits) -> list[tuple[str, Tolerance]]:
    tasks = [(_key(name), limit) for name, limit in limits.tasks.items()]
    return tasks + [(_key(*segment), limit) for segment, limit in limits.segments.items()]


def _collected(pairs: Iterable[tuple[Key, Tolerance]]) -> Limits:
    found: dict[Key, Tolerance] = {}
    for key, limit in pairs:
        if key in found:
            raise ValueError(f"{key if isinstance(key, str) else _key(*key)} has two limits: give one")
        found[key] = limit
    tasks = {key[0]: limit for key, limit in found.items() if not isinstance(key, str) and len(key) == 1}
    segments = {key: limit for key, limit in found.items() if not isinstance(key, str) and len(key) == 2}
    return Limits(tasks, segments, found.get(REST), found.get(NEW))


def _pairs(text: str) -> list[tuple[str, str]]:
    """Names and limits of a line. What follows a comma without a name of its own belongs to the list before it."""
    commas = [found.start() for found in re.finditer(rf"{QUOTED}|,", text) if found[0] == ","]
    items = [text[start:end] for start, end in zip([0, *(c + 1 for c in commas)], [*commas, len(text)], strict=True)]
    pairs: list[tuple[str, str]] = []
    for item in items:
        if named := re.fullmatch(rf"\s*((?:{QUOTED}|[^\":])*):(.*)", item, re.DOTALL):
            pairs.append((named[1].strip(), named[2]))
        elif pairs and ":" not in item:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]},{item}")
        else:
            raise ValueError(f"can't read a limit from {item.strip()!r}: {FORM}")
    return pairs


def _read_key(key: object) -> Key:
    """ "*", "new", (task,) or (column, value)."""
    if isinstance(key, tuple) and len(key) == 2 and all(isinstance(part, str) for part in key):
        return key
    if not isinstance(key, str):
        raise TypeError(f"limits are given by task name or (column, value), not by {key!r}: {FORM}")
    if key in (REST, NEW):
        return key
    parts = re.fullmatch(rf"({QUOTED}|[^\"=][^=]*)(?:=({QUOTED}|[^\"].*))?", key, re.DOTALL)
    if not parts:
        raise ValueError(f"can't read the name of a task or segment from {key!r}: {FORM}")
    return (_bare(parts[1]),) if parts[2] is None else (_bare(parts[1]), _bare(parts[2]))


def _bare(name: str) -> str:
    if not name.startswith('"'):
        return name
    try:
        return str(json.loads(name))
    except ValueError as error:
        raise ValueError(f"can't read the quoted name {name}: {error}") from None


def _key(*parts: str) -> str:
    """A task name, or a column and its value, in quotes where they need them."""
    return "=".join(_quoted(part) for part in parts)


def _quoted(name: str) -> str:
    plain = name and name == name.strip() and not re.search(r'[:,="]', name) and name not in (REST, NEW)
    return name if plain else json.dumps(name, ensure_ascii=False)
