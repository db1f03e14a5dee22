"""How time and bytes of `exact` grow with features, classes, tasks and samples, on synthetic vectors."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
from exact_book import Job, Row

import pdcl

# axis: its values; features, classes, tasks and samples otherwise.
AXES = {
    "d": (128, 256, 512, 1024, 2048),
    "classes": (10, 100, 1000, 10_000),
    "tasks": (10, 100, 300, 1000),
    "tasks in 2 MB": (10, 100, 300, 1000),
    "samples": (10_000, 100_000, 1_000_000, 10_000_000),
}
USUAL = {"d": 64, "classes": 10, "tasks": 5, "samples": 20_000}
PIECE, OF_A_TASK = 100_000, 1000


def jobs(seeds: int) -> Iterator[Job]:
    for axis, values in AXES.items():
        for value in values:
            yield {"axis": axis, "value": value}, lambda a=axis, v=value: alone(a, v)


def alone(axis: str, value: int) -> Row:
    """In a process of its own, so that its peak is that of this size."""
    name, _, memory = axis.partition(" in ")
    sizes = {**USUAL, name: value} | ({"samples": OF_A_TASK * value} if name == "tasks" else {})
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(grown, **sizes, memory=memory.replace(" ", "") or None).result()


def grown(d: int, classes: int, tasks: int, samples: int, memory: str | None) -> Row:
    """Learned task by task without limits, each made when it is learned, of at most 100,000 samples."""
    torch.set_num_threads(1)
    # What a first call takes, imports among it, is no part of the growth.
    pdcl.learner("exact", features="raw").learn(torch.rand(200, 4), torch.arange(200) % 2)
    random = torch.Generator().manual_seed(0)
    samples = max(samples, 4 * classes)
    tasks = max(tasks, -(-samples // PIECE))
    centres = torch.randn(classes, d, generator=random)
    learner = pdcl.learner("exact", features="raw", memory=memory)
    spent: list[float] = []
    for task in range(tasks):
        own = torch.arange(task * classes // tasks, max((task + 1) * classes // tasks, task * classes // tasks + 1))
        y = own[torch.randint(len(own), (samples // tasks,), generator=random)] % classes
        x = centres[y] + torch.randn(len(y), d, generator=random)
        start = time.process_time()
        learner.learn(x, y, name=f"t{task}")
        spent.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "tasks": tasks,
        "learning": round(sum(spent), 2),
        "early_task": round(statistics.median(spent[1:11]), 3),
        "last_task": round(statistics.median(spent[-10:] if tasks > 20 else spent[-1:]), 3),
        "bytes": learner.nbytes,
        "peak_mb": round(peak),
    }
