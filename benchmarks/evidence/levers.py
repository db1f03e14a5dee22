"""What lowers the error of past tasks, where all of them have the same limit? Each lever alone, on held-out data.

    python benchmarks/evidence/levers.py                                   mnist-2000 and banking77, two seeds
    python benchmarks/evidence/levers.py --streams digits --seeds 5

weight: every past task weighs three times the new one. way: at the end of a task go only so far from the old weights to
the new ones. anchor: the outputs of known classes on new inputs stay near those of the old network (squared distance).
"""

from __future__ import annotations

import argparse
import copy
import statistics
from dataclasses import dataclass
from typing import Any

import torch
from limits_kept import STREAMS, loaded, run

import pdcl
from pdcl.streams.task import Task

LEVERS: list[tuple[str, str, dict[str, Any]]] = [
    ("even", "even", {}),
    ("weight × 3", "even", {"base": 3.0, "base_most": None}),
    ("way .9", "levers", {"way": 0.9}),
    ("way .8", "levers", {"way": 0.8}),
    ("anchor .1", "levers", {"anchor": 0.1}),
    ("anchor 1", "levers", {"anchor": 1.0}),
]


@pdcl.register("levers", summary="even, with more to hold past tasks by", defaults={"dual": "frozen"})
@dataclass(eq=False)
class Levers(pdcl.PDCL):
    """`even` with two more levers.

    way: how far to go from old weights to new ones
    anchor: weight of the squared distance from the old network's outputs on new inputs
    """

    way: float = 1.0
    anchor: float = 0.0

    def begin(self, task: Task, steps: int) -> None:
        super().begin(task, steps)
        self.before = copy.deepcopy(self.model).eval() if task.index else None
        self.known = self.held["y"].unique() if len(self.held) else None

    def step(self, batch: pdcl.Batch) -> pdcl.Step:
        self.now = len(batch)
        return super().step(batch)

    def outputs(self, raw: Any, augment: bool = True) -> torch.Tensor:
        out = super().outputs(raw, augment)
        if self.anchor and self.model.training and self.before is not None:
            with torch.no_grad():
                old = self.before(self.spec.transform(raw[: self.now], None))
            gap = (out[: self.now, self.known] - old[:, self.known]).square().mean(1)
            self.pull = torch.cat([self.anchor * gap, out.new_zeros(len(raw) - self.now)])
        return out

    def backward(self, losses: torch.Tensor, weights: torch.Tensor | None = None) -> None:
        super().backward(losses + self.pull if self.before is not None and self.anchor else losses, weights)

    def end(self, task: Task) -> None:
        if self.before is not None and self.way < 1:
            old = self.before.state_dict()
            with torch.no_grad():
                for name, value in self.model.state_dict().items():
                    if value.is_floating_point():
                        value.copy_(old[name] + self.way * (value - old[name]))
        super().end(task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="*", default=["mnist-2000", "banking77"], choices=list(STREAMS))
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| stream | lever | past tasks' error | newest task's error | right after learning |\n|---|---|---|---|---|")
    for stream in asked.streams:
        data = loaded(stream, held_out=True)
        for label, method, options in LEVERS:
            found = [_errors(run(stream, data, method, seed, **options)) for seed in range(asked.seeds)]
            cells = [f"{statistics.mean(column):.1f}" for column in zip(*found, strict=True)]
            print(f"| {stream} | {label} | {' | '.join(cells)} |", flush=True)


def _errors(result: Any) -> tuple[float, float, float]:
    """In percent: mean over past tasks, the newest, mean of each task right after it was learned."""
    matrix = [[100 - 100 * score for score in row] for row in result.accuracy["class_il"]]
    new = statistics.mean(row[k] for k, row in enumerate(matrix))
    return statistics.mean(matrix[-1][:-1]), matrix[-1][-1], new


if __name__ == "__main__":
    main()
