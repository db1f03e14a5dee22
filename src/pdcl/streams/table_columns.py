"""How one column of a table becomes numbers: what its values are is found in the first task and never changes.

Each kind is a dataclass of plain parameters, so that a model holds it as JSON.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pdcl.printable import counted
from pdcl.streams.checks import BadData
from pdcl.streams.table_rows import Raw, Rows

# What people write into a column of numbers where they have none.
NONE = {"na", "n/a", "nan", "null", "none", "?", "-"}
MOST = 200
# Numbers and dates as people write them and as they aren't read: 1,234.50 or 12 %, 31.12.2026 or 12/31/26.
LIKE_NUMBER = re.compile(r"[+-]?[\d.,' ]*\d\s?[%€$£]?")
LIKE_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}")
YEAR, WEEK, DAY = 365.25, 7.0, 86400.0
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Number:
    """(x − mean) / std; a missing x is the median. Where the first task has missing ones, a second input says so."""

    median: float
    mean: float
    std: float
    marked: bool
    kind: ClassVar[str] = "number"

    @classmethod
    def fit(cls, values: Numbers) -> Number:
        missing = np.isnan(values)
        median = float(np.nanmedian(values))
        filled = np.where(missing, median, values)
        return cls(median, float(filled.mean()), float(filled.std()) or 1.0, bool(missing.any()))

    def encode(self, rows: Rows, name: str) -> tuple[Numbers, list[str]]:
        values = numbers(rows, name)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.median, values) - self.mean) / self.std
        return np.stack([scaled, missing.astype(float)] if self.marked else [scaled], 1), []

    @property
    def width(self) -> int:
        return 1 + self.marked


@dataclass(frozen=True)
class Category:
    """One input for each value of the first task, a missing one ("") included; of any other value all are 0."""

    values: tuple[str, ...]
    kind: ClassVar[str] = "category"

    @classmethod
    def fit(cls, values: Raw) -> Category:
        return cls(tuple(sorted({_text(value) for value in values})))

    def encode(self, rows: Rows, name: str) -> tuple[Numbers, list[str]]:
        known = {value: place for place, value in enumerate(self.values)}
        codes = np.asarray([known.get(_text(value), len(known)) for value in rows.columns[name]])
        strange = Counter(
            _text(value) for value, code in zip(rows.columns[name], codes, strict=True) if code == len(known)
        )
        return np.eye(len(known) + 1, len(known))[codes], list(_strangers(name, strange))

    @property
    def width(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Moment:
    """Day of the year and of the week, and the time of day, each as a point on a circle; a missing one is (0, 0).

    Years are left out: they only grow, so that a later task would lie outside of all that was learned.
    """

    timed: bool
    kind: ClassVar[str] = "date"

    def encode(self, rows: Rows, name: str) -> tuple[Numbers, list[str]]:
        found = [_moment(value) for value in rows.columns[name]]
        for row, (value, each) in enumerate(zip(rows.columns[name], found, strict=True)):
            if each is None and value is not None and not _is_none(value):
                raise BadData(
                    f"{rows.at(row)}: column {name!r} holds {value!r}, and the first task has dates there; "
                    "write 2026-12-31, or leave it empty"
                )
        turns = np.asarray([[math.nan] * 3 if each is None else _turns(each) for each in found])[:, : self.width // 2]
        circles = np.concatenate([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)], 1)
        return np.nan_to_num(circles), []

    @property
    def width(self) -> int:
        return 6 if self.timed else 4


Kind = Number | Category | Moment
KINDS: dict[str, Any] = {kind.kind: kind for kind in (Number, Category, Moment)}


def as_json(kind: Kind) -> dict[str, Any]:
    return {"kind": kind.kind, **asdict(kind)}


def from_json(saved: dict[str, Any]) -> Kind:
    kind: Any = KINDS[saved["kind"]]
    found = {
        name: tuple(value) if isinstance(value, list) else value for name, value in saved.items() if name != "kind"
    }
    made: Kind = kind(**found)
    return made


def fitted(rows: Rows, name: str, category: bool) -> Kind:
    """What the values of a column are. category: they are names, even where they look like numbers."""
    values = rows.columns[name]
    present = [value for value in values if value is not None and not _is_none(value)]
    if not present:
        raise BadData(f"{rows.place}: column {name!r} is empty in the first task; leave it out: drop=[{name!r}]")
    if not category and (kind := _measured(rows, name, present)) is not None:
        return kind
    found = Category.fit(values)
    if found.width > MOST:
        raise BadData(
            f"{rows.place}: column {name!r} has {found.width:,} different texts in the first task, such as "
            f"{present[0]!r}, and a category has at most {MOST}; leave it out: drop=[{name!r}]"
        )
    return found


def _measured(rows: Rows, name: str, present: list[Any]) -> Kind | None:
    """A number or a date if all values are, None if most are names. BadData for what is nearly one or the other."""
    number = [_number(value) is not None for value in present]
    if all(number):
        return Number.fit(numbers(rows, name))
    moment = [_moment(value) is not None for value in present]
    if all(moment):
        return Moment(any(_turns(_moment(value))[2] for value in present))
    for read, like, written in ((moment, LIKE_DATE, "dates (2026-12-31)"), (number, LIKE_NUMBER, "numbers (1234.5)")):
        wrong = [value for value, right in zip(present, read, strict=True) if not right]
        if 2 * len(wrong) < len(present) or all(like.fullmatch(str(value).strip()) for value in wrong):
            row = next(row for row, value in enumerate(rows.columns[name]) if value is wrong[0])
            raise BadData(
                f"{rows.at(row)}: column {name!r} holds {wrong[0]!r}, and looks like a column of {written}; write it "
                f"so, leave it empty, or say that the column holds names: categories=[{name!r}]"
            )
    return None


def numbers(rows: Rows, name: str) -> Numbers:
    """A column as numbers, NaN where one is missing; BadData for the first value that is none."""
    found = [math.nan if value is None else _number(value) for value in rows.columns[name]]
    for row, value in enumerate(found):
        if value is None or math.isinf(value):
            held = rows.columns[name][row]
            raise BadData(
                f"{rows.at(row)}: column {name!r} holds {held!r}, which is no number; mend it or leave it empty"
            )
    return np.asarray(found, dtype=np.float64)


def _number(value: Any) -> float | None:
    """The number, NaN for a mark such as NA, None for anything else."""
    if _is_none(value):
        return math.nan
    if isinstance(value, bool | date | datetime):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def is_fraction(value: Any) -> bool:
    """Whether this is a number with something behind its point."""
    number = _number(value)
    return number is not None and math.isfinite(number) and not number.is_integer()


def _is_none(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in NONE


def _moment(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    try:
        return datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        return None


def _turns(moment: datetime | None) -> list[float]:
    """How far the year, the week and the day have gone, in turns."""
    assert moment is not None
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return [moment.timetuple().tm_yday / YEAR, moment.weekday() / WEEK, seconds / DAY]


def _text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return "" if value is None else str(int(value) if whole else value).strip()


def _strangers(name: str, strange: Counter[str]) -> Iterator[str]:
    if strange:
        shown = ", ".join(f"{value!r} ({counted(n, 'row')})" for value, n in strange.most_common(3))
        more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
        named = shown.replace("''", "no value") + more
        yield f"column {name!r} has values that the first task didn't have: {named}; they count as none of them"
