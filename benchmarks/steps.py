"""What a step costs, as ratios of CPU time measured in one run: MLP 784-100-100-10, SGD, batch 10 + 10, one thread.

    python benchmarks/steps.py

(a) `er` against a replay loop written by hand on the same tensors          at most 1.15
(b) `pdcl` with its 60 dual steps a task against `er`, memory 500           at most 1.2
(c) `pdcl` with 200 tasks against 5 tasks                                   at most 1.10
(d) `pdcl` with memory 50,000 against 500                                   at most 1.30
(e) `pdcl` as it is without limits, with drift, against `er`                 at most 1.35

Both sides take turns, a few steps each, so that a busy machine slows both; a ratio is the median over all turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import nn

import pdcl
from _turns import TURN, images, ratio, turns
from pdcl.learning.batches import batches
from pdcl.lifelong.learner import Learner
from pdcl.methods.catalog import method
from pdcl.streams.task import Stream, Task

STEPS = 1200
BATCH = 10
ROUNDS = 3
BOUNDS = {"a": 1.15, "b": 1.2, "c": 1.10, "d": 1.30, "e": 1.35}


def stream(tasks: int, samples: int) -> Stream:
    labels = [torch.randint(0, 10, (samples,), generator=torch.Generator().manual_seed(seed)) for seed in range(tasks)]
    parts = [(images(y, seed), y) for seed, y in enumerate(labels)]
    return pdcl.from_tasks([(x, y, x[:10], y[:10]) for x, y in parts], name="bench")


def learner_with_a_past(name: str, past: Stream, **options: object) -> Learner:
    """A learner whose memory holds samples of every task of `past`, hardly trained."""
    entry = method(name)
    plain = {"optimizer": "sgd", "keep_optimizer": False, "lr": 0.1, "replay": 10}
    learner: Learner = entry.load()("mlp:100-100", **{**plain, **entry.defaults, **options})
    learner.prepare(past.spec)
    for task in past.tasks:
        learner.begin(task, 1)
        for batch in batches(task.data, task.index, 100, torch.arange(100), learner.place):
            learner.step(batch)
        learner.end(task)
        learner.tasks_learned += 1
    return learner


def by_hand(past: Stream, task: Task) -> Iterator[float]:
    """The same for experience replay with a reservoir of 500 as one would write it in a script."""
    network = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 10)
    )
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    x, y = past.tasks[0].data.fetch(torch.arange(500))
    memory_x, memory_y, seen = x.clone(), y.clone(), 500
    order = torch.randperm(len(task.data))
    start = time.process_time()
    for number, index in enumerate(order.split(BATCH), 1):
        x, y = task.data.fetch(index)
        slots = torch.randperm(500)[:10]
        inputs, targets = torch.cat([x, memory_x[slots]]), torch.cat([y, memory_y[slots]])
        loss = nn.functional.cross_entropy(network(inputs.float() / 255), targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        for place, slot in enumerate((torch.rand(len(y)) * torch.arange(seen + 1, seen + 1 + len(y))).long().tolist()):
            if slot < 500:
                memory_x[slot], memory_y[slot] = x[place], y[place]
        seen += len(y)
        if number % TURN == 0:
            yield time.process_time() - start
            start = time.process_time()


def main() -> None:
    torch.set_num_threads(1)
    five, many, large = stream(5, 600), stream(200, 110), stream(5, 10_000)
    task = replace(stream(1, STEPS * BATCH).tasks[0], index=5)
    last = replace(task, index=200)

    def pdcl_on(past: Stream, now: Task, memory: int) -> Callable[[], Iterator[float]]:
        paper = {"tolerance": 0.05, "base": 0.0, "drift": 0.0, "guard": 0, "witness": 0}
        return lambda: turns(learner_with_a_past("pdcl", past, memory=memory, **paper), now, BATCH)

    def usual() -> Iterator[float]:
        return turns(learner_with_a_past("pdcl", five, memory=500), task, BATCH)

    def er() -> Iterator[float]:
        return turns(learner_with_a_past("er", five, memory=500), task, BATCH)

    plain = pdcl_on(five, task, 500)
    found = {
        "a": ("er / by hand", ratio(er, lambda: by_hand(five, task), ROUNDS)),
        "b": ("pdcl / er", ratio(plain, er, ROUNDS)),
        "e": ("pdcl without limits / er", ratio(usual, er, ROUNDS)),
        "c": ("pdcl, 200 tasks / 5 tasks", ratio(pdcl_on(many, last, 500), plain, ROUNDS)),
        "d": ("pdcl, memory 50,000 / 500", ratio(pdcl_on(large, task, 50_000), plain, ROUNDS)),
    }
    for key, (what, value) in found.items():
        missed = "" if value <= BOUNDS[key] else "  MISSED"
        print(f"({key}) {what:<28} {value:5.2f}   (at most {BOUNDS[key]:.2f}){missed}")


if __name__ == "__main__":
    main()
