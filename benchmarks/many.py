"""Many tasks, stored samples, classes and runs: what a step, a task's end, a checkpoint and a table cost then.

    python benchmarks/many.py [--all] [--figure FILE.png]

--all goes to 1,000 tasks and 10⁶ stored samples, which takes an hour or more; without it to 100 and 10⁵.

(a) a step, most tasks against fewest                     at most 1.5
(b) a step, most stored samples against fewest            at most 3
(c) the end of a task, per task learned before            slope at most 0.7: far below linear
(d) the end of a task, per stored sample                  slope at most 1.2: it sorts, and leaves the caches
(e) a checkpoint, per stored sample                       slope at most 1.2
(f) one evaluation of 10⁵ classes                         under 1 GB more memory
(g) a table of runs, 5,000 against 500                    slope at most 1.15

Times are CPU seconds of one thread. Slopes are of log time against log size between the two largest sizes.
"""

from __future__ import annotations

import argparse
import math
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import torch

import pdcl
from pdcl.lab.comparing import group
from pdcl.learning.batches import batches
from pdcl.learning.evaluation import evaluate
from pdcl.lifelong.learner import Learner
from pdcl.records import scan
from pdcl.records.checkpoint import APART
from pdcl.storage.serialize import as_parts
from pdcl.storage.vault import Vault
from pdcl.streams.data import TensorData
from pdcl.streams.task import Spec, Task
from scan import fill

TASKS, MORE_TASKS = (5, 20, 100), (300, 1000)
STORED, MORE_STORED = (1_000, 10_000, 100_000), (1_000_000,)
CLASSES, FEATURES, BATCH, STEPS = 10, 16, 32, 150
BOUNDS = {"a": 1.5, "b": 3.0, "c": 0.7, "d": 1.2, "e": 1.2, "f": 1.0, "g": 1.15}
SPEC = Spec((FEATURES,), torch.float32, CLASSES, labels=tuple(range(CLASSES)))


def task(index: int, samples: int) -> Task:
    random = torch.Generator().manual_seed(index)
    y = torch.randint(CLASSES, (samples,), generator=random)
    x = torch.randn(samples, FEATURES, generator=random) + y[:, None]
    data = TensorData(x, y)
    return Task(index, str(index), data, data.subset(torch.arange(min(samples, 50))), tuple(range(CLASSES)))


def prepared(stored: int) -> Learner:
    learner = pdcl.PDCL("mlp:32", memory=stored, tolerance="+5pt", dual_steps=10, lr=0.01, optimizer="sgd")
    learner.prepare(SPEC)
    return learner


def by_tasks(marks: tuple[int, ...], stored: int, name: str = "") -> dict[int, dict[str, float]]:
    """What one learner costs when so many tasks are behind it, on its way through all of them."""
    learner, found = prepared(stored), {}
    ends: list[float] = []
    for k in range(marks[-1]):
        ends.append(spent(lambda k=k: learner.absorb(task(k, stored // 5))))
        learner.tasks_learned += 1
        if k + 1 in marks:
            found[k + 1] = told(name or f"{k + 1} tasks", measured(learner, ends))
    return found


def by_stored(counts: tuple[int, ...], tasks: int = 10) -> dict[int, dict[str, float]]:
    found = {}
    for count in counts:
        found[count] = by_tasks((tasks,), count, f"{count} stored samples")[tasks]
    return found


def measured(learner: Learner, ends: list[float]) -> dict[str, float]:
    """CPU seconds of a step, of the end of a task (median of five), of `learn` with 50 steps, and of a checkpoint."""
    newest = task(len(ends), STEPS * BATCH)
    found = {"step": a_step(learner, newest), "end": statistics.median(ends[-5:])}
    found["checkpoint"] = min(a_checkpoint(learner) for _ in range(2))
    x, y = newest.data.fetch(torch.arange(50 * BATCH))
    pupil = deepcopy(learner)
    found["learn"] = spent(lambda: pupil.learn(x, y, epochs=1, batch=BATCH))
    return found


def a_step(learner: Learner, newest: Task) -> float:
    learner.begin(newest, STEPS)
    took = []
    for batch in batches(newest.data, newest.index, BATCH, torch.arange(len(newest.data)), learner.place):
        took.append(spent(lambda batch=batch: learner.step(batch)))
    return statistics.mean(took[5:])


def a_checkpoint(learner: Learner) -> float:
    with tempfile.TemporaryDirectory() as folder:
        vault = Vault(Path(folder) / "state", "checkpoint")
        (Path(folder) / "state").mkdir()
        return spent(lambda: vault.write(as_parts({"learner": learner.state_dict()}, APART), {"tasks": 0}))


def spent(act: Callable[[], object]) -> float:
    start = time.process_time()
    act()
    return time.process_time() - start


def many_classes(classes: int = 100_000) -> float:
    """GB that one evaluation needs beyond what was there."""
    learner = pdcl.PDCL("linear", memory=100, optimizer="sgd")
    learner.prepare(Spec((FEATURES,), torch.float32, classes, labels=tuple(range(classes))))
    y = torch.randint(classes, (2000,), generator=torch.Generator().manual_seed(0))
    data = TensorData(torch.randn(2000, FEATURES), y)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = evaluate(learner, [Task(0, "all", data, data, tuple(range(classes)))])
    assert found.confusion is None
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20


def a_table(runs: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), runs)
        return spent(lambda: group(scan(folder)))


def told(what: str, row: dict[str, float]) -> dict[str, float]:
    times = ", ".join(f"{name} {1000 * value:.2f} ms" for name, value in row.items())
    print(f"{what:>24}: {times}", flush=True)
    return row


def slope(sizes: tuple[int, ...], times: list[float]) -> float:
    return math.log(times[-1] / times[-2]) / math.log(sizes[-1] / sizes[-2])


def draw(path: str, of_tasks: dict[int, dict[str, float]], of_stored: dict[int, dict[str, float]]) -> None:
    from matplotlib.figure import Figure

    from pdcl.lab.figures.style import look

    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    names = {"learn": "learn, 50 steps", "end": "the end of a task", "checkpoint": "a checkpoint", "step": "a step"}
    sides = [(left, of_tasks, "tasks (10,000 stored samples)"), (right, of_stored, "stored samples (10 tasks)")]
    for axes, rows, label in sides:
        for number, (name, shown) in enumerate(names.items()):
            axes.plot(list(rows), [1000 * row[name] for row in rows.values()], label=shown, **look(number))
        axes.set(xscale="log", yscale="log", xlabel=label)
        axes.grid(True, which="major", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylabel("CPU milliseconds")
    right.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--figure")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    tasks = TASKS + MORE_TASKS * asked.all
    stored = STORED + MORE_STORED * asked.all
    of_tasks, of_stored = by_tasks(tasks, 10_000), by_stored(stored)
    if asked.figure:
        draw(asked.figure, of_tasks, of_stored)
    found = {
        "a": of_tasks[tasks[-1]]["step"] / of_tasks[tasks[0]]["step"],
        "b": of_stored[stored[-1]]["step"] / of_stored[stored[0]]["step"],
        "c": slope(tasks, [row["end"] for row in of_tasks.values()]),
        "d": slope(stored, [row["end"] for row in of_stored.values()]),
        "e": slope(stored, [row["checkpoint"] for row in of_stored.values()]),
        "f": many_classes(),
        "g": slope((500, 5000), [a_table(500), a_table(5000)]),
    }
    for name, value in found.items():
        print(f"({name}) {value:.2f}, at most {BOUNDS[name]}")
    if over := [name for name, value in found.items() if value > BOUNDS[name]]:
        raise SystemExit(f"out of bounds: {', '.join(over)}")


if __name__ == "__main__":
    main()
