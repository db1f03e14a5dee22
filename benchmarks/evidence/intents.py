"""Intents: banking77 as 7 tasks of 11 intents, with frozen features of its texts, under stated limits.

    python benchmarks/evidence/intents.py --out runs/intents           carry out what is missing
    python benchmarks/evidence/intents.py --out runs/intents --table   tables so far, as Markdown

Features: hashed character counts, and a frozen sentence encoder (MiniLM, `pip install 'pdcl[text]'`). Reference r_k:
the error of `even` on held-out training data, a mean over calibration seeds. Limits: r_k + 2 points for all tasks; or
r_k − 2 points for the first task and r_k + 10 for the others. Only `pdcl` hears of them; all methods are held to them,
on test data, after the last task. Every result is a line of results.jsonl: the same command again goes on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import torch

import pdcl
from pdcl.errors import LimitBroken
from pdcl.methods.catalog import method

FEATURES = ("hashed", "minilm")
MEMORY = 770
CALIBRATION = (100, 101, 102)
FREE = ("er", "derpp", "even", "ncm", "slda")
Row = dict[str, Any]


def scenarios(references: list[float]) -> dict[str, list[float]]:
    """The limit of every task, by the name of a scenario."""
    every = [r + 0.02 for r in references]
    return {"all +2": every, "first −2": [references[0] - 0.02, *(r + 0.1 for r in references[1:])]}


def key_of(features: str, name: str, seed: int, scenario: str = "") -> str:
    return f"{features} {name} {scenario} {seed}"


class Results:
    """What is measured so far: one JSON object a line, found by its `key`."""

    calibration = CALIBRATION

    def __init__(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.file = place / "results.jsonl"
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.rows: dict[str, Row] = {row["key"]: row for row in map(json.loads, lines)}

    def measure(self, features: str, name: str, seed: int, scenario: str = "", limits: Any = None) -> Row:
        """One run, unless it is there."""
        key = key_of(features, name, seed, scenario)
        if key not in self.rows:
            start = time.process_time()
            result = self._run(features, name, seed, scenario == "reference", limits)
            row = {
                "key": key, "features": features, "method": name, "scenario": scenario, "seed": seed,
                "errors": [1 - score for score in result.accuracy["class_il"][-1]],
                "learned": [1 - scores[k] for k, scores in enumerate(result.accuracy["class_il"])],
                "said": [row.verdict for row in result.promises or () if row.kind == "task"],
                "seconds": time.process_time() - start,
            }  # fmt: skip
            self.rows[key] = row
            with self.file.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{key}: {100 - 100 * statistics.mean(row['errors']):.1f} %, {row['seconds']:.0f} s", flush=True)
        return self.rows[key]

    @staticmethod
    def _run(features: str, name: str, seed: int, held_out: bool, limits: Any) -> Any:
        stream = pdcl.stream("banking77", features=features, **({"held_out": 0.2} if held_out else {}))
        options: Row = {"memory": MEMORY} if method(name).uses_memory else {}
        if limits is not None:
            said = [f"{100 * limit:.2f}%" for limit in limits]
            options["tolerance"] = {task.name: each for task, each in zip(stream.tasks, said, strict=True)}
        return pdcl.run(stream, name, preset="tuned", seed=seed, **options)

    def references(self, features: str) -> list[float]:
        """r_k of every task."""
        found = [self.measure(features, "even", seed, "reference")["errors"] for seed in self.calibration]
        return [statistics.mean(errors) for errors in zip(*found, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/intents"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--features", nargs="*", default=list(FEATURES), choices=FEATURES)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", LimitBroken)
    results = Results(asked.out)
    if asked.table:
        for features in asked.features:
            print(f"### {features}\n\n{table(results, features, range(asked.seeds))}\n")
        return
    for features in asked.features:
        limits = scenarios(results.references(features))
        for seed in range(asked.seeds):
            for name in FREE:
                results.measure(features, name, seed)
            for scenario, each in limits.items():
                results.measure(features, "pdcl", seed, scenario, each)


def table(results: Results, features: str, seeds: range, free: tuple[str, ...] = FREE) -> str:
    """Accuracy with Student's interval, error right after learning, and for each scenario the limits kept."""
    limits = scenarios(results.references(features))
    heads = [f"{name}: kept, worst excess" for name in limits]
    columns = ["method", "seeds", "mean accuracy %", "right after learning %", *heads, "CPU s"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name in (*free, *(f"pdcl, {scenario}" for scenario in limits)):
        title, _, own = name.partition(", ")
        keys = [key_of(features, title, seed, own) for seed in seeds]
        rows = [results.rows[key] for key in keys if key in results.rows]
        kept = [_kept(rows, each) if own in ("", scenario) else "–" for scenario, each in limits.items()]
        now, then = ([100 - 100 * statistics.mean(row[kind]) for row in rows] for kind in ("errors", "learned"))
        seconds = statistics.mean(row["seconds"] for row in rows)
        cells = [name, str(len(rows)), _spread(now), _spread(then), *kept, f"{seconds:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _kept(rows: list[Row], limits: list[float]) -> str:
    """The share of past tasks' limits that were kept, and the largest excess in points."""
    excess = [100 * (error - limit) for row in rows for error, limit in zip(row["errors"][:-1], limits, strict=False)]
    return f"{sum(each <= 0 for each in excess)} of {len(excess)}, {max(0.0, *excess):.1f}"


def _spread(values: list[float]) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {spread:.1f}"


if __name__ == "__main__":
    main()
