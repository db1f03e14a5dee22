"""What each ingredient of the default is worth: leave it out, or change it, and hold the result against the default.

    python benchmarks/evidence/ablations.py --out runs/ablations --seeds 5
    python benchmarks/evidence/ablations.py --out runs/ablations --table

Streams, references and limits are those of `limits_kept.py`. Every result is a line of results.jsonl: the same command
again goes on where it stopped.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from pathlib import Path
from typing import Any

from limits_kept import Book, calibrated, jobs, measure, references_of, scenarios, settle
from limits_page import held_to, interval

from pdcl.errors import LimitBroken

SMALL, LARGE = ("digits", "mnist"), ("mnist-2000",)
# label, method, options, streams. Without a limit there are no duals: `even`. The first of a method is its default.
WITHOUT_LIMITS: list[tuple[str, dict[str, Any]]] = [
    ("default", {}),
    ("drift 0", {"drift": 0.0}),
    ("drift 1", {"drift": 1.0}),
    ("soften 0", {"soften": 0.0}),
    ("base 0.3", {"base": 0.3}),
    ("base 3", {"base": 3.0}),
    ("classes not balanced", {"balance": False}),
    ("optimiser anew each task", {"keep_optimizer": False}),
]
WITH_LIMITS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("default", {}, SMALL + LARGE),
    ("even partition", {"partition": "uniform"}, SMALL),
    ("soften 0", {"soften": 0.0}, SMALL),
    ("frozen duals", {"dual": "frozen"}, SMALL + LARGE),
    ("base 0", {"base": 0.0}, SMALL),
    ("base 0, start 1", {"base": 0.0, "start": 1.0}, SMALL),
    ("guard 5", {"guard": 5}, LARGE),
    ("guard 20", {"guard": 20}, LARGE),
    ("guard 100", {"guard": 100}, LARGE),
    ("guard 20, margin 0", {"guard": 20, "dual": "capped:margin=0"}, LARGE),
    ("guard 20, margin 1.6", {"guard": 20, "dual": "capped:margin=1.6"}, LARGE),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--streams", nargs="*", default=[*SMALL, *LARGE])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    book = Book(asked.out)
    if asked.table:
        print(f"{without_limits(book.rows)}\n\n{with_limits(book.rows)}")
        return
    settle()
    warnings.simplefilter("ignore", LimitBroken)
    for stream in asked.streams:
        references = calibrated(book, stream)
        for seed in range(asked.seeds):
            for method, label, options in chosen(stream):
                for job in jobs(stream, references, method, label, options, judged_in(references)):
                    measure(book, stream, seed, **job)


def chosen(stream: str) -> list[tuple[str, str, dict[str, Any]]]:
    free = [("even", f"even: {label}", options) for label, options in WITHOUT_LIMITS if stream in SMALL]
    return free + [("pdcl", f"pdcl: {label}", options) for label, options, where in WITH_LIMITS if stream in where]


def judged_in(references: list[float]) -> list[str]:
    """All tasks at r + 2 points; the middle one at r − 2."""
    return ["all +2", f"strict {(len(references) - 1) // 2 + 1}"]


def without_limits(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| stream | left out or changed | seeds | mean accuracy | right after learning | − default (paired 95 %) |"
    ]
    lines.append("|---|---|---|---|---|---|")
    for stream in SMALL:
        own = {(row["method"], row["seed"]): row for row in rows if row["stream"] == stream and row["kind"] == "free"}
        base = {seed: mean_accuracy(row) for (method, seed), row in own.items() if method == "even: default"}
        for label, _ in WITHOUT_LIMITS:
            runs = {seed: row for (method, seed), row in own.items() if method == f"even: {label}"}
            if runs:
                found = {seed: mean_accuracy(row) for seed, row in runs.items()}
                new = statistics.mean(100 - 100 * row["new"] for row in runs.values())
                gaps = [found[seed] - base[seed] for seed in found if seed in base and label != "default"]
                paired = interval(gaps) if len(gaps) > 1 else ""
                mean = statistics.mean(found.values())
                lines.append(f"| {stream} | {label} | {len(runs)} | {mean:.1f} | {new:.1f} | {paired} |")
    return "\n".join(lines)


def mean_accuracy(row: dict[str, Any]) -> float:
    return 100 - 100 * statistics.mean(row["errors"])


def with_limits(rows: list[dict[str, Any]]) -> str:
    heads = "| stream | limits | left out or changed | seeds | mean excess | worst | kept | new-task error "
    lines = [f"{heads}| excess − default (paired 95 %) |", "|---|---|---|---|---|---|---|---|---|"]
    for stream in dict.fromkeys(row["stream"] for row in rows):
        references = references_of(rows, stream)
        for scenario, limits in scenarios(references):
            if scenario in judged_in(references):
                own = [row for row in rows if row["stream"] == stream and row.get("scenario") == scenario]
                lines += _by_label(stream, scenario, own, limits)
    return "\n".join(lines)


def _by_label(stream: str, scenario: str, rows: list[dict[str, Any]], limits: list[float]) -> list[str]:
    found = {(row["method"], row["seed"]): held_to(row, limits) for row in rows}
    base = {seed: run["mean"] for (method, seed), run in found.items() if method == "pdcl: default"}
    lines = []
    for label, _, _ in WITH_LIMITS:
        runs = {seed: run for (method, seed), run in found.items() if method == f"pdcl: {label}"}
        if runs:
            cells = [
                f"{statistics.mean(run[n] for run in runs.values()):.2f}" for n in ("mean", "worst", "kept", "new")
            ]
            gaps = [run["mean"] - base[seed] for seed, run in runs.items() if seed in base and label != "default"]
            paired = interval(gaps) if len(gaps) > 1 else ""
            lines.append(f"| {stream} | {scenario} | {label} | {len(runs)} | {' | '.join(cells)} | {paired} |")
    return lines


if __name__ == "__main__":
    main()
