"""Tables and the figure of docs/results/exact.md, from docs/results/data/exact_*.jsonl."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from scipy.stats import t as student

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent.parent / "benchmarks/evidence"))
from exact_streams import DOMAINS, SETTINGS  # noqa: E402

Row = dict[str, Any]
REPLAY = ("er", "er-ace", "derpp", "icarl", "even")
KINDS = ("K=1", "K=3", "K=5", "rises K=1", "rises K=3", "rises K=5")


def read(part: str) -> list[Row]:
    file = HERE / f"data/{part}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


PARTS = ("accuracy", "limits", "ablations", "small", "growth")
ACCURACY, LIMITS, ABLATIONS, SMALL, GROWTH = (read(f"exact_{part}") for part in PARTS)
RECORDS = [row for row in read("limits") if row["kind"] == "free"]
# intents.py: the same stream, memory 770, preset tuned.
RECORDS += [
    {**row, "stream": "minilm"} for row in read("intents") if (row["features"], row["scenario"]) == ("minilm", "")
]


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(values: list[float]) -> str:
    return "–" if not values else f"{100 * mean(values):.1f} ({len(values)})"


def interval(values: list[float]) -> str:
    if len(values) < 2:
        return f"{mean(values):+.2f}" if values else "–"
    half = student.ppf(0.975, len(values) - 1) * stdev(values) / len(values) ** 0.5
    return f"{mean(values):+.2f} ({mean(values) - half:+.2f} to {mean(values) + half:+.2f})"


# Accuracy.


def scores(stream: str, memory: int | None, method: str) -> list[float]:
    """Mean accuracy of every seed; records of limits_kept.py where memory is the middle one."""
    own = [row[method] for row in ACCURACY if (row["stream"], row["memory"]) == (stream, memory) and method in row]
    if own or memory != SETTINGS[stream].memories[1]:
        return own
    found = [row for row in RECORDS if (row["stream"], row["method"]) == (stream, method)]
    return [1 - mean(row["errors"]) for row in found]


def accuracy_tables() -> str:
    heads = ["stream", "bytes", "exact", "d", *REPLAY, "even, 8 bits", "slda, same φ", "ncm, same φ"]
    equal, free = [], []
    for name, setting in SETTINGS.items():
        for memory in (*setting.memories, None):
            row = next(
                (row for row in ACCURACY if (row["stream"], row["method"], row["memory"]) == (name, "exact", memory)),
                None,
            )
            if row is None:
                continue
            same = [percent(scores(name, memory, each)) for each in ("slda", "ncm")]
            own = percent(scores(name, memory, "exact"))
            if memory is None:
                bound = percent(scores(name, None, "joint"))
                free.append(
                    [
                        name,
                        f"{row['bytes'] / 1e6:.1f} MB",
                        row["features"],
                        own,
                        *same,
                        bound,
                        f"{row['rho']:g}",
                        f"{row['cpu']:.0f}",
                    ]
                )
                continue
            eight = percent(scores(name, 4 * memory, "even")) if name in ("banking77", "minilm") else "–"
            rivals = [percent(scores(name, memory, each)) for each in REPLAY]
            equal.append(
                [name, f"{memory * setting.sample / 1e3:.0f} KB ({memory})", own, str(row["d"]), *rivals, eight, *same]
            )
    wide = [
        "stream",
        "bytes",
        "features",
        "exact",
        "slda, same φ",
        "ncm, same φ",
        "joint network",
        "ρ",
        "CPU s, all three",
    ]
    return f"### At equal bytes\n\n{table(heads, equal)}\n\n### At whatever bytes it likes\n\n{table(wide, free)}"


def ahead_of_replay() -> list[tuple[str, float]]:
    """At the middle memory: exact less the best replay method that was measured."""
    found = []
    for name, setting in SETTINGS.items():
        own = scores(name, setting.memories[1], "exact")
        best = [mean(each) for rival in REPLAY if (each := scores(name, setting.memories[1], rival))]
        if own and best:
            found.append((name, 100 * (mean(own) - max(best))))
    return found


def of_replay(name: str, place: int = 1) -> tuple[float, float]:
    """The worst and the best replay method at one memory, in %."""
    memory = SETTINGS[name].memories[place]
    means = [100 * mean(each) for rival in REPLAY if (each := scores(name, memory, rival))]
    return min(means), max(means)


def own(name: str, place: int | None = 1) -> float:
    """The accuracy of exact at one memory, or at whatever it likes, in %."""
    return 100 * mean(scores(name, None if place is None else SETTINGS[name].memories[place], "exact"))


def width_of(name: str, place: int) -> int:
    memory = SETTINGS[name].memories[place]
    found: int = next(r["d"] for r in ACCURACY if (r["stream"], r["method"], r["memory"]) == (name, "exact", memory))
    return found


def slda_at_equal_bytes() -> list[float]:
    """exact less slda on the same features, in points, at every stream and memory."""
    places = [(name, memory) for name, setting in SETTINGS.items() for memory in setting.memories]
    pairs = [(scores(*place, "exact"), scores(*place, "slda")) for place in places]
    return [100 * (mean(one) - mean(other)) for one, other in pairs if one and other]


def ahead_of(rival: str) -> list[tuple[str, float]]:
    """Without a bound: exact less slda or ncm on the same features."""
    pairs = [(name, scores(name, None, "exact"), scores(name, None, rival)) for name in SETTINGS]
    return [(name, 100 * (mean(one) - mean(other))) for name, one, other in pairs if one]


# Limits.


def excess(row: Row, errors: list[float], then: list[float]) -> float:
    """Mean over past tasks of what is above the limit, in points."""
    rises = row["scenario"].startswith("rises")
    over = [max(0.0, (e - t if rises else e) - limit) for e, t, limit in zip(errors, then, row["limits"], strict=True)]
    return 100 * mean(over[:-1])


def kind_of(row: Row) -> str:
    return row["scenario"].split(" at ")[0]


def equal_of(row: Row) -> Row:
    return next(
        e
        for e in LIMITS
        if e["scenario"] == "equal weights" and (e["stream"], e["seed"]) == (row["stream"], row["seed"])
    )


def by_hand(row: Row, weight: float | None) -> float:
    """weight None: the best of nine on guards."""
    tried = row["by_hand"] if weight is None else [each for each in row["by_hand"] if each["weight"] == weight]
    return excess(row, min(tried, key=lambda each: each["on_guards"])["errors"], row["then"])


def cases(kind: str, streams: Callable[[str], bool] = lambda stream: True) -> list[Row]:
    """One row a case: what each exceeds, and what it costs in mean error. Offsets alone are what exact is where classes
    are a task's own; where they are shared there are none, and that is equal weights. Weights alone: the other way."""
    found = []
    for row in LIMITS:
        if kind_of(row) != kind or row["method"] != "exact" or not streams(row["stream"]):
            continue
        equal, shared = equal_of(row), row["stream"] in DOMAINS
        same = {r["method"]: r for r in LIMITS if all(r[k] == row[k] for k in ("stream", "scenario", "seed"))}
        same |= {"equal": equal, "exact-offsets": equal if shared else row}
        same |= {"exact-weights": row} if shared else {}
        case = {"stream": row["stream"]}
        for name, each in same.items():
            case[name] = excess(row, each["errors"], each["then"])
            case[f"{name} cost"] = 100 * (mean(each["errors"]) - mean(equal["errors"]))
        if "by_hand" in row:
            case |= {"hand": by_hand(row, 1.0), "hand nine": by_hand(row, None)}
        found.append(case)
    return found


def limits_table() -> str:
    heads = [
        "limits",
        "cases",
        "equal weights",
        "exact",
        "offsets alone",
        "weights alone",
        "frozen duals",
        "by hand, λ = 1",
        "best of nine",
        "cost of exact",
        "of weights alone",
    ]
    names = ("equal", "exact", "exact-offsets", "exact-weights", "exact-frozen", "hand", "hand nine", "exact cost",
             "exact-weights cost")  # fmt: skip
    rows = []
    for kind in KINDS:
        some = cases(kind)
        groups = {f"**{kind}, all streams**": some} if some else {}
        groups |= {f"{kind}, {name}": [c for c in some if c["stream"] == name] for name in in_order(some)}
        for title, group in groups.items():
            values = [[case[n] for case in group if n in case] for n in names]
            signed = [f"{mean(v):+.2f}" if v else "–" for v in values[-2:]]
            rows.append([title, str(len(group)), *(f"{mean(v):.2f}" if v else "–" for v in values[:-2]), *signed])
    return table(heads, rows)


def costs(kind: str, method: str = "exact") -> dict[str, float]:
    """What limits cost in mean error, in points, by stream; kind: how their name begins."""
    some = [case for each in KINDS if each.startswith(kind) for case in cases(each) if f"{method} cost" in case]
    return {name: mean(case[f"{method} cost"] for case in some if case["stream"] == name) for name in in_order(some)}


def in_order(some: list[Row]) -> list[str]:
    """Streams, those of domains last."""
    return sorted({case["stream"] for case in some}, key=lambda name: (name in DOMAINS, name))


def pooled(rival: str, streams: Callable[[str], bool] = lambda stream: True) -> list[float]:
    """Excess of a rival less that of exact, a mean for each stream and kind of limits: those are the units."""
    found = []
    for kind in KINDS:
        some = [case for case in cases(kind, streams) if rival in case]
        for stream in in_order(some):
            found.append(mean(case[rival] - case["exact"] for case in some if case["stream"] == stream))
    return found


def pooled_table() -> str:
    names = {"equal": "equal weights", "exact-frozen": "frozen duals", "exact-offsets": "offsets alone",
             "exact-weights": "weights alone", "hand nine": "best of nine by hand"}  # fmt: skip
    groups: dict[str, Callable[[str], bool]] = {
        "all streams": lambda stream: True,
        "classes of their own": lambda stream: stream not in DOMAINS,
        "domains": lambda stream: stream in DOMAINS,
    }
    rows = [
        [label, *(f"{interval(values)}, {len(values)} units" if any(values := pooled(name, streams)) else "the same"
                  for streams in groups.values())]
        for name, label in names.items()
    ]  # fmt: skip
    return table(["rival", *groups], rows)


def curves_table() -> str:
    shifts = ("-6", "-4", "-2", "+0", "+2")
    rows = []
    for stream in sorted({row["stream"] for row in LIMITS if row["scenario"].startswith("curve")}):
        cells = []
        for shift in shifts:
            some = [r for r in LIMITS if r["stream"] == stream and r["scenario"] == f"curve {shift}"]
            place = some[0]["strict"][0] if some else 0
            stated, got = (100 * mean(r[side][place] for r in some) if some else 0.0 for side in ("limits", "errors"))
            cells.append(f"{stated:.1f} → {got:.1f}" if some else "–")
        rows.append([stream, *cells])
    return table(["stream", *(f"r {shift} points" for shift in shifts)], rows)


def falling_curves() -> tuple[int, int]:
    """Of how many streams no stricter limit has a larger error; and of how many in all."""
    rows = [
        [cell.split(" → ")[1] for cell in line.split(" | ")[1:] if "→" in cell] for line in curves_table().split("\n")
    ]
    curves = [[float(each.strip(" |")) for each in row] for row in rows if row]
    return sum(curve == sorted(curve) for curve in curves), len(curves)


def shift_of(stream: str) -> tuple[float, float]:
    """The mean error of equal weights on test data and on held-out training data, in %."""
    rows = [row for row in LIMITS if (row["stream"], row["scenario"]) == (stream, "equal weights")]
    return 100 * mean(mean(row["errors"]) for row in rows), 100 * mean(mean(row["references"]) for row in rows)


def verdicts() -> Row:
    """Of all limits of past tasks, at the end of the stream."""
    said = []
    for row in LIMITS:
        for name, verdict, samples in row.get("said", ()):
            task = int(str(name).lstrip("t"))
            if task < len(row["limits"]) - 1:
                rises = row["scenario"].startswith("rises")
                true = row["errors"][task] - (row["then"][task] if rises else 0.0)
                said.append((verdict, samples, true > row["limits"][task], task in row["strict"]))
    kept, broken = ([each for each in said if each[0] == name] for name in ("kept", "BROKEN"))
    strict = [each for each in said if each[3]]
    return {
        "all": len(said), "witnesses": mean(each[1] for each in said),
        "kept": len(kept), "false": sum(each[2] for each in kept),
        "broken": len(broken), "false broken": sum(not each[2] for each in broken), "strict": len(strict),
        "strict decided": sum(each[0] in ("kept", "BROKEN") for each in strict),
    }  # fmt: skip


def impossible_table() -> str:
    rows = []
    for row in (each for each in LIMITS if each["scenario"] == "impossible"):
        equal, place = equal_of(row), row["strict"][0]
        others = [(a, b) for k, (a, b) in enumerate(zip(row["errors"], equal["errors"], strict=True)) if k != place]
        worst = 100 * max(a - b for a, b in others)
        own = f"{100 * equal['errors'][place]:.1f} → {100 * row['errors'][place]:.1f}"
        cost = 100 * (mean(row["errors"]) - mean(equal["errors"]))
        rows.append(
            [row["stream"], str(row["seed"]), f"{100 * row['limits'][place]:.1f}", own, f"{cost:+.2f}", f"{worst:+.1f}"]
        )
    return table(
        ["stream", "seed", "limit %", "its error %, equal → exact", "mean error, points", "worst other task, points"],
        rows,
    )
