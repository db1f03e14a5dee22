"""Curves of any length in bounded memory: the longer one grows, the coarser it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

Values = list[float | None]


@dataclass
class Curve:
    """Rows (x, values) as they come, at most 2 × `limit` of them.

    When full, neighbours within one segment are joined, and from then on every new row stands for twice as many. `mean`
    joins by averaging, as a noisy loss asks for; otherwise the later row stands for both, so that what is shown is
    something that was measured.
    """

    limit: int = 400
    mean: bool = False
    rows: list[tuple[int, float, Values]] = field(default_factory=list)
    stride: int = 1
    _waiting: list[tuple[int, float, Values]] = field(default_factory=list)

    def add(self, segment: int, x: float, values: Values) -> None:
        """One more row. A segment is a stretch that is drawn as one line: a task."""
        if self._waiting and self._waiting[0][0] != segment:
            self._flush()
        self._waiting.append((segment, x, values))
        if len(self._waiting) >= self.stride:
            self._flush()
        if len(self.rows) >= 2 * self.limit:
            self._halve()

    def kept(self) -> list[tuple[int, float, Values]]:
        """What may be drawn now, the newest row included."""
        return [*self.rows, *([self._joined(self._waiting)] if self._waiting else [])]

    def _flush(self) -> None:
        self.rows.append(self._joined(self._waiting))
        self._waiting = []

    def _halve(self) -> None:
        rows, self.rows, self.stride = self.rows, [], 2 * self.stride
        place = 0
        while place < len(rows):
            pair = rows[place : place + 2]
            pair = pair[:1] if pair[0][0] != pair[-1][0] else pair
            self.rows.append(self._joined(pair))
            place += len(pair)

    def _joined(self, rows: list[tuple[int, float, Values]]) -> tuple[int, float, Values]:
        segment, x, values = rows[-1]
        if not self.mean or len(rows) == 1:
            return segment, x, values
        columns = zip(*(row[2] for row in rows), strict=False)
        return segment, x, [_average(list(column)) for column in columns]


def _average(values: Values) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def columns(curve: Curve, most: int | None = None) -> tuple[list[float | None], list[Values]]:
    """A curve as x and one list per value, with a gap (None) between segments and where a row has no such value."""
    rows = _every(curve.kept(), most)
    width = max((len(values) for _, _, values in rows), default=0)
    xs: list[float | None] = []
    ys: list[Values] = [[] for _ in range(width)]
    before: int | None = None
    for segment, x, values in rows:
        if before is not None and segment != before:
            _append(xs, ys, None, [])
        _append(xs, ys, x, values)
        before = segment
    return xs, ys


def _append(xs: list[float | None], ys: list[Values], x: float | None, values: Values) -> None:
    xs.append(x)
    for place, column in enumerate(ys):
        column.append(rounded(values[place]) if place < len(values) else None)


def _every(rows: list[tuple[int, float, Values]], most: int | None) -> list[tuple[int, float, Values]]:
    """At most about `most` rows, evenly spread, the last of each segment among them."""
    if most is None or len(rows) <= most:
        return rows
    step = -(-len(rows) // most)
    ends = {place for place in range(len(rows)) if place + 1 == len(rows) or rows[place][0] != rows[place + 1][0]}
    return [row for place, row in enumerate(rows) if place % step == 0 or place in ends]


def rounded(value: float | None) -> float | None:
    """Four significant digits: more can't be seen, and costs bytes."""
    return None if value is None else float(f"{value:.4g}")
