"""What a step of each baseline costs, as ratios to `er`'s step measured in one run.

    python benchmarks/baselines.py

MLP 784-100-100-10, SGD, batch 10 + 10, memory 500, the last of five tasks, one thread, CPU time. Each ratio is the
median over rounds in which both sides run one after the other, so that a busy machine slows both.
"""

from __future__ import annotations

import statistics
import time

import torch

import pdcl
from pdcl.learners.catalog import method
from pdcl.streams.task import Stream
from pdcl.training.batches import batches
from pdcl.training.learner import Learner

PAST, STEPS, BATCH, MEMORY, ROUNDS = 4, 400, 10, 500, 5
BOUNDS = {"agem": 2.2, "der": 1.5, "derpp": 2.1, "gem": 12.0, "gss": 8.0, "xder": 4.0}
OTHERS = ("er-ace", "icarl", "ewc", "si", "lwf", "finetune")


def images(classes: tuple[int, int], count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random grey images whose mean brightness tells the class."""
    random = torch.Generator().manual_seed(classes[0])
    y = torch.tensor(classes).repeat(-(-count // 2))[:count]
    x = torch.randint(0, 120, (count, 1, 28, 28), generator=random, dtype=torch.uint8)
    return x + (12 * y).to(torch.uint8).reshape(-1, 1, 1, 1), y


def stream() -> Stream:
    """Five tasks of two classes; the last is long enough for all steps."""
    parts = [images((2 * k, 2 * k + 1), 1000 if k < PAST else STEPS * BATCH) for k in range(PAST + 1)]
    return pdcl.from_tasks([(x, y, x[:10], y[:10]) for x, y in parts], name="bench")


def with_a_past(name: str, on: Stream) -> Learner:
    """A learner whose memory is full of four tasks, hardly trained."""
    kind = method(name).load()
    sizes = {"memory": MEMORY, "replay": 10}
    known = {option: value for option, value in sizes.items() if option in kind.__dataclass_fields__}
    learner: Learner = kind("mlp:100-100", lr=0.01, **known)
    learner.prepare(on.spec)
    for task in on.tasks[:PAST]:
        learner.begin(task, 20)
        for batch in batches(task.data, task.index, 50, torch.arange(1000), learner.place):
            learner.step(batch)
        learner.end(task)
        learner.tasks_learned += 1
    return learner


def seconds(name: str, on: Stream) -> float:
    """CPU seconds of the last task's steps, without its beginning and end."""
    learner, task = with_a_past(name, on), on.tasks[PAST]
    learner.begin(task, STEPS)
    order = torch.randperm(len(task.data), generator=torch.Generator().manual_seed(0))
    start = time.process_time()
    for batch in batches(task.data, task.index, BATCH, order, learner.place):
        learner.step(batch)
    return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    on = stream()
    seconds("er", on)
    for name in (*BOUNDS, *OTHERS):
        found = statistics.median(seconds(name, on) / seconds("er", on) for _ in range(ROUNDS))
        bound = f"   (at most {BOUNDS[name]:.1f})" if name in BOUNDS else ""
        print(f"{name:<8} / er {found:6.2f}{bound}{'  MISSED' if found > BOUNDS.get(name, found) else ''}")


if __name__ == "__main__":
    main()
