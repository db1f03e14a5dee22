"""Tables of a study file, read with errors that name the place and the way out."""

from __future__ import annotations

import difflib
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pdcl.errors import UsageError
from pdcl.given import seed_of, short

_REQUIRED = object()
MOST_RUNS = 100_000


class Table:
    """A TOML table whose keys are taken one by one; a key that is left at the end is an error."""

    def __init__(self, content: Any, where: str) -> None:
        if not isinstance(content, Mapping):
            raise UsageError(f"{where} must be a table, not {content!r}")
        self._content, self._left, self._where = content, dict(content), where
        self._known: list[str] = []

    def take(self, key: str, kind: type, default: Any = _REQUIRED) -> Any:
        """The value of `key`, of this kind, or the default."""
        self._known.append(key)
        if key not in self._left:
            if default is _REQUIRED:
                raise UsageError(f"{self._where} lacks {key!r}")
            return default
        value = self._left.pop(key)
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind):
            raise UsageError(f"{self._where} {key} = {value!r} must be a {_SPOKEN.get(kind, kind.__name__)}")
        return value

    def given(self, key: str) -> Any:
        """The value of `key`, taken or not; None where there is none."""
        return self._content.get(key)

    def rest(self) -> dict[str, Any]:
        """Keys that were not taken yet."""
        return dict(self._left)

    def nothing_left(self) -> None:
        only(self._left, self._known, self._where)


_SPOKEN = {str: "text", list: "list", dict: "table", int: "whole number", float: "number", bool: "true or false"}


def only(content: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse a key that isn't in `known`, and suggest the nearest."""
    choices = list(known)
    for key in content:
        if key not in choices:
            near = difflib.get_close_matches(key, choices, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{where} has {key!r}, which means nothing here.{hint} Known: {', '.join(choices)}")


def names(given: Any, where: str) -> tuple[str, ...]:
    """A list of different names."""
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise UsageError(f"{where} = {given!r} must be a list of names")
    if twice := sorted(name for name, count in Counter(given).items() if count > 1):
        raise UsageError(f"{where} names {', '.join(twice)} twice")
    return tuple(given)


def numbers(given: Any, where: str) -> tuple[int, ...]:
    """Seeds: a list of them, or how many to count from 0."""
    if isinstance(given, int) and given > MOST_RUNS:
        raise UsageError(f"{where} = {short(given)} is too many; a study has at most {MOST_RUNS:,} runs")
    found = list(range(given)) if isinstance(given, int) and not isinstance(given, bool) else given
    if not isinstance(found, list) or not found or not all(type(number) is int for number in found):
        raise UsageError(f"{where} = {given!r} must be a positive whole number or a list of whole numbers")
    return tuple(dict.fromkeys(seed_of(number, where) for number in found))


def axes(table: Any, where: str) -> dict[str, list[Any]]:
    """Options with a list of values each."""
    if not isinstance(table, Mapping):
        raise UsageError(f"{where} must be a table of option = [values], not {table!r}")
    for name, values in table.items():
        if not isinstance(values, list) or not values:
            raise UsageError(f"{where} {name} = {values!r} must be a list with at least one value")
    return {name: list(values) for name, values in table.items()}


def product(lists: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of one value per axis; the last axis turns fastest.

    >>> product({"lr": [0.1, 0.2], "alpha": [1]})
    [{'lr': 0.1, 'alpha': 1}, {'lr': 0.2, 'alpha': 1}]
    """
    check_count(math.prod(map(len, lists.values())), " × ".join(lists))
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def check_count(runs: int, what: str) -> None:
    """Raise UsageError for more runs than anyone can wait for, before they are listed."""
    if runs > MOST_RUNS:
        raise UsageError(
            f"{what} makes {short(runs)} runs, and a study has at most {MOST_RUNS:,}; give fewer values or seeds"
        )


def tables(content: Mapping[str, Any], section: str) -> dict[str, Mapping[str, Any]]:
    """A section of tables by name: `[section.NAME]`."""
    found = content.get(section, {})
    if not isinstance(found, Mapping):
        raise UsageError(f"[{section}] must be tables by name, [{section}.NAME], not {short(found)}")
    for name, table in found.items():
        if not isinstance(table, Mapping):
            raise UsageError(f"[{section}] {name} = {table!r} must be a table: [{section}.{name}]")
    return dict(found)
