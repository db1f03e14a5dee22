"""Large memories and few passes: do moving duals keep limits that frozen ones don't, and what does it cost?

    python benchmarks/evidence/large_memory.py --out runs/large           every cell that is missing
    python benchmarks/evidence/large_memory.py --out runs/large --table   the tables so far

A cell is a stream, a memory (all past samples, or a tenth of them) and a number of passes (one, two). Networks are MLPs
on vectors: digits as they are, images of mnist and organa at 14×14, log spectrograms of speech at 16×16. Limits are
error rates, fixed beforehand: r_k, the errors of frozen duals on held-out training data, − 2 points for one past task
and + 10 for the others (at three positions); and r_k − 10 for the middle one, which may be out of reach. Memory is
divided evenly (but for `room`: as the default divides it), so nothing but duals differs from `frozen`, whose duals stay
0: it doesn't depend on limits, runs once and is held to all of them. All errors are test errors at the stream's end.
Every result is a line of results.jsonl: the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import torch
from limits_kept import Book, errors_of, scenarios, settle
from limits_page import interval
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

import pdcl
from pdcl.streams.task import Stream

STREAMS = ("digits", "mnist", "organa", "speech")
PER_CLASS, TEST_PER_CLASS = 600, 150
MEMORIES, PASSES = ("all", "tenth"), (1, 2)
CALIBRATION = (100, 101)
SCENARIOS = ("strict 1", "strict 3", "impossible")
EVEN = {"partition": "uniform"}
VARIANTS: dict[str, dict[str, Any]] = {
    "frozen": {**EVEN, "dual": "frozen"},
    "moving": {**EVEN},
    "guards": {**EVEN, "guard": 100},
    "room": {},
    "cap15": {**EVEN, "dual": "capped:cap=15"},
    "warm15": {**EVEN, "warm": True, "dual": "capped:cap=15"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/large"))
    parser.add_argument("--streams", nargs="*", default=list(STREAMS))
    parser.add_argument("--memories", nargs="*", default=list(MEMORIES))
    parser.add_argument("--passes", nargs="*", type=int, default=list(PASSES))
    parser.add_argument("--variants", nargs="*", default=["frozen", "moving", "guards"])
    parser.add_argument("--scenarios", nargs="*", default=list(SCENARIOS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    settle()
    warnings.simplefilter("ignore")
    book = Book(asked.out)
    if asked.table:
        print(tables(book))
        return
    cells = list(product(asked.streams, asked.memories, asked.passes))
    for seed in range(asked.seeds):
        for cell in cells:
            for variant in asked.variants:
                measure(book, cell, variant, seed, asked.scenarios)


# Data: vectors, made once a process.


@cache
def stream_of(name: str, held_out: bool) -> Stream:
    options = {} if name == "digits" else {"per_class": PER_CLASS}
    data, parts = pdcl.stream(name, **options), []
    for task in data.tasks:
        sides: list[Tensor] = []
        for each, most in ((task.data, PER_CLASS), (task.test, TEST_PER_CLASS)):
            y = each.targets
            some = torch.cat([(y == label).nonzero().flatten()[:most] for label in y.unique()])
            x, y = each.fetch(some)
            sides += [vectors(name, data.spec.transform(x)), y]
        parts.append(tuple(sides))
    made = pdcl.from_tasks(parts, name=name, names=[task.name for task in data.tasks])
    return made.for_tuning(0.2) if held_out else made


def vectors(name: str, x: Tensor) -> Tensor:
    x = x.float()
    if name == "digits":
        return x.flatten(1)
    if name == "speech":
        window = torch.hann_window(256)
        power = torch.stft(x.flatten(1), 256, 128, window=window, pad_mode="constant", return_complex=True)
        return adaptive_avg_pool2d((power.abs().square()[:, 1:] + 1e-4).log()[:, None], 16).flatten(1)
    return adaptive_avg_pool2d(x, 14).flatten(1)


# Runs.


Cell = tuple[str, str, int]


def measure(book: Book, cell: Cell, variant: str, seed: int, wanted: list[str]) -> None:
    name, memory, passes = cell
    stated = limits_of(book, cell)
    for scenario, limits in stated if variant not in ("frozen",) else [(None, None)]:
        if scenario is not None and scenario not in wanted:
            continue
        key = f"{name} {memory} {passes} {variant} {seed}" + (f" {scenario}" if scenario else "")
        if key in book.known:
            continue
        result = run(cell, seed, VARIANTS[variant], limits or stated[0][1])
        row = {"stream": name, "memory": memory, "passes": passes, "variant": variant, "seed": seed}
        book.add(key, **row, **({"scenario": scenario} if scenario else {}), **found(result))


def run(
    cell: Cell, seed: int, options: dict[str, Any], limits: list[float], held_out: bool = False, method: str = "pdcl"
) -> Any:
    name, memory, passes = cell
    data = stream_of(name, held_out)
    total = sum(len(task.data) for task in data.tasks)
    places = total if memory == "all" else total // 10
    tolerance = {task.name: f"{min(100.0, 100 * limit):.2f}%" for task, limit in zip(data.tasks, limits, strict=True)}
    return pdcl.run(
        data, method, memory=places, epochs=passes, batch=10, network="mlp:256-256", seed=seed, tolerance=tolerance,
        **options,
    )  # fmt: skip


def limits_of(book: Book, cell: Cell) -> list[tuple[str, list[float]]]:
    """Scenarios and their limits, from the errors of frozen duals on held-out data."""
    name, memory, passes = cell
    rows = []
    for seed in CALIBRATION:
        key = f"{name} {memory} {passes} reference {seed}"
        if key not in book.known:
            tasks = len(stream_of(name, True).tasks)
            result = run(cell, seed, VARIANTS["frozen"], [0.5] * tasks, held_out=True)
            book.add(key, stream=name, memory=memory, passes=passes, variant="reference", seed=seed, **found(result))
        rows += [row["errors"] for row in book.rows if row["key"] == key]
    return list(scenarios([statistics.mean(column) for column in zip(*rows, strict=True)]))


def found(result: Any) -> dict[str, Any]:
    """Test errors at the end, of each task right after learning it, of stored samples by task; duals at the end."""
    learner = result.learner
    memory, new = learner.core.memory, [1 - row[k] for k, row in enumerate(result.accuracy["class_il"])]
    stored = []
    for k in range(len(new)):
        slots = ((memory["task"] == k) & (memory["role"] == 0)).nonzero().flatten()
        with torch.no_grad():
            outputs = learner.evaluated(learner.core.past.inputs(slots))
        stored.append(float((outputs.argmax(1) != memory["y"][slots]).double().mean()))
    return {"errors": errors_of(result), "new": new, "stored": stored, "duals": learner.core.last_duals}


# Tables.

Rows = list[dict[str, Any]]


def tables(book: Book) -> str:
    parts = (("limits", excess_table), ("response", response_table), ("by heart", heart_table))
    return "\n\n".join(f"{title}\n\n{made(book)}" for title, made in parts)


def cells_of(book: Book) -> list[Cell]:
    there = {(row["stream"], row["memory"], row["passes"]) for row in book.rows}
    return [cell for cell in product(STREAMS, MEMORIES, PASSES) if cell in there]


def rows_of(book: Book, cell: Cell, variant: str, scenario: str | None = None) -> Rows:
    """Runs of a cell. Those of frozen duals are held to every scenario."""
    own = [row for row in book.rows if (row["stream"], row["memory"], row["passes"]) == cell]
    return [row for row in own if row["variant"] == variant and row.get("scenario", scenario) == scenario]


def held_to(row: dict[str, Any], scenario: str, limits: list[float]) -> dict[str, float]:
    """In points: mean excess of past tasks, error of the task with the strict limit and of the other past ones, and of
    every task right after it was learned."""
    past = range(len(limits) - 1)
    strict = int(scenario.split()[1]) - 1 if scenario.startswith("strict") else (len(limits) - 1) // 2
    found = {
        "excess": statistics.mean(max(0.0, row["errors"][k] - limits[k]) for k in past),
        "strict": row["errors"][strict],
        "others": statistics.mean(row["errors"][k] for k in past if k != strict),
        "new": statistics.mean(row["new"]),
    }
    return {name: 100 * value for name, value in found.items()}


def by_seed(book: Book, cell: Cell, variant: str) -> dict[int, dict[str, float]]:
    """What `held_to` says, a mean over scenarios, of seeds for which all of them have run."""
    limits = {name: each for name, each in limits_of(book, cell) if name in SCENARIOS}
    each: dict[int, Rows] = {}
    for scenario in SCENARIOS:
        for row in rows_of(book, cell, variant, scenario):
            each.setdefault(row["seed"], []).append(held_to(row, scenario, limits[scenario]))
    whole = {seed: rows for seed, rows in each.items() if len(rows) == len(SCENARIOS)}
    return {
        seed: {name: statistics.mean(row[name] for row in rows) for name in rows[0]} for seed, rows in whole.items()
    }


def excess_table(book: Book) -> str:
    """Frozen duals, and what moving ones change: excess, error of the strict task, of the others, of new tasks."""
    names = ("excess", "strict", "others", "new")
    heads = ["stream", "memory", "passes", "duals", "seeds", "mean excess", "strict task", "other past tasks"]
    lines = ["| " + " | ".join([*heads, "new tasks", "excess − frozen (paired 95 %)"]) + " |", "|---" * 10 + "|"]
    pooled: dict[tuple[str, str], dict[int, list[dict[str, float]]]] = {}
    for cell in cells_of(book):
        frozen = by_seed(book, cell, "frozen")
        for variant in VARIANTS:
            runs = by_seed(book, cell, variant)
            if not runs:
                continue
            gaps = [{name: run[name] - frozen[seed][name] for name in names} for seed, run in runs.items()]
            for seed, gap in zip(runs, gaps, strict=True):
                pooled.setdefault((cell[1], variant), {}).setdefault(seed, []).append(gap)
            cells = [f"{statistics.mean(run[name] for run in runs.values()):.1f}" for name in names]
            paired = "" if variant == "frozen" or len(gaps) < 2 else interval([gap["excess"] for gap in gaps])
            lines.append(f"| {' | '.join(map(str, cell))} | {variant} | {len(runs)} | {' | '.join(cells)} | {paired} |")
    lines += ["", "| memory | duals | seeds | cells | " + " | ".join(f"{name} − frozen" for name in names) + " |"]
    lines.append("|---" * 8 + "|")
    for (memory, variant), seeds in sorted(pooled.items()):
        most = max(map(len, seeds.values()))
        whole = [gaps for gaps in seeds.values() if len(gaps) == most]
        if variant == "frozen" or len(whole) < 2:
            continue
        means = [interval([statistics.mean(gap[name] for gap in gaps) for gaps in whole]) for name in names]
        lines.append(f"| {memory} | {variant} | {len(whole)} | {most} | {' | '.join(means)} |")
    return "\n".join(lines)


STATED = {"r + 10": "strict 1", "r − 2": "strict 3", "r − 10": "impossible"}


def response_table(book: Book) -> str:
    """The middle task's own test error, by the limit that was stated for it."""
    heads = ["stream", "memory", "passes", "r", "duals", *STATED, "dual at r − 10"]
    lines = [f"| {' | '.join(heads)} | r − 10 less r + 10 (paired 95 %) |", "|---" * 10 + "|"]
    pooled: dict[tuple[str, str], list[dict[int, float]]] = {}
    for cell, variant in product(cells_of(book), VARIANTS):
        found = {each: rows_of(book, cell, variant, scenario) for each, scenario in STATED.items()}
        if not all(found.values()):
            continue
        middle = middle_of(book, cell)
        cells = [f"{100 * statistics.mean(row['errors'][middle] for row in rows):.1f}" for rows in found.values()]
        duals = [row["duals"][middle] for row in found["r − 10"] if row["duals"]]
        last = f"{statistics.mean(duals):.2f}" if duals else ""
        r = f"{100 * dict(limits_of(book, cell))['all +0'][middle]:.1f}"
        gaps = steered(book, cell, variant) if variant != "frozen" else {}
        if len(gaps) > 1:
            pooled.setdefault((cell[1], variant), []).append(gaps)
        gap = interval(list(gaps.values())) if len(gaps) > 1 else ""
        lines.append(f"| {' | '.join(map(str, cell))} | {r} | {variant} | {' | '.join(cells)} | {last} | {gap} |")
    for (memory, variant), each in pooled.items():
        seeds = set.intersection(*map(set, each))
        gap = interval([statistics.mean(gaps[seed] for gaps in each) for seed in sorted(seeds)])
        lines.append(f"| mean of {len(each)} | {memory} | | | {variant} | | | | | {gap} |")
    return "\n".join(lines)


def middle_of(book: Book, cell: Cell) -> int:
    return (len(limits_of(book, cell)[0][1]) - 1) // 2


def steered(book: Book, cell: Cell, variant: str) -> dict[int, float]:
    """By seed, in points: the middle task's error with the strictest limit less that with the loosest."""
    middle = middle_of(book, cell)
    loose, strict = (
        {row["seed"]: 100 * row["errors"][middle] for row in rows_of(book, cell, variant, STATED[each])}
        for each in ("r + 10", "r − 10")
    )
    return {seed: strict[seed] - loose[seed] for seed in sorted(strict) if seed in loose}


def heart_table(book: Book) -> str:
    """Errors of past tasks with frozen duals: of the replayed samples, and of test data."""
    lines = ["| stream | memory | passes | seeds | stored | test | stored / test |", "|---" * 7 + "|"]
    for cell in cells_of(book):
        rows = rows_of(book, cell, "frozen")
        if rows:
            stored, test = (100 * statistics.mean(statistics.mean(row[name][:-1]) for row in rows)
                            for name in ("stored", "errors"))  # fmt: skip
            lines.append(
                f"| {' | '.join(map(str, cell))} | {len(rows)} | {stored:.1f} | {test:.1f} | {stored / test:.2f} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
