"""A deployed network learns two new classes: what becomes of the old ones, and does the table of promises say so?

    python benchmarks/evidence/adopted.py            needs the mnist data ($PDCL_DATA or `pdcl data fetch mnist`)

A small MLP is trained elsewhere on four digits (300 images), adopted with a limit of 15 % error, and learns two more
digits (300 images) with memory 200. Old accuracy is on all test images of the four digits.
"""

from __future__ import annotations

import statistics
import warnings

import torch

import pdcl
from pdcl.errors import LimitBroken

METHODS = ("pdcl", "even", "derpp", "er")


def data(classes: tuple[int, ...], seed: int, train: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of these digits as vectors in [0, 1]: 75 of each for training, all of them for testing."""
    stream = pdcl.stream("mnist", classes_per_task=1)
    found = []
    for digit in classes:
        part = stream.tasks[digit].data if train else stream.tasks[digit].test
        order = torch.randperm(len(part), generator=torch.Generator().manual_seed(seed))
        index = order[: 300 // len(classes)] if train else torch.arange(len(part))
        x, y = part.fetch(index)
        found.append((x.float().flatten(1) / 255, y))
    return torch.cat([x for x, _ in found]), torch.cat([y for _, y in found])


def deployed(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(784, 100), torch.nn.ReLU(), torch.nn.Linear(100, 4))
    x, y = data((2, 3, 5, 8), seed)
    labels = torch.searchsorted(torch.tensor([2, 3, 5, 8]), y)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.001)
    for _ in range(100):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(x), labels).backward()
        optimiser.step()
    return network


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", LimitBroken)
    old, test = (2, 3, 5, 8), data((2, 3, 5, 8), 0, train=False)
    for method in METHODS:
        kept, verdicts = [], []
        for seed in range(3):
            options = {"tolerance": "15%"} if method in ("pdcl", "even") else {}
            learner = pdcl.learner(method, deployed(seed), memory=200, seed=seed, **options)
            learner.adopt(*data(old, seed), labels=list(old), name="deployed")
            before = learner.evaluate(*test)
            entry = learner.learn(*data((7, 9), seed), name="new")
            kept.append((before, learner.evaluate(*test), learner.evaluate(*data((7, 9), 0, train=False))))
            verdicts += [row.verdict for row in entry.promises or ()][:1]
        columns = [statistics.mean(column) for column in zip(*kept, strict=True)]
        each = ", ".join(f"{after:.3f}" for _, after, _ in kept)
        print(
            f"{method:8s} old before {columns[0]:.3f}, after {columns[1]:.3f} ({each}), new {columns[2]:.3f} {verdicts}"
        )


if __name__ == "__main__":
    main()
