"""What a network's own choices save, against the plain form of the same numbers, in CPU time of one thread.

    python benchmarks/networks.py

(a) cnn, maps by pixel / by channel, a step on 20 images of 28×28              at most 0.9
(b) cnn, the same, evaluating 250 of them                                      at most 0.6
(c) resnet18 of width 20, the same, a step on 32 images of 32×32               at most 0.9
(d) audio, over frames / over the signal, a step on 20 signals of 8,000        at most 0.9
(e) Adam in one go / torch's plain one, MLP 784-256-256-10                     at most 0.8

Both sides take turns; a ratio is the median over all turns.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from unittest.mock import patch

import torch
from torch import Tensor, nn

from pdcl.learning.optimizers import make_optimizer
from pdcl.networks import build, cnn, eval_mode, resnet

ROUNDS = 30
BOUNDS = {"a": 0.9, "b": 0.6, "c": 0.9, "d": 0.9, "e": 0.8}
Work = Callable[[], object]


def ratio(above: Work, below: Work) -> float:
    above(), below()
    return statistics.median(cpu(above) / cpu(below) for _ in range(ROUNDS))


def cpu(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def step(network: nn.Module, x: Tensor) -> Work:
    y = torch.arange(len(x)) % 10
    return lambda: nn.functional.cross_entropy(network(x), y).backward()


def by_channel(work: Work, home: object) -> Work:
    def plain() -> None:
        with patch.object(home, "by_pixel", lambda images: images):
            work()

    return plain


def evaluation(network: nn.Module, x: Tensor) -> Work:
    def work() -> None:
        with torch.no_grad(), eval_mode(network):
            network(x)

    return work


def over_signal() -> nn.Module:
    """The audio network as its description reads: 1-D convolutions over the signal."""
    layers: list[nn.Module] = []
    for inputs, kernel, stride in ((1, 80, 16), (32, 3, 1), (32, 3, 1), (32, 3, 1)):
        convolution = nn.Conv1d(inputs, 32, kernel, stride, padding=kernel // 2, bias=False)
        layers += [convolution, nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(4, ceil_mode=True)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 10))


def adam(fused: bool) -> Work:
    network = build("mlp", (784,), 10, hidden=(256, 256))
    for parameter in network.parameters():
        parameter.grad = torch.randn_like(parameter)
    made = make_optimizer("adam", network, 0.001, 0.0)
    return made.step if fused else torch.optim.Adam(network.parameters(), lr=0.001).step


def main() -> None:
    torch.set_num_threads(1)
    small = step(build("cnn", (1, 28, 28), 10), torch.randn(20, 1, 28, 28))
    seen = evaluation(build("cnn", (1, 28, 28), 10), torch.randn(250, 1, 28, 28))
    large = step(build("resnet18", (3, 32, 32), 10, width=20), torch.randn(32, 3, 32, 32))
    sound = torch.randn(20, 1, 8000)
    found = {
        "a": ("cnn, a step", ratio(small, by_channel(small, cnn))),
        "b": ("cnn, evaluating", ratio(seen, by_channel(seen, cnn))),
        "c": ("resnet18, a step", ratio(large, by_channel(large, resnet))),
        "d": ("audio, a step", ratio(step(build("audio", (1, 8000), 10), sound), step(over_signal(), sound))),
        "e": ("Adam, a step", ratio(adam(fused=True), adam(fused=False))),
    }
    for key, (what, value) in found.items():
        missed = "  MISSED" if value > BOUNDS[key] else ""
        print(f"({key}) {what:<18} {value:.2f}, at most {BOUNDS[key]}{missed}")


if __name__ == "__main__":
    main()
