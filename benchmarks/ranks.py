"""Data-parallel training: what a step costs with 1, 2 and 4 gloo ranks, and how much of it is waiting for others.

    python benchmarks/ranks.py [--mnist]

For each number of ranks, at the same global batch: milliseconds a step, and milliseconds that one all-reduce of the
gradients and one of a dual step's slacks take. Ranks share this machine's cores, so steps get no faster here beyond
their number. --mnist: accuracy after one online pass for three seeds, which ranks may change only by rounding.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

import torch

import pdcl
from pdcl.errors import UsageError
from pdcl.ranks import Ranks, joined

WORLDS = (1, 2, 4)
BATCH, STEPS = 128, 150
REPEATS = 200


def learned() -> tuple[pdcl.PDCL, float]:
    """A learner, and the milliseconds of one of its steps."""
    learner = pdcl.PDCL("mlp:256-256", memory=500, tolerance=0.2, dual_steps=20, lr=0.01, optimizer="sgd")
    stream = pdcl.stream("synthetic", tasks=2, dim=256, size=BATCH * STEPS)
    seconds: list[float] = []
    last = time.perf_counter()

    def hear(event: object) -> None:
        nonlocal last
        if type(event).__name__ == "Stepped":
            seconds.append(time.perf_counter() - last)
            last = time.perf_counter()

    pdcl.run(stream, learner, epochs=1, batch=BATCH, listeners=[hear])
    return learner, 1000 * statistics.median(seconds) / max(1, STEPS // 50)


def measured(mnist: bool) -> dict[str, float]:
    torch.set_num_threads(1)
    with joined() as ranks:
        learner, step = learned()
        gradients = torch.zeros(sum(p.numel() for p in learner.model.parameters()))
        found = {
            "step": step,
            "gradients": reduction(ranks, gradients),
            "slacks": reduction(ranks, torch.zeros(1, 512, dtype=torch.float64)),
        }
        if mnist:
            found |= {f"seed {seed}": accuracy(seed) for seed in range(3)}
        return found


def reduction(ranks: Ranks, value: torch.Tensor) -> float:
    """Milliseconds of one mean over ranks."""
    start = time.perf_counter()
    for _ in range(REPEATS):
        ranks.mean(value)
    return 1000 * (time.perf_counter() - start) / REPEATS


def accuracy(seed: int) -> float:
    stream = pdcl.stream("mnist", per_class=600)
    return pdcl.run(stream, "pdcl", preset="tuned", memory=200, seed=seed, epochs=1, batch=16).mean_accuracy


def group(world: int, words: list[str]) -> dict[str, float]:
    """What rank 0 of so many found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    alone = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    ranks = []
    for rank in range(world):
        env = {**os.environ, **alone, "WORLD_SIZE": str(world), "RANK": str(rank)}
        ranks.append(subprocess.Popen([sys.executable, __file__, "--rank", *words], env=env, stdout=subprocess.PIPE))
    said = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise UsageError(f"a rank of {world} failed")
    found: dict[str, float] = json.loads(said[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--mnist", action="store_true")
    asked = parser.parse_args()
    if asked.rank:
        print(json.dumps(measured(asked.mnist)))
        return
    for world in WORLDS:
        found = group(world, ["--mnist"] if asked.mnist else [])
        times = ", ".join(f"{name} {found[name]:.3f} ms" for name in ("step", "gradients", "slacks"))
        scores = [f"{100 * value:.2f} %" for name, value in found.items() if name.startswith("seed")]
        print(f"{world} ranks: {times}" + (f"; accuracy {', '.join(scores)}" if scores else ""))


if __name__ == "__main__":
    main()
