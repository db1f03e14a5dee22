"""Limits as points above what a task had: one past task may rise by 1 point, the others by 10.

    python benchmarks/evidence/rises.py --out runs/rises --seeds 10
    python benchmarks/evidence/rises.py --out runs/rises --table

Streams, memories and networks are those of `limits_kept.py`. A limit is `+1pt` for one task and `+10pt` for the others,
at three positions, or `+2pt` for all. Excess: test error at the end, minus test error right after the task was learned,
minus the points it may rise; 0 where that is negative; mean over past tasks. `even` is told nothing and runs once per
seed. Every result is a line of results.jsonl: the same command again goes on where it stopped.
"""

from __future__ import annotations

import statistics
from typing import Any

from limits_kept import Book, command, errors_of, loaded, run
from limits_page import interval

STREAMS = ("digits", "mnist", "banking77")
STRICT, LOOSE, SAME = 1, 10, 2
Row = dict[str, Any]


def settings(tasks: int) -> dict[str, list[int]]:
    """By name: the points that each task may rise by."""
    found = {f"all +{SAME}pt": [SAME] * tasks}
    for place in (0, (tasks - 1) // 2, tasks - 2):
        found[f"task {place + 1} +{STRICT}pt"] = [STRICT if k == place else LOOSE for k in range(tasks)]
    return found


def carry_out(book: Book, seeds: int) -> None:
    for name in STREAMS:
        data = loaded(name, held_out=False)
        wanted = settings(len(data.tasks))
        for seed in range(seeds):
            measure(book, name, data, "even", seed, None, {})
            for setting, points in wanted.items():
                stated = {task.name: f"+{rise}pt" for task, rise in zip(data.tasks, points, strict=True)}
                measure(book, name, data, "pdcl", seed, setting, {"tolerance": stated})


def measure(book: Book, name: str, data: Any, method: str, seed: int, setting: str | None, options: Row) -> None:
    key = f"{name} {method} {seed} {setting}"
    if key not in book.known:
        result = run(name, data, method, seed, **options)
        then = [1 - row[k] for k, row in enumerate(result.accuracy["class_il"])]
        own = {"then": then, "errors": errors_of(result), "held": result.partitions[-1]}
        book.add(key, stream=name, method=method, seed=seed, setting=setting, **own)


def excess(row: Row, points: list[int]) -> float:
    """Mean over past tasks of what they rose by beyond their limit, in points."""
    rises = [100 * (now - then) for now, then in zip(row["errors"], row["then"], strict=True)]
    return statistics.mean(max(0.0, rise - most) for rise, most in zip(rises[:-1], points[:-1], strict=True))


def table(book: Book) -> str:
    heads = "stream", "limits", "seeds", "excess: even", "pdcl", "pdcl − even (paired 95 %)"
    heads += "strict task's error: even", "pdcl", "its places of memory", "new-task error: even", "pdcl"
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for stream in dict.fromkeys(row["stream"] for row in book.rows):
        own = [row for row in book.rows if row["stream"] == stream]
        even = {row["seed"]: row for row in own if row["method"] == "even"}
        for setting, points in settings(len(own[0]["errors"])).items():
            told = {row["seed"]: row for row in own if row["setting"] == setting and row["seed"] in even}
            if len(told) > 1:
                lines.append(_line(stream, setting, points, [even[seed] for seed in told], [*told.values()]))
    return "\n".join(lines)


def _line(stream: str, setting: str, points: list[int], even: list[Row], told: list[Row]) -> str:
    sides = [[excess(row, points) for row in rows] for rows in (even, told)]
    gaps = [own - other for other, own in zip(*sides, strict=True)]
    cells = [stream, setting, str(len(told)), *(f"{statistics.mean(side):.2f}" for side in sides), interval(gaps)]
    if STRICT in points:
        place = points.index(STRICT)
        cells += [f"{100 * statistics.mean(row['errors'][place] for row in rows):.1f}" for rows in (even, told)]
        cells.append(f"{statistics.mean(row['held'][place] / sum(row['held']) for row in told):.0%}")
    else:
        cells += ["", "", ""]
    cells += [f"{100 * statistics.mean(statistics.mean(row['then']) for row in rows):.1f}" for rows in (even, told)]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    command(__doc__, "runs/rises", 10, carry_out, table)
