"""The default, searched for by a protocol that was written down first.

    python benchmarks/evidence/auto_search.py --out runs/auto           carry out what is missing
    python benchmarks/evidence/auto_search.py --out runs/auto --table   the tables so far, as Markdown

Thirteen configurations of `even`: the default of before the search, with drift .3; eleven that differ from it in one
option; and one that came later, when the search had shown where it loses. Ten streams, four of them derived; many tasks
and few; a small memory and a larger one; a quarter of the training data held out to judge by, and no test data at all.
Regret is what a configuration has less than the best of a cell (points of mean accuracy, the mean over seeds). Then
those from before, the one that was chosen and two rivals are tried once on four streams that the search did not see.
Every result is a line of results.jsonl.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from limits_kept import Book, command
from limits_page import interval

import pdcl

BEFORE, LIGHTER, CHOSEN = "before", "drift 0.1", "drift 0.1, softened"
CHANGES: dict[str, dict[str, Any]] = {
    BEFORE: {},
    "drift 0": {"drift": 0.0},
    LIGHTER: {"drift": 0.1},
    "drift 1": {"drift": 1.0},
    "base 0.3": {"base": 0.3},
    "past at most 1 ×": {"base_most": 1.0},
    "past at most 2 ×": {"base_most": 2.0},
    "past without bound": {"base_most": 1e9},
    "lr 0.0003": {"lr": 0.0003},
    "lr 0.003": {"lr": 0.003},
    "optimiser anew each task": {"keep_optimizer": False},
    "classes not balanced": {"balance": False},
    CHOSEN: {"drift": 0.1, "soften": 0.6},
}
CONFIGURATIONS = {label: {"drift": 0.3, "soften": 0.0, **change} for label, change in CHANGES.items()}
# name: source, its options, what is derived from it
SEARCHED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "digits": ("digits", {}, {}),
    "mnist": ("mnist", {"per_class": 120}, {}),
    "organa": ("organa", {"per_class": 60}, {}),
    "speech": ("speech", {"per_class": 60}, {}),
    "banking77": ("banking77", {"per_class": 30}, {}),
    "synthetic": ("synthetic", {}, {}),
    "digits, permuted": ("digits", {"per_class": 40}, {"permuted": True}),
    "mnist, 10 % wrong labels": ("mnist", {"per_class": 120}, {"noise": 0.1}),
    "digits, unbalanced": ("digits", {}, {"unbalanced": 8.0}),
    "mnist, blurred": ("mnist", {"per_class": 120}, {"blurry": 0.2}),
}
KEPT_OUT: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "organa, rotated": ("organa", {"per_class": 60}, {"rotated": 20.0}),
    "digits, 10 % wrong labels": ("digits", {}, {"noise": 0.1}),
    "speech, unbalanced": ("speech", {"per_class": 100}, {"unbalanced": 5.0}),
    "banking77, blurred": ("banking77", {"per_class": 60}, {"blurry": 0.2}),
}
KEPT_OUT_SEEDS = (0, 1, 2, 3, 4)
VECTORS = ("digits", "mnist")
Cell = tuple[str, int, int]


@cache
def samples(source: str, options: tuple[tuple[str, Any], ...]) -> tuple[Any, Any, dict[str, Any]]:
    """Training inputs and labels of all tasks together, without a quarter, and what `split` takes."""
    loaded = pdcl.stream(source, **dict(options))
    parts = [task.data.fetch(torch.arange(len(task.data))) for task in loaded.tasks]
    x, y = (torch.cat(column) for column in zip(*parts, strict=True))
    if source in VECTORS:
        x = x.flatten(1)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    held, own = order[: len(x) // 4], order[len(x) // 4 :]
    test = (x[held].numpy(), y[held].numpy())
    return x[own].numpy(), y[own].numpy(), {"test": test, "transform": loaded.spec.transform, "name": source}


@cache
def stream(name: str, tasks: int) -> Any:
    source, options, derived = (SEARCHED | KEPT_OUT)[name]
    x, y, given = samples(source, tuple(options.items()))
    classes = len(set(y.tolist()))
    if "permuted" in derived or "rotated" in derived:
        one = pdcl.split(x, y, classes_per_task=classes, **given)
        return one.derive(domains=tasks, **derived)
    found = pdcl.split(x, y, classes_per_task=-(-classes // tasks), **given)
    return found.derive(**derived) if derived else found


def cells() -> Iterator[Cell]:
    """A stream, few tasks and many, and a memory of 5 or 20 (banking77: 3 or 10) samples a class."""
    for name, (source, _, derived) in SEARCHED.items():
        within_tasks = {"noise", "unbalanced", "blurry"} & derived.keys()
        for tasks in (2, 5) if within_tasks else (3, 10):
            for memory in (231, 770) if source == "banking77" else (50, 200):
                yield name, tasks, memory


def measure(book: Book, kind: str, cell: Cell, label: str, method: str, options: dict[str, Any], seed: int) -> None:
    name, tasks, memory = cell
    key = f"{kind} {name} {tasks} {memory} {label} {seed}"
    if key in book.known:
        return
    own = {"network": "mlp:256-256"} if (SEARCHED | KEPT_OUT)[name][0] in VECTORS else {}
    result = pdcl.run(stream(name, tasks), method, preset="auto", memory=memory, seed=seed, **own, **options)
    found = result.accuracy["class_il"]
    new = [1 - scores[k] for k, scores in enumerate(found)]
    errors = [1 - score for score in found[-1]]
    book.add(key, kind=kind, cell=cell, label=label, seed=seed, errors=errors, new=statistics.mean(new))


def means(book: Book, kind: str) -> dict[tuple[Any, ...], dict[str, dict[int, float]]]:
    """Mean accuracy in percent, by cell, label and seed."""
    found: dict[tuple[Any, ...], dict[str, dict[int, float]]] = {}
    for row in book.rows:
        if row["kind"] == kind:
            own = found.setdefault(tuple(row["cell"]), {}).setdefault(row["label"], {})
            own[row["seed"]] = 100 - 100 * statistics.mean(row["errors"])
    return found


def regrets(book: Book) -> dict[str, dict[Cell, float]]:
    """How far each configuration is below the best of a cell, over the seeds that all of them have there."""
    found: dict[str, dict[Cell, float]] = {label: {} for label in CONFIGURATIONS}
    searched = means(book, "search")
    run = [label for label in CONFIGURATIONS if any(label in by_label for by_label in searched.values())]
    for cell, by_label in searched.items():
        seeds = set.intersection(*(set(by_label.get(label, {})) for label in run))
        if seeds:
            mean = {label: statistics.mean(by_label[label][seed] for seed in seeds) for label in run}
            for label in run:
                found[label][cell] = max(mean.values()) - mean[label]
    return found


def carry_out(book: Book, seeds: int) -> None:
    for seed in range(seeds):
        for cell in cells():
            for label, options in CONFIGURATIONS.items():
                measure(book, "search", cell, label, "even", options, seed)
    tried = {label: ("even", CONFIGURATIONS[label]) for label in (BEFORE, LIGHTER, CHOSEN)}
    tried |= {rival: (rival, {}) for rival in ("er", "derpp")}
    for seed in KEPT_OUT_SEEDS:
        for name in KEPT_OUT:
            for label, (method, options) in tried.items():
                memory = 385 if name.startswith("banking77") else 100
                measure(book, "kept out", (name, 5, memory), label, method, options, seed)


def table(book: Book) -> str:
    found = regrets(book)
    lines = ["| configuration | largest regret | in | mean regret | right after learning |", "|---|---|---|---|---|"]
    for label in sorted(CONFIGURATIONS, key=lambda each: max(found[each].values(), default=0.0)):
        own = found[label]
        if own:
            worst = max(own, key=lambda cell: own[cell])
            news = [row["new"] for row in book.rows if row["label"] == label and tuple(row["cell"]) in own]
            where = f"{worst[0]}, {worst[1]} tasks, memory {worst[2]}"
            cells_of = [f"{own[worst]:.1f}", where, f"{statistics.mean(own.values()):.2f}"]
            lines.append(f"| {label} | {' | '.join(cells_of)} | {100 - 100 * statistics.mean(news):.1f} |")
    runs = sum(row["kind"] == "search" for row in book.rows)
    lines += ["", f"{len(found[BEFORE])} cells, {runs} runs.", ""]
    lines += ["| kept out | method | seeds | mean accuracy | newest − it (paired 95 %) |", "|---|---|---|---|---|"]
    for cell, by_label in means(book, "kept out").items():
        newest = CHOSEN if CHOSEN in by_label else LIGHTER
        base = by_label.get(newest, {})
        for label, own_seeds in by_label.items():
            gaps = [base[seed] - value for seed, value in own_seeds.items() if seed in base]
            paired = interval(gaps) if label != newest and len(gaps) > 1 else ""
            mean = statistics.mean(own_seeds.values())
            lines.append(f"| {cell[0]} | {label} | {len(own_seeds)} | {mean:.1f} | {paired} |")
    return "\n".join(lines)


if __name__ == "__main__":
    command(__doc__, "runs/auto", 1, carry_out, table)
