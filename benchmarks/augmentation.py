"""What cropping and flipping 32 images costs beside a training step on them, measured in one run.

    python benchmarks/augmentation.py

ResNet-18 of width 20, SGD, batches of 32 colour images of 64×64 (Tiny-ImageNet) and of 32×32 (its small version), one
thread, CPU time: at most 10 %.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from pdcl.networks.named import build_named
from pdcl.streams.transform import Transform, moved

BATCH, ROUNDS, BOUND = 32, 12, 0.10


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def share(size: int) -> float:
    """CPU time of augmenting a batch over that of a step on it: the median over rounds that measure both."""
    random = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (BATCH, 3, size, size), generator=random, dtype=torch.uint8)
    targets = torch.randint(0, 40, (BATCH,), generator=random)
    transform = Transform(crop_padding=4, flip=True)
    network = build_named("resnet18:20", (3, size, size), 40)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05)

    def augment() -> None:
        moved(images, *transform.draw(BATCH, random), padding=transform.crop_padding)

    def step() -> None:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(transform.normalised(images)), targets).backward()
        optimiser.step()

    augment()
    step()
    return statistics.median(cpu(augment) / cpu(step) for _ in range(ROUNDS))


def main() -> None:
    torch.set_num_threads(1)
    for size in (64, 32):
        found = share(size)
        print(f"{size}×{size}: {100 * found:.2f} % of a step   (at most 10 %){'  MISSED' if found > BOUND else ''}")


if __name__ == "__main__":
    main()
