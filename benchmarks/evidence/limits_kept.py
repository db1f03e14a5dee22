"""Limits kept: does a method keep each past task's test error within a limit that somebody states?

    python benchmarks/evidence/limits_kept.py --out runs/limits                                  ours and the rivals
    python benchmarks/evidence/limits_kept.py --out runs/limits --plugin mine.py --method mine   a method of your own
    python benchmarks/evidence/limits_kept.py --out runs/limits --method icarl gss xder          any others
    python benchmarks/evidence/limits_page.py runs/limits                                        tables so far

References r_k are the errors of `even` on held-out training data at the same memory, a mean over calibration seeds. The
limits are r_k + 0, + 2 and + 5 points for all tasks; one task at r_k − 2 with the others at r_k + 10, at three
positions; and one at r_k − 10, which can't be kept. Methods that know no limits run once per seed and are held to all
of them; `grid.py` has the rival who picks the best of nine runs. All numbers are on test data, at the end of the
stream. Every result is a line of results.jsonl: the same command again goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import pdcl
from pdcl.errors import LimitBroken
from pdcl.learning.placement import keep_freed_memory
from pdcl.methods.catalog import method as known_method
from pdcl.running.plugins import load_file

# name: stream, its options, memory, options of every method. Pixels of digits and mnist are taken as vectors: the
# network that `auto` has for those costs a fifth of the one for images, which pays for more seeds.
VECTORS = {"network": "mlp:256-256"}
STREAMS: dict[str, tuple[str, dict[str, Any], int, dict[str, Any]]] = {
    "digits": ("digits", {}, 100, VECTORS),
    "mnist": ("mnist", {"per_class": 300}, 300, VECTORS),
    "mnist-2000": ("mnist", {"per_class": 1000}, 2000, VECTORS),
    "digits-images": ("digits", {}, 100, {}),
    "mnist-images": ("mnist", {"per_class": 120}, 100, {}),
    "banking77": ("banking77", {}, 770, {}),
    "organa": ("organa", {"per_class": 60}, 100, {}),
    "speech": ("speech", {"per_class": 75}, 100, {}),
}
LIMITED = ("pdcl", "pdcl0", "pdcl-s")
RIVALS = ("even", "er", "er-ring", "er-ace", "derpp")
CALIBRATION = (100, 101, 102)
LEAST = 0.005
Table = Callable[["Book"], str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/limits"))
    parser.add_argument("--streams", nargs="*", default=list(STREAMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--method", nargs="*", default=["pdcl", *RIVALS])
    parser.add_argument("--plugin", type=Path)
    parser.add_argument("--option", nargs="*", default=[], help="name=value, in JSON, for every method")
    parser.add_argument("--label", help="what tables call a method with options")
    parser.add_argument("--scenarios", nargs="*")
    asked = parser.parse_args()
    if asked.plugin is not None:
        load_file(asked.plugin)
    settle()
    warnings.simplefilter("ignore", LimitBroken)
    book = Book(asked.out)
    options = {name: json.loads(value) for name, _, value in (each.partition("=") for each in asked.option)}
    for stream in asked.streams:
        references = calibrated(book, stream)
        for seed in range(asked.seeds):
            for name in asked.method:
                for job in jobs(stream, references, name, asked.label or name, options, asked.scenarios):
                    measure(book, stream, seed, **job)


def settle() -> None:
    """For a process that does nothing but runs: one thread, freed memory used again."""
    torch.set_num_threads(1)
    keep_freed_memory()


class Book:
    """Results so far: one JSON object a line, found by its `key`."""

    def __init__(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.file = place / "results.jsonl"
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self.known = {row["key"] for row in self.rows}

    def add(self, key: str, **row: Any) -> None:
        row |= {"key": key, "processor": torch.backends.cpu.get_cpu_capability()}
        self.rows.append(row)
        self.known.add(key)
        with self.file.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(key, f"{row['errors'][-1]:.3f} last, {statistics.mean(row['errors']):.3f} mean", flush=True)


def command(document: str | None, place: str, seeds: int, carry_out: Callable[[Book, int], None], table: Table) -> None:
    """The command line of a study: carry out what is missing in --out, or show --table."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(place))
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    settle()
    warnings.simplefilter("ignore")
    book = Book(asked.out)
    if asked.table:
        print(table(book))
    else:
        carry_out(book, asked.seeds)


def loaded(name: str, held_out: bool) -> Any:
    stream, options, _, _ = STREAMS[name]
    return pdcl.stream(stream, **options, **({"held_out": 0.2} if held_out else {}))


def run(name: str, data: Any, method: str, seed: int, **options: Any) -> Any:
    _, _, memory, own = STREAMS[name]
    held = {"memory": memory} if known_method(method).uses_memory else {}
    return pdcl.run(data, method, preset="auto", seed=seed, **held, **own, **options)


def errors_of(result: Any) -> list[float]:
    return [1 - score for score in result.accuracy["class_il"][-1]]


def calibrated(book: Book, stream: str) -> list[float]:
    """r_k: the mean error of `even` on held-out data."""
    for seed in CALIBRATION:
        key = f"{stream} reference {seed}"
        if key not in book.known:
            result = run(stream, loaded(stream, True), "even", seed)
            book.add(key, stream=stream, kind="reference", errors=errors_of(result))
    return references_of(book.rows, stream)


def references_of(rows: list[dict[str, Any]], stream: str) -> list[float]:
    found = [row["errors"] for row in rows if row["stream"] == stream and row["kind"] == "reference"]
    return [statistics.mean(column) for column in zip(*found, strict=True)]


def scenarios(references: list[float]) -> Iterator[tuple[str, list[float]]]:
    """A name and the limits of all tasks."""
    last = len(references) - 1
    found = {f"all +{points}": [r + points / 100 for r in references] for points in (0, 2, 5)}
    for place in (0, last // 2, last - 1):
        found[f"strict {place + 1}"] = [r - 0.02 if k == place else r + 0.1 for k, r in enumerate(references)]
    found["impossible"] = [r - 0.1 if k == last // 2 else r + 0.1 for k, r in enumerate(references)]
    for name, limits in found.items():
        yield name, [max(LEAST, limit) for limit in limits]


def jobs(
    stream: str, references: list[float], name: str, label: str, options: dict[str, Any], only: list[str] | None
) -> Iterator[dict[str, Any]]:
    """What a method has to run for one seed: what `measure` takes."""
    wanted = [(scenario, limits) for scenario, limits in scenarios(references) if not only or scenario in only]
    if name in LIMITED:
        for scenario, limits in wanted:
            yield {"method": name, "label": label, "scenario": scenario, "limits": limits, "options": options}
    else:
        yield {"method": name, "label": label, "scenario": None, "limits": None, "options": options}


def measure(
    book: Book, stream: str, seed: int, method: str, label: str, scenario: str | None, limits: Any, options: Any
) -> None:
    key = " ".join([stream, label, str(seed), *([scenario] if scenario else [])])
    if key in book.known:
        return
    data, stated = loaded(stream, False), {}
    if limits is not None:
        stated = {
            "tolerance": {task.name: f"{100 * limit:.2f}%" for task, limit in zip(data.tasks, limits, strict=True)}
        }
    result = run(stream, data, method, seed, **stated, **options)
    kind = {} if scenario is None else {"scenario": scenario}
    book.add(key, stream=stream, kind="limited" if kind else "free", method=label, seed=seed, **kind, **found(result))


def found(result: Any) -> dict[str, Any]:
    """Errors at the end, errors right after learning, n_k, and what the table of promises said of past tasks."""
    new = [1 - row[k] for k, row in enumerate(result.accuracy["class_il"])]
    rows = [row for row in getattr(result.learner, "promises", None) or () if row.kind == "task"]
    held = result.partitions[-1] if result.partitions else []
    said = {row.task: [row.verdict, row.samples, row.low, row.high] for row in rows}
    return {"errors": errors_of(result), "new": statistics.mean(new), "held": held, "said": said}


if __name__ == "__main__":
    main()
