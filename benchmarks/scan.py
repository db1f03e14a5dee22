"""What a table of thousands of runs costs, against reading and parsing the same files and nothing else.

python benchmarks/scan.py [RUNS]
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pdcl.lab.comparing import group
from pdcl.records import Record, run_name, scan

TASKS = 10


def fill(out: Path, runs: int) -> None:
    """Records as a study of ten tasks leaves them, with options as many as a real method has."""
    draw = random.Random(0)
    options = {f"option_{k}": {"value": k / 100, "source": "preset"} for k in range(25)}
    for number in range(runs):
        method, seed = f"method{number // 50}", number % 50
        config = {
            "stream": "fake", "stream_options": {}, "method": method, "preset": "tuned", "memory": 500, "seed": seed,
            "options": options, "versions": {"pdcl": "0"}, "data": {"train": "0" * 64},
        }  # fmt: skip
        record = Record.create(out, run_name("fake", method, 500, seed), config)
        record.write_result(result(draw))


def result(draw: random.Random) -> dict[str, Any]:
    matrix = [[draw.random() for _ in range(TASKS)] for _ in range(TASKS)]
    return {
        "mean_accuracy": draw.random(), "mean_forgetting": draw.random(),
        "accuracy": {"class_il": matrix, "task_il": matrix}, "duals": matrix,
        "partitions": [[50] * j for j in range(TASKS)], "confusion": [[100] * 2 * TASKS for _ in range(2 * TASKS)],
        "cost": {"seconds": 1.0, "cpu_seconds": 1.0, "peak_memory_mb": 1.0},
    }  # fmt: skip


def parse_all(out: Path) -> None:
    for name in ("config.json", "result.json"):
        for path in out.glob(f"*/{name}"):
            json.loads(path.read_bytes())


def cpu_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The least of several, which is what the work costs when nothing disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory)
        fill(out, runs)
        bare = cpu_seconds(lambda: parse_all(out))
        table = cpu_seconds(lambda: group(scan(out)))
    print(f"table of {runs:,} runs: {table:.2f} s CPU, {table / bare:.2f} × reading and parsing their files")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
