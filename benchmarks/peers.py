"""One online pass over split MNIST with replay of 500: by hand, `er`, `pdcl`, and Avalanche on the same tensors.

    python benchmarks/peers.py [--avalanche PYTHON] [--samples 60000]

PYTHON: of an environment with avalanche-lib and the same torch. Each peer runs in a process of its own with one thread:
MLP 784-100-100-10, SGD, batch 10 + 10 replayed. CPU seconds, of the whole process and of the steps alone.

(a) er / by hand, steps             at most 1.15
(b) er / by hand, whole process     at most 1.15
(c) Avalanche / er, steps           at least 1.8
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

BATCH, MEMORY, RATE = 10, 500, 0.03
POOLING = ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")
OPERATORS = ("nms", "qnms", "qroi_align", *POOLING, *(f"_{name}_backward" for name in POOLING))
Part = tuple[torch.Tensor, torch.Tensor]


def network() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 10)]
    return nn.Sequential(nn.Flatten(), *layers)


def by_hand(tasks: list[Part], tests: list[Part]) -> tuple[float, float]:
    model, random = network(), torch.Generator().manual_seed(0)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    held_x, held_y, seen = torch.zeros(MEMORY, 1, 28, 28), torch.zeros(MEMORY, dtype=torch.long), 0
    start = time.process_time()
    for x, y in tasks:
        for index in torch.randperm(len(y), generator=random).split(BATCH):
            new_x, new_y = x[index], y[index]
            slots = torch.randperm(min(seen, MEMORY), generator=random)[:BATCH]
            inputs, targets = torch.cat([new_x, held_x[slots]]), torch.cat([new_y, held_y[slots]])
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimiser.step()
            for row in range(len(new_y)):
                place = seen if seen < MEMORY else int(torch.randint(seen + 1, (), generator=random))
                if place < MEMORY:
                    held_x[place], held_y[place] = new_x[row], new_y[row]
                seen += 1
    return time.process_time() - start, accuracy(model, tests)


def ours(method: str, tasks: list[Part], tests: list[Part]) -> tuple[float, float]:
    import pdcl
    from pdcl.learners.catalog import method as found
    from pdcl.streams.transform import Transform

    parts = [(x, y, tx, ty) for (x, y), (tx, ty) in zip(tasks, tests, strict=True)]
    stream = pdcl.from_tasks(parts, name="mnist-tensors", transform=Transform())
    options: dict[str, Any] = {"memory": MEMORY, "lr": RATE, "optimizer": "sgd", "replay": BATCH}
    learner = found(method).load()(network(), **options)
    spent, step = [0.0], learner.step

    def timed(batch: Any) -> Any:
        start = time.process_time()
        done = step(batch)
        spent[0] += time.process_time() - start
        return done

    # Steps alone: the run also evaluates every task after each, which the others don't.
    learner.step = timed
    result = pdcl.run(stream, learner, epochs=1, batch=BATCH)
    return spent[0], result.mean_accuracy


def avalanche(tasks: list[Part], tests: list[Part]) -> tuple[float, float]:
    # torchvision's compiled operators don't load beside a CPU build of torch; nothing here calls them.
    library = torch.library.Library("torchvision", "DEF")
    for name in OPERATORS:
        library.define(f"{name}(Tensor a) -> Tensor")
    from avalanche.benchmarks.scenarios.deprecated.generators import tensors_benchmark
    from avalanche.training.plugins import ReplayPlugin
    from avalanche.training.supervised import Naive

    stream = tensors_benchmark(train_tensors=tasks, test_tensors=tests, task_labels=[0] * len(tasks))
    model = network()
    strategy = Naive(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=RATE), criterion=nn.CrossEntropyLoss(),
        train_mb_size=BATCH, train_epochs=1, evaluator=None,
        plugins=[ReplayPlugin(mem_size=MEMORY, batch_size=BATCH, batch_size_mem=BATCH)],
    )  # fmt: skip
    start = time.process_time()
    for experience in stream.train_stream:
        strategy.train(experience, num_workers=0)
    return time.process_time() - start, accuracy(model, tests)


@torch.no_grad()
def accuracy(model: nn.Module, tests: list[Part]) -> float:
    return sum(float((model(x).argmax(1) == y).double().mean()) for x, y in tests) / len(tests)


def peer(name: str, file: str) -> None:
    torch.set_num_threads(1)
    tasks, tests = torch.load(file)
    found = by_hand if name == "by hand" else avalanche if name == "avalanche" else None
    steps, score = found(tasks, tests) if found else ours(name, tasks, tests)
    print("FOUND " + json.dumps({"steps": steps, "accuracy": score}))


def measured(python: str, name: str, file: Path) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([python, __file__, "--peer", name, "--file", str(file)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = next(line for line in done.stdout.splitlines() if line.startswith("FOUND "))
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**json.loads(line.removeprefix("FOUND ")), "process": whole}


def written(file: Path, samples: int) -> None:
    """Split MNIST as float tensors, five tasks of two classes."""
    import pdcl
    from pdcl.streams.data import everything

    def part(data: Any, most: int) -> Part:
        x, y = data.fetch(everything(data)[:most])
        return x.float() / 255, y

    tasks = pdcl.stream("mnist").tasks
    each = samples // len(tasks)
    torch.save(([part(t.data, each) for t in tasks], [part(t.test, 10**6) for t in tasks]), file)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--avalanche", "--peer", "--file"):
        parser.add_argument(name)
    parser.add_argument("--samples", type=int, default=60_000)
    asked = parser.parse_args()
    if asked.peer:
        peer(asked.peer, asked.file)
        return
    from pdcl.streams.raw.archive import MissingData

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mnist.pt"
        try:
            written(file, asked.samples)
        except MissingData as error:
            print(f"nothing measured: {error}")
            return
        pythons = {"by hand": sys.executable, "er": sys.executable, "pdcl": sys.executable}
        pythons |= {"avalanche": asked.avalanche} if asked.avalanche else {}
        found = {}
        for name, python in pythons.items():
            found[name] = measured(python, name, file)
            row = found[name]
            times = f"{row['steps']:.1f} s of steps, {row['process']:.1f} s as a process"
            print(f"{name:<10} {times}, accuracy {100 * row['accuracy']:.1f} %", flush=True)
    for key, value, bound in ratios(found):
        print(f"({key}) {value:.2f}, {bound}")


def ratios(found: dict[str, dict[str, float]]) -> list[tuple[str, float, str]]:
    hand, er = found["by hand"], found["er"]
    rows = [
        ("a", er["steps"] / hand["steps"], "at most 1.15"),
        ("b", er["process"] / hand["process"], "at most 1.15"),
    ]
    if "avalanche" in found:
        rows.append(("c", found["avalanche"]["steps"] / er["steps"], "at least 1.8"))
    return rows


if __name__ == "__main__":
    main()
