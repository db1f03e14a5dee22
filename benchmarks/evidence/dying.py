"""Why the paper's setting may not learn organa's last task: hardly a hidden unit answers to its samples.

    python benchmarks/evidence/dying.py --seeds 3

Preset `paper`, memory 500: er, and pdcl0 with duals that start at 0 and at 1. While the last task is learned: the loss
of its batches, and how many of the 128 units of the last hidden layer answer to a sample of it, by update. Some 40 CPU
seconds a run.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import torch

import pdcl
from pdcl.methods.catalog import method
from pdcl.networks import eval_mode

RUNS: list[tuple[str, dict[str, Any]]] = [("er", {}), ("pdcl0", {}), ("pdcl0", {"start": 1.0})]
SHOWN = (0, 10, 30, 100, 200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    stream = pdcl.stream("organa")
    print("| method | seed | loss at update 0, 10, 30, 100, 200 | hidden units that answer | last task |")
    print("|---|---|---|---|---|")
    for seed in range(asked.seeds):
        for name, options in RUNS:
            seen, result = watched(stream, name, seed, options)
            losses, units = (", ".join(f"{each[n]:.2f}" for each in seen) for n in range(2))
            label = " ".join([name, *(f"from {value:g}" for value in options.values())])
            last = 100 * result.accuracy["class_il"][-1][-1]
            print(f"| {label} | {seed} | {losses} | {units} | {last:.0f} % |", flush=True)


def watched(stream: Any, name: str, seed: int, options: dict[str, Any]) -> tuple[list[tuple[float, float]], Any]:
    """(loss, units that answer) at the updates shown, and the result."""
    kind = method(name).load()
    step, seen, count = kind.step, [], -1
    last = len(stream.tasks) - 1

    def watching(self: Any, batch: Any) -> Any:
        nonlocal count
        count += batch.task == last
        if batch.task != last or count not in SHOWN:
            return step(self, batch)
        with torch.no_grad(), eval_mode(self.model):
            answering = float((self.features(batch.x) > 0).double().sum(1).mean())
        done = step(self, batch)
        seen.append((statistics.fmean(done.losses.tolist()), answering))
        return done

    kind.step = watching
    try:
        return seen, pdcl.run(stream, name, memory=500, preset="paper", seed=seed, **options)
    finally:
        kind.step = step


if __name__ == "__main__":
    main()
