"""Tables of docs/results/exact.md that stand by themselves: ablations, small tables, growth."""

from __future__ import annotations

from statistics import mean

from exact_tables import ABLATIONS, GROWTH, SMALL, percent, table


def ablation_tables() -> str:
    kinds = sorted({row["kind"] for row in ABLATIONS if "accuracy" in row})
    streams = sorted({row["stream"] for row in ABLATIONS})
    grid = []
    for kind in kinds:
        cells = [
            [row["accuracy"] for row in ABLATIONS if (row["stream"], row["kind"]) == (name, kind)] for name in streams
        ]
        title = "as it is: lda, ρ by cross-validation" if kind == "chosen" else kind
        grid.append([title, *(f"{100 * mean(each):.1f}" if each else "–" for each in cells)])
    changed = []
    for kind in ("rare", "unbalanced", "recurring"):
        for name in streams:
            rows = [row for row in ABLATIONS if (row["stream"], row["kind"]) == (name, kind)]
            if rows:
                methods = ("exact", "exact-plain", "slda", "joint")
                cells = [percent([row[m]["mean"] for row in rows]) for m in methods]
                recalls = [percent([row[m]["recall"] for row in rows]) if kind == "rare" else "" for m in methods]
                changed.append(
                    [kind, name, *(f"{c}{' · ' + r if r else ''}" for c, r in zip(cells, recalls, strict=True))]
                )
    heads = ["stream is", "", "exact", "all samples alike", "slda", "joint, classes balanced"]
    return f"{table(heads, changed)}\n\n{table(['head and ρ', *streams], grid)}"


def growth_table() -> str:
    rows = [
        [
            row["axis"],
            f"{row['value']:,}",
            f"{row['tasks']:,}",
            f"{row['learning']:.1f}",
            f"{1000 * row['early_task']:.0f}",
            f"{1000 * row['last_task']:.0f}",
            f"{row['bytes'] / 1e6:.2f}",
            f"{row['peak_mb']:,}",
        ]
        for row in GROWTH
    ]
    heads = [
        "axis",
        "value",
        "tasks",
        "CPU s",
        "ms an early task",
        "ms a late task",
        "MB kept",
        "MB peak of the process",
    ]
    return table(heads, rows)


def largest(axis: str) -> str:
    return f"{max(row['value'] for row in GROWTH if row['axis'].startswith(axis)):,}"


def doubled(d: int) -> str:
    """How many times the CPU time of half as many features."""
    taken = {row["value"]: row["learning"] for row in GROWTH if row["axis"] == "d"}
    return f"{taken[d] / taken[d // 2]:.1f}"


def task_times(axis: str) -> str:
    """What an early and a late task take on the longest run."""
    row = max((row for row in GROWTH if row["axis"] == axis), key=lambda row: row["value"])
    early, late = (f"{1000 * row[name]:.0f}" for name in ("early_task", "last_task"))
    return f"{early} ms at first and {late} ms after {row['value']:,} tasks"


def small_table() -> str:
    """Means over seeds, of each table and size."""
    rows = []
    for name, samples in dict.fromkeys((row["stream"], row["samples"]) for row in SMALL):
        some = [row for row in SMALL if (row["stream"], row["samples"]) == (name, samples)]
        errors = [f"{mean(row[each] for row in some):.1f}" for each in ("exact", "best", "rival")]
        rows.append([name, str(samples), str(len(some)), *errors])
    return table(["table", "samples", "seeds", "exact", "best ρ by test", "scikit-learn, all at once"], rows)


def rare_gaps() -> list[tuple[str, float]]:
    """By stream: recall of the rare class less that of joint training, in points."""
    rows = [row for row in ABLATIONS if row["kind"] == "rare"]
    names = sorted({row["stream"] for row in rows})
    gap = {name: [r["exact"]["recall"] - r["joint"]["recall"] for r in rows if r["stream"] == name] for name in names}
    return [(name, 100 * mean(gap[name])) for name in names]
