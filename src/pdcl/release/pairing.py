"""Two logs as pairs of items, divided into groups: what stands in both, what doesn't, and what counts once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pdcl.errors import UsageError
from pdcl.limits.limits import Limits, describe_limits
from pdcl.limits.tolerance import Rise, Tolerance
from pdcl.logs.log import Item, Key, Log, digest
from pdcl.printable import counted
from pdcl.release.changes import change_of
from pdcl.release.deciding import Row
from pdcl.release.estimates import estimate_of, once

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
SHOWN = 3
OTHER_PROMPT = "with another prompt under the same id"
APART = "name a field that tells items apart, such as --columns prompt=doc_hash"


@dataclass(frozen=True)
class Compared:
    """Paired items in the order of their hashes, so that how logs lie can't move a p-value. Errors are 1 − score.

    lone: items that can't be compared, by reason. made: a row per group with a limit, and which items it is about.
    free: groups without a limit.
    """

    keys: list[Key]
    old: Floats
    new: Floats
    before: Log
    after: Log
    stated: Limits
    by: str
    groups: str | None
    lone: dict[str, list[Key]]
    made: list[tuple[Row, Mask]] = field(default_factory=list)
    free: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, before: Log, after: Log, stated: Limits, by: str, groups: str | None) -> Compared:
        both = before.items.keys() & after.items.keys()
        differ = {key for key in both if _differ(before.items[key].prompt, after.items[key].prompt)}
        lacking = (before.incomplete() | after.incomplete()) & both - differ
        lone = {
            "only in before": before.items.keys() - both,
            "only in after": after.items.keys() - both,
            OTHER_PROMPT: differ,
            "with fewer answers than others of their task": lacking,
        }
        left = {reason: sorted(keys) for reason, keys in lone.items() if keys}
        keys = sorted(both - differ - lacking, key=lambda key: digest(list(key)))
        if not keys:
            way_out = f"; if they are the same items, {APART}" if differ else ""
            raise UsageError(f"no item can be compared: {told(left)}{way_out}")
        check_measures(before, after, keys)
        old, new = (np.array([1 - log.items[key].score for key in keys]) for log in (before, after))
        made = cls(keys, old, new, before, after, stated, by, groups, left)
        made._divide()
        return made

    def _divide(self) -> None:
        """Fill `made` and `free`."""
        clusters = None if self.groups is None else self.single(self.groups)
        members = self.members(self.by)
        if strange := [name for name in self.stated.tasks if name not in members]:
            there = ", ".join(members)
            raise UsageError(f"a limit is given for {strange[0]!r}, which is no {self.by} here: {there}")
        for name, mask in members.items():
            limit = self.stated.of(name, 0)
            if limit is None:
                self.free.append(name)
            else:
                self.made.append(self._row(name, limit, mask, clusters))
        for (column, value), limit in self.stated.segments.items():
            if value not in (found := self.members(column)):
                raise UsageError(f"a limit is given for {column}={value}, and no item is of it: {', '.join(found)}")
            self.made.append(self._row(f"{column}={value}", limit, found[value], clusters))
        if not self.made:
            raise UsageError(f"no limit is on any {self.by} here: {', '.join(members)}")

    def _row(self, name: str, limit: Tolerance, mask: Mask, clusters: npt.NDArray[Any] | None) -> tuple[Row, Mask]:
        # The same question again is no further evidence.
        mask = once(mask, self.asked)
        new, old = self.new[mask], self.old[mask]
        who = None if clusters is None else clusters[mask]
        rates = float(old.mean()), float(new.mean())
        rise = isinstance(limit, Rise)
        estimate = change_of(new, old, who) if rise else estimate_of(new, who)
        return Row("drop" if rise else "error", name, value_of(limit), estimate, int(mask.sum()), *rates), mask

    @property
    def items(self) -> list[Item]:
        """As the log before has them."""
        return [self.before.items[key] for key in self.keys]

    def values(self, column: str) -> list[tuple[str, ...]]:
        """What each item has in a column of the log before: one value, or several."""
        if column in ("all", "task"):
            return [("all",) if column == "all" else (key[0],) for key in self.keys]
        found = [item.columns.get(column) for item in self.items]
        if None in found:
            there = sorted({each for item in self.items for each in item.columns})
            raise UsageError(f"not every item has a column {column!r}; columns: {', '.join(['task', *there])}")
        return [each for each in found if each is not None]

    def members(self, column: str) -> dict[str, Mask]:
        """Which items belong to each value of a column."""
        rows: dict[str, list[int]] = {}
        for number, each in enumerate(self.values(column)):
            for value in each:
                rows.setdefault(value, []).append(number)
        found = {}
        for value in sorted(rows):
            found[value] = np.zeros(len(self.keys), dtype=bool)
            found[value][rows[value]] = True
        return found

    def single(self, column: str) -> npt.NDArray[Any]:
        """The one value of each item."""
        found = self.values(column)
        if any(len(each) != 1 for each in found):
            raise UsageError(f"column {column!r} has several values of one item, or none; groups need one")
        return np.array([each[0] for each in found])

    @cached_property
    def asked(self) -> npt.NDArray[np.int64]:
        """48 bits of a hash of what tells an item apart: its prompt, or where there is none its task and id."""
        return np.array([_mark(key, self.prompt(key)) for key in self.keys], dtype=np.int64)

    @property
    def marks(self) -> npt.NDArray[np.int64]:
        """The items as ledgers hold them."""
        return np.unique(self.asked)

    def prompt(self, key: Key) -> str | None:
        return self.before.items[key].prompt or self.after.items[key].prompt

    def question(self, drop: bool) -> dict[str, Any]:
        return {
            "before": self.before.hash,
            "after": self.after.hash,
            "audit": digest([list(key) for key in sorted(self.keys)]),
            "samples": len(self.keys),
            "limits": describe_limits(self.stated),
            "by": self.by,
            "groups": self.groups,
            "unpaired": {reason: len(keys) for reason, keys in self.lone.items()},
            "drop": drop,
        }

    def notes(self, drop: bool) -> list[str]:
        """What a reader must know of the items."""
        lines = [f"{counted(len(self.keys), 'item')} paired by task and id; an item counts once, whatever its answers."]
        if (most := max(len(item.epochs) for item in self.items)) > 1:
            lines.append(f"Up to {most} answers an item: their mean counts.")
        if copies := len(self.keys) - len(self.marks):
            lines.append(
                f"{counted(copies, 'item')} repeat the prompt of another; each prompt counts once in its group. "
                f"If these are different items, {APART}."
            )
        if blind := sum(_blind(log.items[key] for log in (self.before, self.after)) for key in self.keys):
            lines.append(
                f"{counted(blind, 'item')} without a prompt in both logs: that the id means the same is trusted."
            )
        if named := ", ".join(sorted({each for item in self.items for each in item.measures} - {""})):
            lines.append(f"Scored by {named}.")
        what = "independent items" if self.groups is None else f"that groups ({self.groups}) are independent"
        lines.append(f"Assumes {what}.")
        if self.lone:
            lines.append(f"{'Left out' if drop else 'UNDECIDED at best'}: {told(self.lone)}.")
        used = {self.by, *(column for column, _ in self.stated.segments)} - {"all", "task"}
        for column in sorted(used):
            if moved := sum(
                _differ(self.before.items[k].columns[column], self.after.items[k].columns.get(column))
                for k in self.keys
            ):
                lines.append(f"{counted(moved, 'item')} with another {column} in after: that of before counts.")
        if nowhere := sum(not each for each in self.values(self.by)):
            lines.append(f"Not judged, as they are of no {self.by}: {counted(nowhere, 'item')}.")
        if self.free:
            lines.append(f"Not judged, as no limit is stated: {', '.join(self.free)}.")
        return lines + _of_files(self.before, self.after)


def value_of(limit: Tolerance) -> float:
    """A limit on logs as a number: a rise of the error rate, or the rate."""
    return limit.floor if isinstance(limit, Rise) else limit.of(0)


def check_measures(one: Log, other: Log, keys: list[Key], names: tuple[str, str] = ("before", "after")) -> None:
    """Raise where two logs scored an item by different measures: their difference says nothing."""
    for key in keys:
        here, there = one.items[key].measures, other.items[key].measures
        if here != there or len(here) > 1:
            raise UsageError(
                f"item {'/'.join(key)} is scored by {', '.join(sorted(here))} in {names[0]} and by "
                f"{', '.join(sorted(there))} in {names[1]}; choose one that both have: --metric NAME"
            )


def told(lone: Mapping[str, list[Key]]) -> str:
    parts = []
    for reason, keys in lone.items():
        first = ", ".join("/".join(key) for key in keys[:SHOWN]) + (" …" if len(keys) > SHOWN else "")
        parts.append(f"{counted(len(keys), 'item')} {reason} ({first})")
    return "; ".join(parts)


def _of_files(before: Log, after: Log) -> list[str]:
    lines = []
    for side, log in (("before", before), ("after", after)):
        if log.unread:
            lines.append(f"Not read in {side}, as they are logs of another format: {', '.join(log.unread)}.")
    if before.files and sorted(before.files.values()) == sorted(after.files.values()):
        lines.append("Both logs are the same to the byte: is one a copy of the other?")
    return lines


def _blind(items: Any) -> bool:
    return any(item.prompt is None for item in items)


def _mark(key: Key, prompt: str | None) -> int:
    text = repr(key if prompt is None else prompt)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:6], "little")


def _differ(one: object, other: object) -> bool:
    """Of what isn't known nothing is said."""
    return one is not None and other is not None and one != other
