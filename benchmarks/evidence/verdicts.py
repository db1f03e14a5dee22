"""Are verdicts true where there are witnesses enough to decide? Tables of promises against all test data.

    python benchmarks/evidence/verdicts.py --out runs/verdicts
    python benchmarks/evidence/verdicts.py --out runs/verdicts --table

mnist with 1,000 images a class, memory 2,000, of which witnesses take half (200 a task). The same limit for all tasks:
an error rate of 3, 6, 10 or 15 %, or 1, 3, 6 or 10 points more than a task had. Every limit is looked at once, at the
end of the stream, on past tasks. Every result is a line of results.jsonl.
"""

from __future__ import annotations

import statistics
from typing import Any

from limits_kept import Book, command, errors_of, loaded, run

STREAM = "mnist-2000"
WITNESSES = 200
LIMITS = ("3%", "6%", "10%", "15%", "+1pt", "+3pt", "+6pt", "+10pt")
Row = dict[str, Any]


def carry_out(book: Book, seeds: int) -> None:
    data = loaded(STREAM, held_out=False)
    for seed in range(seeds):
        for limit in LIMITS:
            if (key := f"{limit} {seed}") not in book.known:
                result = run(STREAM, data, "pdcl", seed, tolerance=limit, witness=WITNESSES)
                then = [1 - row[k] for k, row in enumerate(result.accuracy["class_il"])]
                said = [row.as_json() for row in result.promises if row.kind == "task"]
                book.add(key, limit=limit, seed=seed, then=then, errors=errors_of(result), said=said)


def judged(row: Row) -> list[Row]:
    """Each row of a table beside the truth: the test error, or, for rises, its change since the task was learned."""
    rises, stated = row["limit"].startswith("+"), float(row["limit"].strip("+%pt")) / 100
    found = []
    for said, then, now in zip(row["said"], row["then"], row["errors"], strict=False):
        from_then = said["then"] if rises else 0.0
        low, high = said["low"] - from_then, said["high"] - from_then
        true = now - then if rises else now
        held = low <= true <= high
        found.append({"verdict": said["verdict"], "samples": said["samples"], "held": held, "over": true > stated})
    return found


def table(book: Book) -> str:
    heads = ("limit", "tables", "rows", "witnesses", "intervals that hold the truth", "tables in which all do", "kept")
    heads += ("false kept", "BROKEN", "false BROKEN", "undecided", "really over")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for limit in (*LIMITS, None):
        tables = [judged(row) for row in book.rows if limit is None or row["limit"] == limit]
        if tables:
            lines.append(f"| {limit or 'all together'} | {' | '.join(_cells(tables))} |")
    return "\n".join(lines)


def _cells(tables: list[list[Row]]) -> list[str]:
    rows = [row for each in tables for row in each]
    kept, broken = ([row for row in rows if row["verdict"] == name] for name in ("kept", "BROKEN"))
    numbers = [
        len(tables), len(rows), round(statistics.mean(row["samples"] for row in rows)),
        sum(row["held"] for row in rows), sum(all(row["held"] for row in each) for each in tables),
        len(kept), sum(row["over"] for row in kept), len(broken), sum(not row["over"] for row in broken),
        len(rows) - len(kept) - len(broken), sum(row["over"] for row in rows),
    ]  # fmt: skip
    return [str(number) for number in numbers]


if __name__ == "__main__":
    command(__doc__, "runs/verdicts", 5, carry_out, table)
