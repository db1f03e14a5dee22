"""Defaults on data that no part of this project was tried on before: nothing but `pdcl.run(stream, method, memory=N)`.

    pip install mnist1d sktime river
    python benchmarks/evidence/elsewhere.py --out runs/elsewhere           carry out what is missing
    python benchmarks/evidence/elsewhere.py --out runs/elsewhere --table   the table so far, as Markdown

letters, words and sections are made of Debian packages: see `from_debian.py` for what to install.

MNIST-1D: 4,000 short curves of ten kinds, 5 tasks. Japanese vowels: 270 recordings of nine speakers (12 cepstral
coefficients over time, cut or filled to 20 steps), 5 tasks. Test data as they come with the sets. Image segments: 2,310
outdoor regions of seven kinds by 18 features of colour and edges, 4 tasks, 700 of them for the test.
"""

from __future__ import annotations

import statistics
from functools import cache
from typing import Any

import from_debian
import numpy as np
from limits_kept import Book, command
from limits_page import interval

import pdcl

METHODS = ("pdcl", "er", "er-ring", "er-ace", "derpp")
MEMORIES = {
    "mnist1d": (100, 500),
    "vowels": (45, 90),
    "segments": (50, 200),
    "letters": (100, 400),
    "words": (100, 300),
    "sections": (200, 600),
}
TEST_SEGMENTS = 700
STEPS = 20


@cache
def stream(name: str) -> Any:
    own = {"mnist1d": curves, "vowels": vowels, "segments": segments}
    x, y, test = own[name]() if name in own else getattr(from_debian, name)()
    return pdcl.split(x, y, test=test, classes_per_task=2, name=name)


def curves() -> tuple[Any, Any, Any]:
    from mnist1d.data import get_dataset_args, make_dataset

    found = make_dataset(get_dataset_args())
    return found["x"].astype("float32"), found["y"], (found["x_test"].astype("float32"), found["y_test"])


def vowels() -> tuple[Any, Any, Any]:
    from sktime.datasets import load_japanese_vowels

    (x, y), test = (load_japanese_vowels(part, return_type="nested_univ") for part in ("train", "test"))
    return _steps(x), np.asarray(y), (_steps(test[0]), np.asarray(test[1]))


def segments() -> tuple[Any, Any, Any]:
    from river.datasets import ImageSegments

    samples = [([*features.values()], label) for features, label in ImageSegments()]
    x, y = np.array([row for row, _ in samples], dtype="float32"), np.array([label for _, label in samples])
    order = np.random.default_rng(0).permutation(len(x))
    test, own = order[:TEST_SEGMENTS], order[TEST_SEGMENTS:]
    return x[own], y[own], (x[test], y[test])


def _steps(table: Any) -> Any:
    """[samples, 12 · STEPS], zeros after the end of a recording."""
    filled = np.zeros((len(table), table.shape[1], STEPS), dtype="float32")
    for row, recording in enumerate(table.to_numpy()):
        for column, values in enumerate(recording):
            cut = np.asarray(values)[:STEPS]
            filled[row, column, : len(cut)] = cut
    return filled.reshape(len(table), -1)


def measure(book: Book, name: str, memory: int, method: str, seed: int) -> None:
    key = f"{name} {memory} {method} {seed}"
    if key not in book.known:
        found = pdcl.run(stream(name), method, memory=memory, seed=seed).accuracy["class_il"]
        new = statistics.mean(1 - scores[k] for k, scores in enumerate(found))
        book.add(key, stream=name, memory=memory, method=method, seed=seed, errors=[1 - a for a in found[-1]], new=new)


def table(book: Book) -> str:
    lines = ["| stream | memory | method | seeds | mean accuracy | right after learning | pdcl − it (paired 95 %) |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name, memories in MEMORIES.items():
        for memory in memories:
            own = [row for row in book.rows if (row["stream"], row["memory"]) == (name, memory)]
            scores = {(r["method"], r["seed"]): 100 - 100 * statistics.mean(r["errors"]) for r in own}
            for method in METHODS:
                rows = [row for row in own if row["method"] == method]
                seeds = [row["seed"] for row in rows if ("pdcl", row["seed"]) in scores]
                gaps = [scores["pdcl", seed] - scores[method, seed] for seed in seeds]
                cells = [
                    f"{statistics.mean(scores[method, row['seed']] for row in rows):.1f}",
                    f"{100 - 100 * statistics.mean(row['new'] for row in rows):.1f}",
                    interval(gaps) if method != "pdcl" and len(gaps) > 1 else "",
                ]
                lines.append(f"| {name} | {memory} | {method} | {len(rows)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def carry_out(book: Book, seeds: int) -> None:
    for seed in range(seeds):
        for name, memories in MEMORIES.items():
            for memory in memories:
                for method in METHODS:
                    measure(book, name, memory, method, seed)


if __name__ == "__main__":
    command(__doc__, "runs/elsewhere", 5, carry_out, table)
