"""Limits kept: does a method keep each past task's test error within a limit that somebody states?

    python benchmarks/limits_kept.py --out runs/limits                              ours and the rivals
    python benchmarks/limits_kept.py --out runs/limits --plugin mine.py --method mine   a method of your own
    python benchmarks/limits_kept.py --out runs/limits --table                      what is there so far, as Markdown

References r_k are the errors of `even` on held-out training data at the same memory, a mean over calibration seeds. The
limits are r_k + 0, + 2 and + 5 points for all tasks; one task at r_k − 2 with the others at r_k + 10, at three
positions; and one at r_k − 10, which can't be kept. Methods that know no limits run once per seed and are held to all
of them. All numbers are on test data, at the end of the stream. Every result is a line of results.jsonl: the same
command again goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import pdcl
from pdcl.promises import LimitBroken
from pdcl.running.plugins import load_file

STREAMS: dict[str, tuple[dict[str, Any], int]] = {
    "digits": ({}, 100),
    "mnist": ({"per_class": 120}, 100),
    "banking77": ({}, 770),
    "organa": ({"per_class": 120}, 100),
    "speech": ({"per_class": 150}, 150),
}
LIMITED = ("pdcl", "pdcl0", "pdcl-s")
RIVALS = ("even", "er", "er-ring", "er-ace", "derpp")
CALIBRATION = (100, 101, 102)
LEAST = 0.005


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/limits"))
    parser.add_argument("--streams", nargs="*", default=list(STREAMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--method", nargs="*", default=["pdcl", *RIVALS])
    parser.add_argument("--plugin", type=Path)
    parser.add_argument("--option", nargs="*", default=[], help="name=value for methods that take limits")
    parser.add_argument("--label", help="what the table calls a method with options")
    parser.add_argument("--scenarios", nargs="*")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--accuracy", action="store_true", help="mean accuracy of methods without limits, as Markdown")
    asked = parser.parse_args()
    book = Book(asked.out)
    if asked.table:
        print(table(book.rows))
        return
    if asked.accuracy:
        print(accuracy(book.rows))
        return
    if asked.plugin is not None:
        load_file(asked.plugin)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", LimitBroken)
    options = {name: json.loads(value) for name, _, value in (each.partition("=") for each in asked.option)}
    for stream in asked.streams:
        references = calibrated(book, stream)
        for seed in range(asked.seeds):
            for name in asked.method:
                measure(book, stream, references, seed, name, asked.label or name, options, asked.scenarios)


class Book:
    """Results so far: one JSON object a line, found by its `key`."""

    def __init__(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.file = place / "results.jsonl"
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self.known = {row["key"] for row in self.rows}

    def add(self, key: str, **row: Any) -> None:
        row["key"] = key
        self.rows.append(row)
        self.known.add(key)
        with self.file.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(key, f"{row['errors'][-1]:.3f} last, {statistics.mean(row['errors']):.3f} mean", flush=True)


def loaded(name: str, held_out: bool) -> Any:
    options = STREAMS[name][0]
    return pdcl.stream(name, **options, **({"held_out": 0.2} if held_out else {}))


def errors_of(result: Any) -> list[float]:
    return [1 - score for score in result.accuracy["class_il"][-1]]


def calibrated(book: Book, stream: str) -> list[float]:
    """r_k: the mean error of `even` on held-out data."""
    for seed in CALIBRATION:
        key = f"{stream} reference {seed}"
        if key not in book.known:
            result = pdcl.run(loaded(stream, True), "even", preset="auto", memory=STREAMS[stream][1], seed=seed)
            book.add(key, stream=stream, kind="reference", errors=errors_of(result))
    found = [row["errors"] for row in book.rows if row["stream"] == stream and row["kind"] == "reference"]
    return [statistics.mean(column) for column in zip(*found, strict=True)]


def scenarios(references: list[float]) -> Iterator[tuple[str, list[float]]]:
    """A name and the limits of all tasks."""
    for points in (0, 2, 5):
        yield f"all +{points}", [r + points / 100 for r in references]
    last = len(references) - 1
    for place in (0, last // 2, last - 1):
        yield f"strict {place + 1}", [r - 0.02 if k == place else r + 0.1 for k, r in enumerate(references)]
    yield "impossible", [r - 0.1 if k == last // 2 else r + 0.1 for k, r in enumerate(references)]


def measure(
    book: Book, stream: str, references: list[float], seed: int, name: str, label: str, options: Any, only: Any
) -> None:
    if name not in LIMITED:
        key = f"{stream} {label} {seed}"
        if key not in book.known:
            result = pdcl.run(loaded(stream, False), name, preset="auto", memory=STREAMS[stream][1], seed=seed)
            book.add(key, stream=stream, kind="free", method=label, seed=seed, **measured(result))
        return
    for scenario, limits in scenarios(references):
        key = f"{stream} {label} {seed} {scenario}"
        if key in book.known or (only and scenario not in only):
            continue
        data = loaded(stream, False)
        stated = {task.name: f"{100 * max(limit, LEAST):.2f}%" for task, limit in zip(data.tasks, limits, strict=True)}
        result = pdcl.run(data, name, preset="auto", memory=STREAMS[stream][1], seed=seed, tolerance=stated, **options)
        book.add(key, stream=stream, kind="limited", method=label, seed=seed, scenario=scenario, **measured(result))


def measured(result: Any) -> dict[str, Any]:
    promises = getattr(result.learner, "promises", None)
    new = [1 - row[k] for k, row in enumerate(result.accuracy["class_il"])]
    said = {} if promises is None else {row.task: row.verdict for row in promises}
    return {"errors": errors_of(result), "new": statistics.mean(new), "held": result.partitions[-1], "said": said}


def judged(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], list[dict[str, float]]]:
    """By stream, scenario and method: mean and worst excess over limits in points, share kept, and so on, by seed."""
    found: dict[tuple[str, str, str], list[dict[str, float]]] = defaultdict(list)
    by_stream = {row["stream"] for row in rows}
    for stream in by_stream:
        own = [row["errors"] for row in rows if row["stream"] == stream and row["kind"] == "reference"]
        references = [statistics.mean(column) for column in zip(*own, strict=True)]
        for scenario, limits in scenarios(references):
            limits = [max(limit, LEAST) for limit in limits]
            for row in rows:
                if row["stream"] == stream and row["kind"] != "reference" and row.get("scenario", scenario) == scenario:
                    found[stream, scenario, row["method"]].append({"seed": row["seed"], **held_to(row, limits)})
    return found


def held_to(row: dict[str, Any], limits: list[float]) -> dict[str, float]:
    excess = [100 * max(0.0, error - limit) for error, limit in zip(row["errors"], limits, strict=True)][:-1]
    verdicts = list(row["said"].values())[:-1]
    kept = [verdict == "kept" for verdict in verdicts]
    return {
        "mean": statistics.mean(excess),
        "worst": max(excess),
        "kept": statistics.mean(each == 0 for each in excess),
        "new": 100 * row["new"],
        "false kept": sum(a and b > 0 for a, b in zip(kept, excess, strict=False)),
        "judged": len(verdicts),
        "undecided": sum(verdict == "undecided" for verdict in verdicts),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Mean excess with a 95 % interval, worst excess, share of limits kept, error of new tasks, by method."""
    lines = [
        "| stream | limits | method | seeds | mean excess | worst | kept | new-task error | − even (paired 95 %) |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    found = judged(rows)
    for (stream, scenario, method), each in sorted(found.items()):
        even = {run["seed"]: run["mean"] for run in found.get((stream, scenario, "even"), [])}
        gaps = [run["mean"] - even[run["seed"]] for run in each if run["seed"] in even]
        cells = [f"{statistics.mean(run[name] for run in each):.2f}" for name in ("mean", "worst", "kept", "new")]
        paired = "" if method == "even" or len(gaps) < 2 else interval(gaps)
        lines.append(f"| {stream} | {scenario} | {method} | {len(each)} | {' | '.join(cells)} | {paired} |")
    return "\n".join(lines)


def accuracy(rows: list[dict[str, Any]]) -> str:
    """Mean accuracy at the stream's end and right after learning, and the paired difference even − method."""
    lines = ["| stream | method | seeds | mean accuracy | right after learning | even − it (paired 95 %) |"]
    lines.append("|---|---|---|---|---|---|")
    free = [row for row in rows if row["kind"] == "free"]
    for stream, method in sorted({(row["stream"], row["method"]) for row in free}):
        scores = {(row["method"], row["seed"]): row for row in free if row["stream"] == stream}
        own = {seed: 100 - 100 * statistics.mean(row["errors"]) for (m, seed), row in scores.items() if m == method}
        new = statistics.mean(100 - 100 * row["new"] for (m, _), row in scores.items() if m == method)
        even = {seed: 100 - 100 * statistics.mean(row["errors"]) for (m, seed), row in scores.items() if m == "even"}
        gaps = [even[seed] - own[seed] for seed in own if seed in even]
        paired = "" if method == "even" or len(gaps) < 2 else interval(gaps)
        lines.append(
            f"| {stream} | {method} | {len(own)} | {statistics.mean(own.values()):.1f} | {new:.1f} | {paired} |"
        )
    return "\n".join(lines)


def interval(values: list[float]) -> str:
    """Mean and Student's 95 % interval."""
    from scipy.stats import t

    half = t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.mean(values)
    return f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})"


if __name__ == "__main__":
    main()
