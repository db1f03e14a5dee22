"""Data larger than memory: a memory-mapped image set is learned beside a part of it that is held in memory.

    python benchmarks/large.py                     2 GB, against 1 GB in memory
    python benchmarks/large.py --gb 20             20 GB; wants that much free disk in --dir, and removes it after

(a) the time of a step on the mapped file against one in memory     at most 1.2 (wall clock, sides take turns; the first
    steps of a turn aren't counted, since their batches were read while the other side had its turn)
(b) RssAnon, the process's own memory without mapped pages          under 1.5 GB

The file's pages are dropped from the system's cache before, so that reading really reads.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch

import pdcl
from pdcl.learning.batches import batches
from pdcl.lifelong.learner import Learner
from pdcl.streams.data import TensorData
from pdcl.streams.mapped import mapped_rows
from pdcl.streams.readers import AHEAD
from pdcl.streams.task import Task

SHAPE = (3, 64, 64)
BATCH = 32
UNCOUNTED = 2 * AHEAD
TURN = 40
TURNS = 13
BOUNDS = {"a": 1.2, "b": 1.5}


def write_images(path: Path, gigabytes: float) -> int:
    """Noise whose brightness tells the class of ten, row by row the class `row % 10`."""
    rows = int(gigabytes * 2**30 / np.prod(SHAPE)) // 1000 * 1000
    file = np.lib.format.open_memmap(path, "w+", np.uint8, (rows, *SHAPE))
    noise = np.random.default_rng(0).integers(0, 120, (1000, *SHAPE), dtype=np.uint8)
    noise += (12 * (np.arange(1000) % 10)).astype(np.uint8).reshape(-1, 1, 1, 1)
    for start in range(0, rows, 1000):
        file[start : start + 1000] = np.roll(noise, start // 1000 % 64, axis=3)
    file.flush()
    del file
    return rows


def drop_from_cache(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def own_memory() -> float:
    """RssAnon in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 2**20


def turns(learner: Learner, task: Task) -> Iterator[float]:
    """Seconds a step of each turn, once what was read ahead before it is used up."""
    learner.begin(task, (UNCOUNTED + TURN) * TURNS)
    order = torch.randperm(len(task.data), generator=torch.Generator().manual_seed(0))
    coming = batches(task.data, task.index, BATCH, order, learner.place)
    for _ in range(TURNS):
        for batch in islice(coming, UNCOUNTED):
            learner.step(batch)
        start = time.perf_counter()
        for batch in islice(coming, TURN):
            learner.step(batch)
        yield (time.perf_counter() - start) / TURN


def task_of(x: np.ndarray | torch.Tensor) -> Task:
    y = torch.arange(len(x)) % 10
    data = TensorData(torch.as_tensor(x), y, mapped=mapped_rows(x))
    return Task(1, "large", data, data.subset(torch.arange(1000)), tuple(range(10)))


def learner_with_a_past(x: np.ndarray) -> Learner:
    learner = pdcl.PDCL("cnn", memory=500, optimizer="sgd", lr=0.01, replay=BATCH)
    learner.learn(np.asarray(x[:2000]), np.arange(2000) % 10, epochs=1, batch=BATCH)
    return learner


def reading_alone(path: Path) -> float:
    """Milliseconds that one thread takes to read a batch, when it does nothing else: the least a step can take."""
    data = task_of(np.load(path, mmap_mode="r")).data
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(1))
    start = time.perf_counter()
    for index in islice(order.split(BATCH), TURN * 5):
        data.fetch(index)
    return (time.perf_counter() - start) / (TURN * 5) * 1000


def compared(path: Path) -> float:
    """The median ratio of turns, mapped against in memory."""
    mapped = np.load(path, mmap_mode="r")
    held = torch.as_tensor(np.array(mapped[: 2**30 // int(np.prod(SHAPE))]))
    both = [turns(learner_with_a_past(mapped), task_of(x)) for x in (mapped, held)]
    pairs = list(zip(*both, strict=True))[1:]
    mine, other = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
    print(f"a step: {mine:.1f} ms on the mapped file, {other:.1f} ms in memory; medians of {len(pairs)} turns")
    ratios = sorted(one / another for one, another in pairs)
    print(f"ratios of turns: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    return statistics.median(ratios)


def learned_in_little_memory(path: Path, steps: int) -> float:
    """The largest RssAnon while evenly spaced rows of the whole file are learned, and 20,000 of them evaluated."""
    mapped = np.load(path, mmap_mode="r")
    learner, worst = learner_with_a_past(mapped), 0.0
    rows = max(1, len(mapped) // (steps * BATCH))
    data = task_of(mapped).data.subset(torch.arange(0, len(mapped), rows))
    for batch in batches(data, 1, BATCH, torch.randperm(len(data)), learner.place):
        learner.step(batch)
        worst = max(worst, own_memory())
    learner.evaluate(mapped[:20_000], np.arange(min(20_000, len(mapped))) % 10)
    return max(worst, own_memory())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gb", type=float, default=2.0)
    parser.add_argument("--dir", default=None)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--keep", help="a file to use if it is there, and to leave there")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=asked.dir) as folder:
        path = Path(asked.keep or Path(folder) / "images.npy")
        if not path.exists():
            start = time.perf_counter()
            rows = write_images(path, asked.gb)
            print(f"{rows} images, {asked.gb:g} GB, written in {time.perf_counter() - start:.0f} s", flush=True)
        drop_from_cache(path)
        little = learned_in_little_memory(path, asked.steps)
        print(f"(b) RssAnon while the file is learned: {little:.2f} GB, at most {BOUNDS['b']}", flush=True)
        drop_from_cache(path)
        print(f"reading alone, {BATCH} scattered rows a batch: {reading_alone(path):.1f} ms a batch", flush=True)
        ratio = compared(path)
        print(f"(a) a step on the mapped file / in memory: {ratio:.2f}, at most {BOUNDS['a']}")
    if ratio > BOUNDS["a"] or little > BOUNDS["b"]:
        raise SystemExit("out of bounds")


if __name__ == "__main__":
    main()
