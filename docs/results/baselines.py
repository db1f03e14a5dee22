"""The table of `baselines.md`, from the records of `pdcl study baselines`.

python docs/results/baselines.py runs/baselines
"""

from __future__ import annotations

import statistics
import sys

from pdcl.records.table import Row, scan

# Class-IL and task-IL in percent, means of ten runs: Buzzega et al., "Dark Experience for General Continual Learning",
# NeurIPS 2020, table 2 (S-MNIST). Memory 0: methods that have none.
PUBLISHED = {
    ("joint", 0): (95.57, 99.51),
    ("finetune", 0): (19.60, 94.94),
    ("ewc", 0): (20.46, 98.39),
    ("si", 0): (19.27, 96.00),
    ("lwf", 0): (19.62, 94.11),
    ("er", 200): (80.43, 97.86),
    ("er", 500): (86.12, 99.04),
    ("gem", 200): (80.11, 97.78),
    ("gem", 500): (85.99, 98.71),
    ("agem", 200): (45.72, 98.61),
    ("agem", 500): (46.66, 98.93),
    ("gss", 200): (38.90, 95.02),
    ("gss", 500): (49.76, 97.71),
    ("icarl", 200): (70.51, 98.28),
    ("icarl", 500): (70.10, 98.32),
    ("der", 200): (84.55, 98.80),
    ("der", 500): (90.54, 98.84),
    ("derpp", 200): (85.61, 98.76),
    ("derpp", 500): (91.00, 98.94),
}
ORDER = (
    "finetune", "joint", "ewc", "si", "lwf", "er", "er-ring", "er-ace", "agem", "agem-fixed", "agem-batch", "gem",
    "gem-fixed", "gss", "gss-batch", "icarl", "der", "derpp", "xder", "pdcl0", "pdcl", "pdcl-s",
)  # fmt: skip
HEAD = "| method | memory | class-IL % | published | off by | task-IL % | published | seeds |"


def line(label: str, memory: int, rows: list[Row]) -> str:
    """One row of the table: mean ± standard deviation over seeds."""
    class_il, task_il = ([100 * value for value in column] for column in _columns(rows))
    known = PUBLISHED.get((label.removesuffix("-fixed").removesuffix("-batch"), memory))
    off = f"{statistics.mean(class_il) - known[0]:+.1f}" if known else ""
    theirs = [f"{value:.2f}" for value in known] if known else ["", ""]
    cells = [label, str(memory or "–"), _spread(class_il), theirs[0], off, _spread(task_il), theirs[1], str(len(rows))]
    return "| " + " | ".join(cells) + " |"


def _columns(rows: list[Row]) -> tuple[list[float], list[float]]:
    return [row.mean_accuracy for row in rows], [row.task_il for row in rows]


def _spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


def main(directory: str) -> None:
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in scan(directory):
        groups.setdefault((row.label, int(row.memory or 0)), []).append(row)
    print(HEAD)
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for label, memory in sorted(groups, key=lambda group: (ORDER.index(group[0]), group[1])):
        print(line(label, memory, groups[label, memory]))


if __name__ == "__main__":
    main(sys.argv[1])
