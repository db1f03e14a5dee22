"""The statistics of a task while its samples come: of the task, and of each segment with a limit."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pdcl.past.segments import Segments
from pdcl.past.statistics import Running
from pdcl.ranks import Ranks

# Rows that are multiplied at once: a product of a few rows would write the whole of G for each of them.
BLOCK = 1024


class TaskSums:
    """fresh: which samples of the task didn't come yet, so that none counts twice. pending: rows of an open block."""

    def __init__(self, samples: int, width: int, outputs: int, segments: Segments, exact: bool) -> None:
        self.segments = segments
        self.running = [Running(width, outputs, exact) for _ in range(1 + len(segments))] if samples else []
        self.fresh = torch.ones(samples, dtype=torch.bool)
        self.pending: list[tuple[Tensor, Tensor, Tensor]] = []

    def include(self, index: Tensor, features: Tensor, y: Tensor, codes: Tensor) -> None:
        """index: positions in the task; codes: of stated columns, as in `Segments`."""
        new = self.fresh[index]
        if not bool(new.any()):
            return
        self.fresh[index] = False
        self.pending.append((features[new], y[new], codes[new]))
        if sum(len(each[1]) for each in self.pending) >= BLOCK:
            self.flush()

    def flush(self) -> None:
        if not self.pending:
            return
        features, y, codes = (torch.cat(each) for each in zip(*self.pending, strict=True))
        self.pending = []
        self.running[0].include(features, y)
        for sums, mask in zip(self.running[1:], self.segments.masks(codes), strict=True):
            sums.include(features[mask], y[mask])

    def finished(self, ranks: Ranks) -> tuple[Running, dict[str, Running]]:
        """The sums of all ranks: of the task, and of segments by name."""
        self.flush()
        for sums in self.running:
            if not ranks.alone:
                _sum_up(sums, ranks)
        return self.running[0], dict(zip(self.segments.names, self.running[1:], strict=True))

    def state_dict(self) -> dict[str, Any]:
        return {
            "fresh": self.fresh,
            "running": [each.state_dict() for each in self.running],
            "pending": [list(each) for each in self.pending],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state; as many sums are here as there."""
        self.fresh = state["fresh"]
        self.pending = [(each[0], each[1], each[2]) for each in state["pending"]]
        for sums, each in zip(self.running, state["running"], strict=True):
            sums.load_state_dict(each)


def _sum_up(sums: Running, ranks: Ranks) -> None:
    for name in ("gram", "cross", "counts"):
        setattr(sums, name, ranks.sum(getattr(sums, name)))
    numbers = ranks.sum(torch.tensor([float(sums.samples), sums.squares], dtype=torch.float64))
    sums.samples, sums.squares = int(numbers[0]), float(numbers[1])
