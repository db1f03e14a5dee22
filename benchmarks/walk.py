"""How far one step walks: calls, files and depth of our own code; for a plain step, a dual step, and `learn`.

python benchmarks/walk.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

import pdcl

torch.set_num_threads(1)
HERE = str(Path(pdcl.__file__).parent)


class FirstStep(Exception):
    """Raised where `learn` has come to its first step."""


class Walk:
    """Counts calls of functions of ours."""

    def __init__(self) -> None:
        self.calls, self.depth, self.deepest = 0, 0, 0
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if not frame.f_code.co_filename.startswith(HERE):
            return
        if event == "call":
            self.calls += 1
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
            self.files.add(frame.f_code.co_filename)
        elif event == "return":
            self.depth -= 1

    def __str__(self) -> str:
        return f"{self.calls:6} calls in {len(self.files):3} files, depth {self.deepest}"


def walked(action: Callable[[], Any]) -> Walk:
    walk = Walk()
    sys.setprofile(walk)
    try:
        action()
    except FirstStep:
        pass
    finally:
        sys.setprofile(None)
    return walk


def month(k: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    y = rng.integers(2 * k, 2 * k + 2, 200)
    return rng.normal(size=(200, 8)).astype("float32") + 2 * np.eye(8, dtype="float32")[y], y


def main() -> None:
    learner: Any = pdcl.PDCL("mlp:32", memory=100, tolerance=0.05, dual_steps=10)
    found: dict[str, Walk] = {}
    plain = type(learner).step

    def watched(self: Any, batch: Any) -> Any:
        before, result = len(self.core.progress.history), []
        walk = walked(lambda: result.append(plain(self, batch)))
        if self.tasks_learned == 2:
            found["dual step" if len(self.core.progress.history) > before else "step"] = walk
        return result[0]

    for k in range(2):
        learner.learn(*month(k), epochs=2, batch=20)
    type(learner).step = watched
    learner.learn(*month(2), epochs=2, batch=20)

    def stop(self: Any, batch: Any) -> Any:
        raise FirstStep

    type(learner).step = stop
    found["learn"] = walked(lambda: learner.learn(*month(3), epochs=2, batch=20))
    for name, walk in found.items():
        print(f"{name:10} {walk}")
    heaviest = max((len(vars(each)), type(each).__name__) for each in (learner, learner.core, learner.core.past))
    print(f"attributes of the heaviest object: {heaviest[0]} ({heaviest[1]})")


if __name__ == "__main__":
    main()
