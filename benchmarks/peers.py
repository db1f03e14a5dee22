"""One online pass over split MNIST with replay of 500: by hand, `er`, `pdcl`, and Avalanche.

    python benchmarks/peers.py [--avalanche PYTHON] [--samples 60000] [--rounds 1]

PYTHON: of an environment with avalanche-lib and the same torch (`make test-integrations` makes .venv-avalanche). Each
peer runs in a process of its own with one thread: MLP 784-100-100-10, SGD, batch 10 + 10 replayed. Avalanche learns the
same tensors, and then its own SplitMNIST. All evaluate every task after each of them, with the same
plain code but for ours.

Training: CPU seconds of all tasks, the loop included, evaluation left out. Process: everything, imports included.

(a) er / by hand, training                  at most 1.15
(b) er / by hand, process                   at most 1.15
(c) Avalanche / er, training, tensors       at least 1.8
(d) Avalanche / er, training, SplitMNIST    at least 2.5

Ratios are medians over rounds; in a round the peers take turns.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

BATCH, MEMORY, RATE = 10, 500, 0.03
POOLING = ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")
OPERATORS = ("nms", "qnms", "qroi_align", *POOLING, *(f"_{name}_backward" for name in POOLING))
BOUNDS = {
    "a": ("er", "by hand", "training", 1.15),
    "b": ("er", "by hand", "process", 1.15),
    "c": ("avalanche", "er", "training", 1.8),
    "d": ("splitmnist", "er", "training", 2.5),
}
Part = tuple[torch.Tensor, torch.Tensor]
Found = tuple[float, float]


def network() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 10)]
    return nn.Sequential(nn.Flatten(), *layers)


def by_hand(tasks: list[Part], tests: list[Part]) -> Found:
    model, random = network(), torch.Generator().manual_seed(0)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    held_x, held_y, seen = torch.zeros(MEMORY, 1, 28, 28), torch.zeros(MEMORY, dtype=torch.long), 0

    def learn(task: Part) -> None:
        nonlocal seen
        x, y = task
        for index in torch.randperm(len(y), generator=random).split(BATCH):
            new_x, new_y = x[index], y[index]
            slots = torch.randperm(min(seen, MEMORY), generator=random)[:BATCH]
            inputs, targets = torch.cat([new_x, held_x[slots]]), torch.cat([new_y, held_y[slots]])
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimiser.step()
            places = (torch.rand(len(new_y), generator=random) * torch.arange(seen + 1, seen + 1 + len(new_y))).long()
            for row, place in enumerate(places.tolist()):
                slot = seen + row if seen + row < MEMORY else place
                if slot < MEMORY:
                    held_x[slot], held_y[slot] = new_x[row], new_y[row]
            seen += len(new_y)

    return one_by_one(learn, tasks, model, tests)


def ours(method: str, tasks: list[Part], tests: list[Part]) -> Found:
    import pdcl
    from pdcl.learning import loop
    from pdcl.methods.catalog import method as found
    from pdcl.streams.transform import Transform

    parts = [(x, y, tx, ty) for (x, y), (tx, ty) in zip(tasks, tests, strict=True)]
    stream = pdcl.from_tasks(parts, name="mnist-tensors", transform=Transform())
    options: dict[str, Any] = {"memory": MEMORY, "lr": RATE, "optimizer": "sgd", "replay": BATCH}
    learner = found(method).load()(network(), **options)
    evaluate, aside = loop.evaluate, [0.0]

    def timed(*args: Any, **more: Any) -> Any:
        start = time.process_time()
        done = evaluate(*args, **more)
        aside[0] += time.process_time() - start
        return done

    loop.evaluate = timed
    # The first optimiser imports a compiler that nobody here uses; for the others too that is before the clock starts.
    torch.optim.SGD(network().parameters(), lr=RATE)
    start = time.process_time()
    result = pdcl.run(stream, learner, epochs=1, batch=BATCH)
    return time.process_time() - start - aside[0], result.mean_accuracy


def avalanche(tasks: list[Part], tests: list[Part]) -> Found:
    without_operators()
    from avalanche.benchmarks.scenarios.deprecated.generators import tensors_benchmark

    stream = tensors_benchmark(train_tensors=tasks, test_tensors=tests, task_labels=[0] * len(tasks))
    return strategy(stream.train_stream, tests)


def split_mnist(root: str, tests: list[Part]) -> Found:
    """Avalanche's own benchmark, as its pages show it. Its inputs are normalised, so accuracy is not comparable."""
    without_operators()
    from avalanche.benchmarks.classic import SplitMNIST

    stream = SplitMNIST(n_experiences=5, dataset_root=root, fixed_class_order=list(range(10)))
    return strategy(stream.train_stream, [((x - 0.1307) / 0.3081, y) for x, y in tests])


def strategy(experiences: Iterable[Any], tests: list[Part]) -> Found:
    from avalanche.training.plugins import ReplayPlugin
    from avalanche.training.supervised import Naive

    model = network()
    naive = Naive(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=RATE), criterion=nn.CrossEntropyLoss(),
        train_mb_size=BATCH, train_epochs=1, evaluator=None,
        plugins=[ReplayPlugin(mem_size=MEMORY, batch_size=BATCH, batch_size_mem=BATCH)],
    )  # fmt: skip
    return one_by_one(lambda experience: naive.train(experience, num_workers=0), experiences, model, tests)


def without_operators() -> None:
    """torchvision's compiled operators don't load beside a CPU build of torch; nothing here calls them."""
    global LIBRARY
    LIBRARY = torch.library.Library("torchvision", "DEF")
    for name in OPERATORS:
        LIBRARY.define(f"{name}(Tensor a) -> Tensor")


def one_by_one(learn: Callable[[Any], object], tasks: Iterable[Any], model: nn.Module, tests: list[Part]) -> Found:
    """CPU seconds of learning all tasks, and the accuracy at the end."""
    spent, scores = 0.0, [0.0]
    for task in tasks:
        start = time.process_time()
        learn(task)
        spent += time.process_time() - start
        scores = list(accuracies(model, tests))
    return spent, statistics.mean(scores)


@torch.no_grad()
def accuracies(model: nn.Module, tests: list[Part]) -> Iterator[float]:
    model.eval()
    yield from (float((model(x).argmax(1) == y).double().mean()) for x, y in tests)
    model.train()


def peer(name: str, folder: Path) -> None:
    torch.set_num_threads(1)
    tasks, tests = torch.load(folder / "mnist.pt")
    others = {"by hand": by_hand, "avalanche": avalanche}
    if name == "splitmnist":
        training, score = split_mnist(str(folder), tests)
    else:
        training, score = others[name](tasks, tests) if name in others else ours(name, tasks, tests)
    print("FOUND " + json.dumps({"training": training, "accuracy": score}))


def measured(python: str, name: str, folder: Path) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [python, "-W", "ignore", __file__, "--peer", name, "--folder", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = next(line for line in done.stdout.splitlines() if line.startswith("FOUND "))
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**json.loads(line.removeprefix("FOUND ")), "process": whole}


def written(folder: Path, samples: int) -> None:
    """Split MNIST as float tensors, five tasks of two classes; and where torchvision looks for its files."""
    import pdcl
    from pdcl.lab.benchmarks.raw.archive import locate
    from pdcl.streams.data import everything

    def part(data: Any, most: int) -> Part:
        x, y = data.fetch(everything(data)[:most])
        return x.float() / 255, y

    tasks = pdcl.stream("mnist").tasks
    each = samples // len(tasks)
    torch.save(([part(t.data, each) for t in tasks], [part(t.test, 10**6) for t in tasks]), folder / "mnist.pt")
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for path in locate("mnist").paths:
        (raw / path.stem).write_bytes(gzip.decompress(path.read_bytes()))


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--avalanche", "--peer", "--folder"):
        parser.add_argument(name)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    if asked.peer:
        peer(asked.peer, Path(asked.folder))
        return
    from pdcl.lab.benchmarks.raw.archive import MissingData

    with tempfile.TemporaryDirectory() as folder:
        try:
            written(Path(folder), asked.samples)
        except MissingData as error:
            print(f"nothing measured: {error}")
            return
        pythons = dict.fromkeys(("by hand", "er", "pdcl"), sys.executable)
        pythons |= dict.fromkeys(("avalanche", "splitmnist"), asked.avalanche) if asked.avalanche else {}
        rounds = [
            {name: told(name, measured(python, name, Path(folder))) for name, python in pythons.items()}
            for _ in range(asked.rounds)
        ]
    judged(rounds)


def told(name: str, row: dict[str, float]) -> dict[str, float]:
    times = f"{row['training']:.1f} s of training, {row['process']:.1f} s as a process"
    print(f"{name:<10} {times}, accuracy {100 * row['accuracy']:.1f} %", flush=True)
    return row


def judged(rounds: list[dict[str, dict[str, float]]]) -> None:
    for key, (above, below, what, bound) in BOUNDS.items():
        if above not in rounds[0]:
            continue
        value = statistics.median(found[above][what] / found[below][what] for found in rounds)
        least = below == "er"
        missed = "" if (value >= bound if least else value <= bound) else "  MISSED"
        print(f"({key}) {above} / {below}, {what}: {value:.2f}, at {'least' if least else 'most'} {bound}{missed}")


if __name__ == "__main__":
    main()
