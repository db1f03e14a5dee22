"""Nine runs instead of a stated limit: `even` with a strict task's memory and weight turned up by hand.

    python benchmarks/evidence/grid.py --out runs/grid --limits runs/limits --streams digits mnist --seeds 10
    python benchmarks/evidence/grid.py --out runs/grid --limits runs/limits --table

Streams, references and limits are those of `limits_kept.py`. For every setting with one strict task nine configurations
are tried on held-out training data, with the calibration seeds; the one with the least mean excess is run on test data
and held against `pdcl`, which is told the limits and runs once. Every result is a line of results.jsonl: the same
command again goes on where it stopped.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from dataclasses import dataclass
from pathlib import Path

from limits_kept import CALIBRATION, Book, calibrated, errors_of, found, loaded, run, scenarios, settle
from limits_page import held_to, interval

import pdcl
from pdcl.algorithm.constraints import base_weight
from pdcl.algorithm.partition import affine_partition
from pdcl.streams.task import Task

# Times the memory and times the weight of any other past task.
NINE = [(1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (1, 4), (1, 8), (2, 2), (4, 4)]


@pdcl.register_rule("partition", "favour")
@dataclass(frozen=True)
class Favour(pdcl.PartitionRule):
    """One task gets `times` the places of any other."""

    task: int = 0
    times: float = 1.0

    def counts(self, duals: list[float], capacity: int, available: list[int]) -> list[int]:
        weights = [self.times if k == self.task else 1.0 for k in range(len(duals))]
        return affine_partition(weights, capacity, 1.0, available)


@pdcl.register("favouring", summary="even, with one past task that weighs more", defaults={"dual": "frozen"})
@dataclass(eq=False)
class Favouring(pdcl.PDCL):
    """`even` with one task that weighs more than the other past ones.

    favoured: its number
    times: how much more
    """

    favoured: int = 0
    times: float = 1.0

    def begin(self, task: Task, steps: int) -> None:
        super().begin(task, steps)
        core = self.core
        if self.favoured < core.past_tasks:
            base = base_weight(self.base, self.base_most, core.past_tasks)
            core.algorithm.duals.values[self.favoured] = (self.times - 1) * base
            core.algorithm.weigh()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/grid"))
    parser.add_argument("--limits", type=Path, default=Path("runs/limits"))
    parser.add_argument("--streams", nargs="*", default=["digits", "mnist"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    settle()
    warnings.simplefilter("ignore")
    book, limits = Book(asked.out), Book(asked.limits)
    if asked.table:
        print(table(book, limits))
        return
    for stream in asked.streams:
        references = calibrated(limits, stream)
        for scenario, stated in strict_ones(references):
            place = position(scenario, references)
            for nine in NINE:
                for seed in CALIBRATION:
                    measure(book, stream, place, nine, seed, held_out=True)
            best = chosen(book, stream, place, stated)
            for seed in range(asked.seeds):
                measure(book, stream, place, best, seed, held_out=False)


def strict_ones(references: list[float]) -> list[tuple[str, list[float]]]:
    return [(name, limits) for name, limits in scenarios(references) if not name.startswith("all")]


def position(scenario: str, references: list[float]) -> int:
    """The number of the strict task."""
    return (len(references) - 1) // 2 if scenario == "impossible" else int(scenario.split()[1]) - 1


def measure(book: Book, stream: str, place: int, nine: tuple[int, int], seed: int, held_out: bool) -> None:
    memory, weight = nine
    key = f"{stream} {place} {memory} {weight} {seed} {'held out' if held_out else 'test'}"
    if key in book.known:
        return
    favour = {"partition": f"favour:task={place},times={memory}", "favoured": place, "times": float(weight)}
    result = run(stream, loaded(stream, held_out), "favouring", seed, **favour)
    own = {"errors": errors_of(result)} if held_out else found(result)
    book.add(key, stream=stream, place=place, nine=[memory, weight], seed=seed, held_out=held_out, **own)


def chosen(book: Book, stream: str, place: int, stated: list[float]) -> tuple[int, int]:
    """The configuration with the least mean excess on held-out data; the first of those that are alike."""
    tried = {nine: _excess_of(book, stream, place, nine, stated, held_out=True) for nine in NINE}
    return min(NINE, key=lambda nine: statistics.mean(tried[nine].values()))


def _excess_of(
    book: Book, stream: str, place: int, nine: tuple[int, int], stated: list[float], held_out: bool
) -> dict[int, float]:
    own = [
        row for row in book.rows
        if (row["stream"], row["place"], tuple(row["nine"]), row["held_out"]) == (stream, place, nine, held_out)
    ]  # fmt: skip
    return {row["seed"]: held_to({"new": 0.0, **row}, stated)["mean"] for row in own}


def table(book: Book, limits: Book) -> str:
    heads = "stream", "limits", "chosen: memory, weight", "seeds", "even", "nine runs", "pdcl", "pdcl − nine runs"
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for stream in dict.fromkeys(row["stream"] for row in book.rows):
        references = calibrated(limits, stream)
        rows = []
        for scenario, stated in strict_ones(references):
            place = position(scenario, references)
            tried = {tuple(row["nine"]) for row in book.rows if (row["stream"], row["place"]) == (stream, place)}
            if len(tried) < len(NINE):
                continue
            best = chosen(book, stream, place, stated)
            nine = _excess_of(book, stream, place, best, stated, held_out=False)
            even, ours = (
                {row["seed"]: held_to(row, stated)["mean"] for row in limits.rows
                 if (row["stream"], row.get("method")) == (stream, name) and row.get("scenario", scenario) == scenario}
                for name in ("even", "pdcl")
            )  # fmt: skip
            if seeds := sorted(set(nine) & set(even) & set(ours)):
                sides = [[each[s] for s in seeds] for each in (even, nine, ours)]
                rows.append((scenario, f"× {best[0]}, × {best[1]}", sides))
        lines += [_line(stream, *row) for row in rows]
        whole = [[statistics.mean(part) for part in zip(*side, strict=True)]
                 for side in zip(*(row[2] for row in rows), strict=True)]  # fmt: skip
        lines.append(_line(stream, f"these {len(rows)} together", "", whole))
    return "\n".join(lines)


def _line(stream: str, scenario: str, best: str, sides: list[list[float]]) -> str:
    even, nine, ours = sides
    gaps = [own - other for own, other in zip(ours, nine, strict=True)]
    means = " | ".join(f"{statistics.mean(side):.2f}" for side in sides)
    return f"| {stream} | {scenario} | {best} | {len(even)} | {means} | {interval(gaps) if len(gaps) > 1 else ''} |"


if __name__ == "__main__":
    main()
