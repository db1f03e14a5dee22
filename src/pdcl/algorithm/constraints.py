"""What is held to a limit while one task is learned: sets of sample numbers, which may overlap.

task level    L = mean over D_t of ℓ  +  Σ_k λ_k (mean over B_k of ℓ − ε_k)
sample level  L = mean over D_t of ℓ  +  Σ_k (1/n_k) Σ_{i∈B_k} λ_i (ℓ_i − ε_i)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


def task_means(losses: Tensor, tasks: Tensor, n_tasks: int) -> Tensor:
    """L_k = (1/n_k) Σ_{i∈B_k} ℓ_i for every task k < n_tasks; NaN where a task has no sample. losses, tasks: [n]."""
    sums = losses.new_zeros(n_tasks).index_add(0, tasks, losses)
    return sums / torch.bincount(tasks, minlength=n_tasks)


def lagrangian(
    current: Tensor,
    past: Tensor,
    tasks: Tensor,
    duals: Tensor,
    limits: Tensor,
    base: float = 0.0,
    by_sample: bool = False,
) -> Tensor:
    """L̂(θ, λ) = L_t + Σ_k (b + λ_k) L_k − Σ_k λ_k ε_k, on all of the new task and of memory.

    current: losses of the new task, [m]; past: of stored samples, of the given tasks, [n]. duals, limits: λ and ε of
    every task, or (by_sample) of every stored sample: L_t + Σ_k (1/n_k) Σ_{i∈B_k} [(b + λ_i) ℓ_i − λ_i ε_i].
    Training descends on draws whose expectation this is (`Algorithm1.weights`), without −λε, which has no gradient.

    >>> lagrangian(torch.tensor([1.0]), torch.tensor([2.0, 4.0]), torch.tensor([0, 0]), *torch.tensor([[0.5], [1.0]]))
    tensor(2.)
    """
    dual, limit = (duals, limits) if by_sample else (duals[tasks], limits[tasks])
    terms = (base + dual) * past - dual * limit
    return current.mean() + (terms / torch.bincount(tasks)[tasks]).sum()


def base_weight(base: float, most: float | None, past: int) -> float:
    """b_t = min(b, most / (t − 1)): all past tasks together weigh at most `most` times the new one (None: no bound).

    Without it the new task has 1/t of the gradient, and after many tasks it isn't learned in a few steps.

    >>> base_weight(1.0, 4.0, 3), base_weight(1.0, 4.0, 8)
    (1.0, 0.5)
    """
    return base if most is None or not past else min(base, most / past)


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

    @cached_property
    def distinct(self) -> tuple[Tensor, Tensor]:
        """Every member once, and where each member stands among these."""
        found: tuple[Tensor, Tensor] = self.members.unique(return_inverse=True)
        return found


@dataclass(frozen=True, eq=False)
class Constraints:
    """All that one task is learned under, compiled once: past tasks, then segments; or stored samples (`by_sample`).

    tasks: the replayed samples of each past task. sets: the replayed samples of each constraint. measured_on: the
    samples on which each task and segment is measured: its guards, or what is replayed of it. limits: ε_c, NaN for
    none, [C]. in_error: whether each set of `measured_on` is measured by its error rate instead of its loss. base:
    b_c, [C]. task_limits: ε of each set of `measured_on`, for reported slacks; equal to `limits` unless constraints
    are samples.
    """

    tasks: Sets
    sets: Sets
    measured_on: Sets
    limits: Tensor
    in_error: Tensor
    base: Tensor
    task_limits: Tensor
    by_sample: bool = False

    @cached_property
    def limited(self) -> int:
        """How many constraints have a limit."""
        return int((~self.limits.isnan()).sum())

    @cached_property
    def any_in_error(self) -> bool:
        return bool(self.in_error.any())


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
