"""The promises of a report as a table: to read, to print, to keep as JSON."""

from __future__ import annotations

import html
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from pdcl.judging.promise import BROKEN, KEPT, LEARNED, NEW, NOT_LEARNED, LimitBroken, Promise
from pdcl.printable import for_markdown, printable

# Spaces after each column but the last.
GAPS = (3, 4, 3, 3)
NONE = "–"
# Below a table with rows that compare with `then`.
RISE = "→: the limit is a rise. Its row compares every witness with its own answer when the task was learned."
# Of "12.3 %".
WIDTH = 6


@dataclass(frozen=True)
class Promises(Sequence[Promise]):
    """Rows in the order in which they were asked. All intervals hold together with probability 1 − level."""

    rows: tuple[Promise, ...]
    level: float = 0.05

    @overload
    def __getitem__(self, index: int) -> Promise: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Promise, ...]: ...
    def __getitem__(self, index: int | slice) -> Promise | tuple[Promise, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Promise]:
        return iter(self.rows)

    @property
    def broken(self) -> tuple[Promise, ...]:
        """Limits that are broken and new tasks that were not learned."""
        return tuple(row for row in self.rows if row.verdict in (BROKEN, NOT_LEARNED))

    @property
    def kept(self) -> tuple[Promise, ...]:
        """Limits that are kept and new tasks that were learned."""
        return tuple(row for row in self.rows if row.verdict in (KEPT, LEARNED))

    @property
    def undecided(self) -> tuple[Promise, ...]:
        """All other rows: too few samples, or none."""
        return tuple(row for row in self.rows if row not in self.broken + self.kept)

    def warn(self, stacklevel: int = 1) -> None:
        """A `LimitBroken` warning for each broken row; stacklevel 1 names the line that calls this, 2 its caller."""
        for row in self.broken:
            warnings.warn(printable(f"{row.task}: {row.sentence}"), LimitBroken, stacklevel=stacklevel + 1)

    def as_json(self) -> dict[str, Any]:
        return {"level": self.level, "rows": [row.as_json() for row in self.rows]}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Promises:
        return cls(tuple(map(Promise.from_json, content["rows"])), content["level"])

    @property
    def notes(self) -> list[str]:
        """What a reader has to know about the numbers."""
        changes = any(row.paired and row.limit is not None for row in self.rows)
        said = [RISE] if changes else []
        return said + _counted(self.rows)

    def __str__(self) -> str:
        lines = [self.headings, *self.cells]
        widths = [max(len(line[i]) for line in lines) + gap for i, gap in enumerate(GAPS)]
        texts = ["".join(cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True)) for line in lines]
        return "\n".join([*(text.rstrip() for text in texts), *self.notes])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in self.headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in self.cells
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def markdown(self) -> str:
        """The table for a Markdown file."""
        lines = [self.headings, ["---"] * len(self.headings), *self.cells]
        rows = ["| " + " | ".join(for_markdown(" ".join(cell.split())) for cell in line) + " |" for line in lines]
        return "\n".join([*rows, *(f"\n{for_markdown(note)}" for note in self.notes)])

    @property
    def headings(self) -> list[str]:
        measured = "samples" if self.rows and all(row.steered for row in self.rows) else "witnesses"
        return ["task", "limit", "then", f"now ({measured}, {100 * (1 - self.level):g} %)", "verdict"]

    @property
    def cells(self) -> list[list[str]]:
        """Text of each row. Numbers of a column end at the same place."""
        return _cells(self.rows)


def _counted(rows: Sequence[Promise]) -> list[str]:
    """How far losses count, where there are some. Rows may have different clips."""
    clips: dict[str, list[str]] = {}
    for row in rows:
        if row.clip is not None:
            clips.setdefault(f"{row.clip:.4g}", []).append(printable(row.task))
    each = [clip if len(clips) == 1 else f"{clip} ({', '.join(tasks)})" for clip, tasks in clips.items()]
    return [f"Losses count up to {', '.join(each)}: no number of samples bounds larger ones."] if clips else []


def _cells(rows: Sequence[Promise]) -> list[list[str]]:
    stated = _right([_number(row, row.limit) for row in rows])
    then = _right([_number(row, row.then) for row in rows])
    now = _right([_number(row, row.now) for row in rows])
    written = [len(row.written or "") for row in rows if row.paired]
    told = [
        [row.task, _limit(row, stated[i], max(written, default=0)), then[i], now[i] + _interval(row), row.sentence]
        for i, row in enumerate(rows)
    ]
    return [list(map(printable, line)) for line in told]


def _limit(row: Promise, value: str, width: int) -> str:
    if row.kind == NEW:
        return NEW if row.written is None else f"{NEW} {row.written}"
    if row.paired and row.limit is not None:
        return f"{(row.written or '').ljust(width)} → {value}"
    return row.written or NONE


def _interval(row: Promise) -> str:
    scale, digits = (100, 1) if row.unit == "error" else (1, 3)
    if row.low is None or row.high is None:
        return "" if row.low is None else f" (at least {scale * row.low:.{digits}f})"
    return f" ({scale * row.low:.{digits}f} – {scale * row.high:.{digits}f})"


def _number(row: Promise, value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.1f} %" if row.unit == "error" else f"{value:.3f}"


def _right(texts: list[str]) -> list[str]:
    width = max([WIDTH, *map(len, texts)])
    return [text if text == NONE else text.rjust(width) for text in texts]
