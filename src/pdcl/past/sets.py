"""Which statistics are kept: one set for all tasks without a limit, one for each task with one, one per segment.

A bound in bytes holds for statistics and held-back samples together. Where it would be exceeded, sets whose dual was 0
are merged into the common one first, the oldest first: their limits didn't need weights of their own. Then fewer
samples are held back of each task, then the other sets are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pdcl.errors import UsageError
from pdcl.past.statistics import Moments, added, gram_bytes

# Shares of a bound: the most that one G may take, and that held-back samples may; without and with limits, which want
# sets of their own and more samples to steer and judge by.
LARGEST_GRAM, HELD_BACK = {False: 3 / 4, True: 1 / 2}, {False: 1 / 8, True: 1 / 4}


@dataclass
class Sets:
    """common: of all tasks that have none of their own. own: by task. segments: by name; they overlap tasks.
    dtype: of what is kept."""

    dtype: torch.dtype = torch.float32
    common: Moments | None = None
    own: dict[int, Moments] = field(default_factory=dict)
    segments: dict[str, Moments] = field(default_factory=dict)

    @property
    def parts(self) -> list[Moments]:
        """Sets that together have every sample once, the common one first."""
        return [*([] if self.common is None else [self.common]), *(self.own[task] for task in sorted(self.own))]

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in (*self.parts, *self.segments.values()))

    def add(self, moments: Moments, alone: bool) -> None:
        """A task's statistics. alone: as a set of its own."""
        (task,) = moments.tasks
        if task in self.own:
            self.own[task] = added([self.own[task], moments]).kept_as(self.dtype)
        elif alone and not (self.common is not None and task in self.common.tasks):
            self.own[task] = moments.kept_as(self.dtype)
        else:
            self.common = self._joined(moments)

    def _joined(self, moments: Moments) -> Moments:
        found = moments if self.common is None else added([self.common, moments])
        return found.kept_as(self.dtype)

    def add_segment(self, name: str, moments: Moments) -> None:
        found = added([self.segments[name], moments]) if name in self.segments else moments
        self.segments[name] = found.kept_as(self.dtype)

    def merge(self, task: int) -> None:
        """Let a task's set become part of the common one."""
        self.common = self._joined(self.own.pop(task))

    def holder(self, task: int) -> Moments:
        """The set that has this task's samples."""
        if task in self.own:
            return self.own[task]
        if self.common is None or task not in self.common.tasks:
            raise UsageError(f"task {task} was never learned here")
        return self.common

    def put(self, task: int, moments: Moments) -> None:
        if task in self.own:
            self.own[task] = moments.kept_as(self.dtype)
        else:
            self.common = moments.kept_as(self.dtype)

    def state_dict(self) -> dict[str, Any]:
        return {
            "common": None if self.common is None else self.common.state_dict(),
            "own": {str(task): each.state_dict() for task, each in self.own.items()},
            "segments": {name: each.state_dict() for name, each in self.segments.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.common = None if state["common"] is None else Moments.from_state(state["common"])
        self.own = {int(task): Moments.from_state(each) for task, each in state["own"].items()}
        self.segments = {name: Moments.from_state(each) for name, each in state["segments"].items()}


def widest(memory: int, dtype: torch.dtype, outputs: int, limited: bool) -> int:
    """The most features, the constant among them, whose G takes its share of these bytes and leaves room for C."""
    width = int((2 * memory / dtype.itemsize) ** 0.5)
    while width > 1 and not _fits(width, memory, dtype, outputs, limited):
        width -= 1
    return width


def _fits(width: int, memory: int, dtype: torch.dtype, outputs: int, limited: bool) -> bool:
    gram, cross = gram_bytes(width, dtype), outputs * (width * dtype.itemsize + 16)
    return gram <= LARGEST_GRAM[limited] * memory and gram + cross <= (1 - HELD_BACK[limited]) * memory


def mergeable(sets: Sets, duals: Sequence[float]) -> list[int]:
    """Tasks with a set of their own in the order in which they would be merged: those whose dual was 0, the oldest
    first; then the others by dual."""
    return sorted(sets.own, key=lambda task: (duals[task] if task < len(duals) else 0.0, task))
