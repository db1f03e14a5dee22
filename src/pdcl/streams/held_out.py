"""Holding samples out: stratified, seeded, never dividing a group, and with the test data out of reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pdcl.given import seed_of, share_of
from pdcl.streams.checks import BadData
from pdcl.streams.data import Data
from pdcl.streams.task import Task

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def draw_share(strata: Tensor, groups: Tensor | None, share: float, seed: int) -> Tensor:
    """Which samples to hold out: (n,) booleans, about `share` of every stratum, never all of one.

    A group goes as a whole. Without groups a stratum of n ≥ 2 samples gives max(1, round(share · n)).
    """
    share = share_of(share, "the share to hold out")
    generator = np.random.default_rng(seed_of(seed))
    kinds = strata.numpy()
    mask = _by_sample(kinds, share, generator) if groups is None else _by_group(kinds, groups.numpy(), share, generator)
    return torch.from_numpy(mask)


def _by_sample(strata: Integers, share: float, generator: np.random.Generator) -> Mask:
    held = np.zeros(len(strata), dtype=bool)
    order = generator.permutation(len(strata))
    # Sorted once: a look at all samples for every stratum would take classes × samples.
    by_stratum = order[np.argsort(strata[order], kind="stable")]
    _, starts = np.unique(strata[by_stratum], return_index=True)
    for members in np.split(by_stratum, starts[1:]):
        count = min(max(1, round(share * len(members))), len(members) - 1)
        held[members[:count]] = True
    return held


def _by_group(strata: Integers, groups: Integers, share: float, generator: np.random.Generator) -> Mask:
    """Greedy over groups in random order: take one if it brings the held-out counts closer to their targets."""
    kinds, stratum = np.unique(strata, return_inverse=True)
    names, group = np.unique(groups, return_inverse=True)
    counts = np.zeros((len(names), len(kinds)))
    np.add.at(counts, (group, stratum), 1)
    total = counts.sum(0)
    missing, left = share * total, total.copy()
    taken = np.zeros(len(names), dtype=bool)
    for candidate in generator.permutation(len(names)):
        row = counts[candidate]
        closer = np.square((missing - row) / total).sum() < np.square(missing / total).sum()
        if closer and bool(np.all(left - row > 0)):
            taken[candidate] = True
            missing, left = missing - row, left - row
    return np.asarray(taken[group])


def hold_out(task: Task, share: float, seed: int) -> Task:
    """The task with `share` of its training data in place of its test data."""
    return hold_out_all([task], share, seed)[0]


def hold_out_all(tasks: Sequence[Task], share: float, seed: int) -> list[Task]:
    """`hold_out` for every task at once: a group that occurs in several tasks is on the same side in all."""
    sizes = [len(task.data) for task in tasks]
    held = torch.split(draw_share(_strata(tasks), _groups(tasks), share, seed), sizes)
    return [_divided(task, mask) for task, mask in zip(tasks, held, strict=True)]


def _strata(tasks: Sequence[Task]) -> Tensor:
    """One number per (task, class); a task without classes is one stratum."""
    width = 1 + max((max(task.classes, default=0) for task in tasks), default=0)
    return torch.cat([task.index * width + _kinds(task) for task in tasks])


def _kinds(task: Task) -> Tensor:
    return task.data.targets if task.classes else torch.zeros(len(task.data), dtype=torch.int64)


def _groups(tasks: Sequence[Task]) -> Tensor | None:
    """The groups of all tasks in a row; samples of a task without groups are each their own."""
    if all(task.data.groups is None for task in tasks):
        return None
    free = 1 + max(int(task.data.groups.max()) for task in tasks if task.data.groups is not None)
    own = free + torch.arange(sum(len(task.data) for task in tasks))
    alone = torch.split(own, [len(task.data) for task in tasks])
    return torch.cat([alone[i] if task.data.groups is None else task.data.groups for i, task in enumerate(tasks)])


def _divided(task: Task, held: Tensor) -> Task:
    if not held.any():
        reason = "without dividing a group or emptying a class"
        raise BadData(f"task {task.index} ({task.name!r}): nothing of its {len(held)} samples can be held out {reason}")
    train, test = divided(task.data, held)
    return replace(task, data=train, test=test)


def divided(data: Data, held: Tensor) -> tuple[Data, Data]:
    """What stays and what is held out, by a mask."""
    return data.subset((~held).nonzero().flatten()), data.subset(held.nonzero().flatten())
