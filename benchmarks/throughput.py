"""MNIST online, memory 500, beside a replay loop written by hand: 784-100-100-10, SGD 0.1, batch 10 + 10, one thread.

    python benchmarks/throughput.py [ROUNDS]

(a) `er` and (b) `pdcl` in a process that is up: images per CPU second, evaluation after every task included
(c) `pdcl run mnist er --preset tuned --memory 500`, start to end, against a script of its own      at most 1.5

Each ratio is the median over rounds in which both sides run one after the other, so that a busy machine slows both.
"""

from __future__ import annotations

import gzip
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

BATCH, REPLAY, MEMORY, TASKS = 10, 10, 500, 5
BOUND = 1.5
OPTIONS = {
    "preset": "tuned", "network": "mlp:100-100", "optimizer": "sgd", "lr": 0.1, "batch": BATCH, "replay": REPLAY,
    "epochs": 1,
}  # fmt: skip
Sides = tuple[Tensor, Tensor, Tensor, Tensor]


def by_hand(train_x: Tensor, train_y: Tensor, test_x: Tensor, test_y: Tensor) -> list[list[float]]:
    """Experience replay with a reservoir as one would write it in a script; accuracies after every task."""
    network = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 10)
    )
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    memory_x, memory_y, seen, rows = train_x[:MEMORY].clone(), train_y[:MEMORY].clone(), 0, []
    for task in range(TASKS):
        mine = (train_y // 2 == task).nonzero().flatten()
        for index in mine[torch.randperm(len(mine))].split(BATCH):
            x, y = train_x[index], train_y[index]
            slots = torch.randperm(min(seen, MEMORY))[:REPLAY]
            inputs, targets = torch.cat([x, memory_x[slots]]), torch.cat([y, memory_y[slots]])
            loss = nn.functional.cross_entropy(network(inputs.float() / 255), targets)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            places = (torch.rand(len(y)) * torch.arange(seen + 1, seen + 1 + len(y))).long().tolist()
            for row, place in enumerate(places):
                place = seen + row if seen + row < MEMORY else place
                if place < MEMORY:
                    memory_x[place], memory_y[place] = x[row], y[row]
            seen += len(y)
        rows.append(evaluated(network, test_x, test_y))
    return rows


@torch.no_grad()
def evaluated(network: nn.Module, x: Tensor, y: Tensor) -> list[float]:
    said = torch.cat([network(part.float() / 255).argmax(1) for part in x.split(1000)])
    return [float((said == y)[y // 2 == task].float().mean()) for task in range(TASKS)]


def read(paths: list[Path]) -> Sides:
    """The four idx files, as a script would read them."""
    train_x, train_y, test_x, test_y = (gzip.decompress(path.read_bytes()) for path in paths)
    images = [torch.tensor(np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 1, 28, 28)) for raw in (train_x, test_x)]
    labels = [torch.tensor(np.frombuffer(raw, np.uint8, offset=8)).long() for raw in (train_y, test_y)]
    return images[0], labels[0], images[1], labels[1]


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def child_seconds(words: list[str]) -> float:
    """CPU time of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def whole_run() -> float:
    with tempfile.TemporaryDirectory() as out:
        code = "import sys; from pdcl.cli import main; sys.exit(main())"
        words = ["run", "mnist", "er", "--preset", "tuned", "--memory", str(MEMORY), "--out", out]
        return child_seconds([sys.executable, "-c", code, *words])


def main(rounds: int) -> None:
    import pdcl
    from pdcl.lab.benchmarks.raw.archive import MissingData, locate

    try:
        paths = locate("mnist").paths
    except MissingData:
        print("the data of mnist are not here, so nothing is measured: pdcl data fetch mnist")
        return
    stream, sides = pdcl.stream("mnist"), read(list(paths))
    script = [sys.executable, __file__, "--by-hand", *map(str, paths)]
    times: dict[str, list[float]] = {name: [] for name in ("by hand", "er", "pdcl", "script", "pdcl run")}
    # What torch imports and plans at a first step belongs to no side.
    by_hand(*(side[:1000] for side in sides))
    for _ in range(rounds):
        times["by hand"].append(cpu_seconds(lambda: by_hand(*sides)))
        for name in ("er", "pdcl"):
            times[name].append(cpu_seconds(lambda name=name: pdcl.run(stream, name, memory=MEMORY, **OPTIONS)))
        times["script"].append(child_seconds(script))
        times["pdcl run"].append(whole_run())
    report(times, len(sides[0]))


def report(times: dict[str, list[float]], images: int) -> None:
    for name in ("by hand", "er", "pdcl"):
        seconds = statistics.median(times[name])
        against = ratio(times[name], times["by hand"])
        print(f"{name:<10}{images / seconds:9,.0f} images per CPU second   {against:5.2f} × by hand")
    whole = ratio(times["pdcl run"], times["script"])
    missed = "" if whole <= BOUND else "  MISSED"
    took = statistics.median(times["pdcl run"])
    print(f"pdcl run mnist er --preset tuned: {took:.1f} s CPU, {whole:.2f} × the script (at most {BOUND}){missed}")


def ratio(above: list[float], below: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--by-hand"]:
        print(by_hand(*read([Path(path) for path in sys.argv[2:]]))[-1])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
