"""Which stored samples a constraint speaks of: sets of slots, which may overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pdcl.duality.lagrangian import task_means


@dataclass(frozen=True, eq=False)
class Sets:
    """Set c is members[offsets[c] : offsets[c] + counts[c]]; tasks[c] is the task it belongs to.

    A constraint of dual λ_c has the mass μ_c = λ_c / divisors[c] in the Lagrangian: a task's dual counts whole, a
    sample's as one of the n_k of its task.
    """

    members: Tensor
    counts: Tensor
    tasks: Tensor
    divisors: Tensor

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def offsets(self) -> Tensor:
        return self.counts.cumsum(0) - self.counts

    @cached_property
    def owners(self) -> Tensor:
        """The set of each member."""
        return torch.repeat_interleave(torch.arange(len(self)), self.counts)

    def means(self, values: Tensor) -> Tensor:
        """The mean over each set of values by member, row by row; NaN for an empty set. values: [..., members]."""
        return torch.stack([task_means(row, self.owners, len(self)) for row in values])


def task_sets(task_of: Tensor, tasks: int) -> Sets:
    """One set per task, from the task of every slot."""
    counts = torch.bincount(task_of, minlength=tasks)
    return Sets(task_of.argsort(stable=True), counts, torch.arange(tasks), torch.ones(tasks, dtype=torch.long))


def sample_sets(task_of: Tensor, tasks: int) -> Sets:
    """One set per slot; its dual is one of the n_k of its task."""
    size = len(task_of)
    held = torch.bincount(task_of, minlength=tasks)
    return Sets(torch.arange(size), torch.ones(size, dtype=torch.long), task_of, held[task_of])
