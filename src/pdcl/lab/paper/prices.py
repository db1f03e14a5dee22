"""Prices (Theorem 1): how the what-if curves beside the runs lie to the line −λγ."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pdcl.lab.comparing.tables import MINUS
from pdcl.lab.paper.cells import row_of, section
from pdcl.lab.paper.runs import SIZE, Runs
from pdcl.records import Row

# The parts `prices` and `settled`: what was given beside the preset.
MORE_STEPS: dict[str, Any] = {"dual_steps": 240}
SETTLED: dict[str, Any] = {**MORE_STEPS, "tolerance": 0.1, "optimizer": "sgd", "lr": 0.1, "normalise": True}
NARROW, WIDE = "mlp:10-10", "mlp:400-400"
TABLE = (
    ("mnist", SIZE, MORE_STEPS, "as printed"),
    ("organa", SIZE, MORE_STEPS, "as printed"),
    ("mnist", SIZE, SETTLED, "settled"),
    ("mnist", SIZE, {**SETTLED, "network": NARROW}, "settled, 10 units"),
    ("mnist", SIZE, {**SETTLED, "network": WIDE}, "settled, 400 units"),
    ("mnist", 50, {**SETTLED, "network": NARROW}, "settled, 10 units"),
    ("mnist", 50, {**SETTLED, "network": WIDE}, "settled, 400 units"),
)
TEXT = """### What prices are worth

The last task is solved again at another tolerance ε + γ of the first one, three times, from the same starting point.
Theorem 1 says P(ε + γ) − P(ε) ≥ −λγ − ω|γ|, for a small ω. *Noise*: two standard errors over these three, mean over
seeds. *Not below*: points that don't lie below −λγ by more than that; where noise is larger than λγ this says little.
*ω needed*: how far points lie below −λγ, by unit of γ; 0 for those above, so that noise alone raises it. Claims leave
points with λγ > P(ε) out: no loss is below 0, so those can't lie below −λγ (*can't fail*: of how many seeds).
*Settled*: plain SGD at .1 and ε = .1, a tolerance that is met, so γ can have both signs. With the printed Adam at .01
two solutions of one problem differ by more than most prices."""


def curves(row: Row) -> list[dict[str, Any]]:
    """The what-if curves that were left beside a run, those with several solutions a point: one shows no noise."""
    files = sorted(Path(row.path).glob("whatif-task*.json"))
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return [each for each in found if all(point["error"] is not None for point in each["points"])]


def price_points(row: Row) -> list[dict[str, Any]]:
    """Their points: γ, P(ε + γ) − P(ε), its standard error, and −λγ."""
    return [point for curve in curves(row) for point in curve["points"]]


def _can_fail(curve: dict[str, Any], point: dict[str, Any]) -> bool:
    """No point can where λγ > P(ε): a loss isn't below 0, so P falls by P(ε) at most."""
    return bool(point["line"] >= -curve["value"])


def above_line(row: Row, side: int = 0) -> float | None:
    """Σ (P(ε + γ) − P(ε) + λγ) / Σ |γ| over points that tell: Theorem 1 with ω = 0 says that it isn't below 0.

    side: −1 for points at a tighter ε, 1 for those at a looser one, 0 for both.
    """
    points = [
        point
        for curve in curves(row)
        for point in curve["points"]
        if _can_fail(curve, point) and point["change"] * side >= 0
    ]
    size = sum(abs(point["change"]) for point in points)
    return sum(point["gain"] - point["line"] for point in points) / size if size else None


def dual_of(row: Row) -> float | None:
    """λ of the constraint that a what-if curve is about."""
    found = curves(row)
    return statistics.fmean(curve["dual"] for curve in found) if found else None


def slope(row: Row) -> float | None:
    """−(P(ε + γ₊) − P(ε + γ₋)) / (γ₊ − γ₋) for the nearest points on both sides of ε: λ, where λ is exact."""
    gains = {float(point["change"]): float(point["gain"]) for point in price_points(row)}
    below = max((change for change in gains if change < 0), default=None)
    beyond = min((change for change in gains if change > 0), default=None)
    if below is None or beyond is None:
        return None
    return -(gains[beyond] - gains[below]) / (beyond - below)


def prices(runs: Runs) -> str:
    """The section of the page: every tolerance with the mean over seeds of what it changed."""
    lines = []
    for stream, memory, options, name in TABLE:
        rows = [row for row in runs.find(stream, "pdcl0", memory, **options).values() if price_points(row)]
        lines += _lines(f"{stream}, {name}, memory {memory}", rows) if rows else []
    columns = "setting | λ | γ | P(ε + γ) − P(ε) | noise | −λγ | not below | can't fail | ω needed | seeds"
    return section(TEXT, columns, "l" + "r" * 9, lines)


def _lines(setting: str, rows: Sequence[Row]) -> list[str]:
    found = [curve for row in rows for curve in curves(row)]
    dual = statistics.fmean(curve["dual"] for curve in found)
    by_change: dict[float, list[dict[str, Any]]] = defaultdict(list)
    idle: Counter[float] = Counter()
    for curve, point in ((each, point) for each in found for point in each["points"]):
        change = round(point["change"], 9)
        by_change[change].append(point)
        idle[change] += not _can_fail(curve, point)
    lines = []
    for change, points in sorted(by_change.items()):
        gain, noise, line = (statistics.fmean(p[key] for p in points) for key in ("gain", "error", "line"))
        kept = sum(p["gain"] >= p["line"] - 2 * p["error"] for p in points)
        needed = statistics.fmean(max(0.0, p["line"] - p["gain"]) / abs(change) for p in points)
        numbers = [f"{dual:.3g}", f"{change:+.3g}", f"{gain:+.4f}", f"{2 * noise:.4f}", f"{line:+.4f}"]
        counts = [f"{kept} of {len(points)}", str(idle[change]), f"{needed:.3f}", str(len(rows))]
        lines.append(row_of(setting, *(each.replace("-", MINUS) for each in numbers), *counts))
    return lines
