"""Which stored samples a constraint speaks of: sets of slots, which may overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pdcl.duality.lagrangian import task_means


@dataclass(frozen=True, eq=False)
class Sets:
    """Set c is members[offsets[c] : offsets[c] + counts[c]]; tasks[c] is the task it belongs to, −1 for a segment.

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

    def owners_of(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Every set that each of these slots is in: the sets, and where in `slots` the slot of each stands."""
        order = self.members.argsort(stable=True)
        held = self.members[order].contiguous()
        first, end = torch.searchsorted(held, slots), torch.searchsorted(held, slots, right=True)
        times = end - first
        places = torch.repeat_interleave(torch.arange(len(slots)), times)
        within = torch.arange(len(places)) - torch.repeat_interleave(times.cumsum(0) - times, times)
        return self.owners[order[first[places] + within]], places

    def means(self, values: Tensor) -> Tensor:
        """The mean over each set of values by member, row by row; NaN for an empty set. values: [..., members]."""
        return torch.stack([task_means(row, self.owners, len(self)) for row in values])


def task_sets(task_of: Tensor, tasks: int, slots: Tensor | None = None) -> Sets:
    """One set per task, from the task of every slot; of the given slots alone, where some are given."""
    slots = torch.arange(len(task_of)) if slots is None else slots
    own = task_of[slots]
    counts = torch.bincount(own, minlength=tasks)
    return Sets(slots[own.argsort(stable=True)], counts, torch.arange(tasks), torch.ones(tasks, dtype=torch.long))


def with_segments(tasks: Sets, masks: Tensor) -> Sets:
    """These sets of tasks, then for each segment one with those of their members in it. masks: [segments, slots]."""
    if not len(masks):
        return tasks
    inside = [tasks.members[mask[tasks.members]] for mask in masks]
    counts = torch.tensor([len(members) for members in inside])
    return Sets(
        torch.cat([tasks.members, *inside]),
        torch.cat([tasks.counts, counts]),
        torch.cat([tasks.tasks, torch.full_like(counts, -1)]),
        torch.cat([tasks.divisors, torch.ones_like(counts)]),
    )


def sample_sets(tasks: Sets) -> Sets:
    """One set per slot of these tasks, slots in order; its dual is one of the n_k of its task."""
    slots, order = tasks.members.sort()
    owners = tasks.owners[order]
    return Sets(slots, torch.ones_like(slots), owners, tasks.counts[owners])
