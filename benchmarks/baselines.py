"""What a step of each baseline costs, as ratios to `er`'s step measured in one run.

    python benchmarks/baselines.py

MLP 784-100-100-10, SGD, batch 10 + 10, memory 500, the last of five tasks, one thread, CPU time. Both sides
take turns, a few steps each, so that a busy machine slows both; a ratio is the median over all turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

import pdcl
from _turns import images, ratio, turns
from pdcl.learning.batches import batches
from pdcl.lifelong.learner import Learner
from pdcl.methods.catalog import method
from pdcl.streams.task import Stream

PAST, STEPS, BATCH, MEMORY, ROUNDS = 4, 480, 10, 500, 2
BOUNDS = {"agem": 2.2, "der": 1.5, "derpp": 2.1, "gem": 12.0, "gss": 8.0, "xder": 4.0}
OTHERS = ("er-ace", "icarl", "ewc", "si", "lwf", "finetune")


def stream() -> Stream:
    """Five tasks of two classes; the last is long enough for all steps."""
    sizes = [1000] * PAST + [STEPS * BATCH]
    labels = [torch.tensor((2 * k, 2 * k + 1)).repeat(size // 2) for k, size in enumerate(sizes)]
    parts = [(images(y, k), y) for k, y in enumerate(labels)]
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


def last_task(name: str, on: Stream) -> Iterator[float]:
    return turns(with_a_past(name, on), on.tasks[PAST], BATCH)


def main() -> None:
    torch.set_num_threads(1)
    on = stream()
    for name in (*BOUNDS, *OTHERS):
        found = ratio(partial(last_task, name, on), partial(last_task, "er", on), ROUNDS)
        bound = f"   (at most {BOUNDS[name]:.1f})" if name in BOUNDS else ""
        print(f"{name:<8} / er {found:6.2f}{bound}{'  MISSED' if found > BOUNDS.get(name, found) else ''}")


if __name__ == "__main__":
    main()
