"""Samples that are stored and never trained on: guards steer duals, witnesses certify limits.

They are drawn before a task is learned, count within the bound of memory, and stay what they are. A sample's group (a
patient, a speaker) is on one side only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

REPLAY, GUARD, WITNESS = 0, 1, 2
MOST_OF_TASK = 0.1
MOST_OF_MEMORY = 0.25
SHARE_OF_MEMORY = 20
FEWEST, MOST = 10, 400
GUARDS_FROM = 1000


@dataclass(frozen=True)
class HeldBack:
    """Positions of a task's samples: those that are trained on, and those that are not."""

    trained: Tensor
    guards: Tensor
    witnesses: Tensor


@dataclass(frozen=True)
class Counts:
    """How many guards and witnesses a task sets aside."""

    guards: int = 0
    witnesses: int = 0


def usual_counts(capacity: int) -> Counts:
    """A twentieth of memory for each task, where a limit is stated and nobody says otherwise.

    Guards only from 1000 places on: with less memory they moved past errors by half a point and cost the new task more.
    """
    each = min(MOST, max(FEWEST, capacity // SHARE_OF_MEMORY))
    return Counts(each if capacity >= GUARDS_FROM else 0, each)


def hold_back(samples: int, wanted: Counts, generator: Generator, groups: Tensor | None = None) -> HeldBack:
    """A random choice of guards and witnesses, each at most a tenth of the task; whole groups, where there are any."""
    most = int(MOST_OF_TASK * samples)
    order = torch.randperm(samples, generator=generator)
    if groups is None:
        guards, witnesses = min(wanted.guards, most), min(wanted.witnesses, most)
        first = guards + witnesses
        return HeldBack(order[first:].sort().values, order[:guards], order[guards:first])
    names = groups[order].unique()[torch.randperm(len(groups.unique()), generator=generator)]
    sizes = torch.stack([(groups == name).sum() for name in names]).cumsum(0)
    last = int((sizes <= min(wanted.guards, most)).sum())
    taken = int(sizes[last - 1]) if last else 0
    end = int((sizes <= taken + min(wanted.witnesses, most)).sum())
    sides = (torch.isin(groups, names[:last]), torch.isin(groups, names[last:end]), torch.isin(groups, names[end:]))
    guard, witness, rest = (side.nonzero().flatten() for side in sides)
    return HeldBack(rest, guard, witness)


def surviving(role: Tensor, task: Tensor, kind: int, tasks: int, capacity: int, roles: int) -> Tensor:
    """Slots of the guards (or witnesses) that stay, so that all held back are at most a quarter of memory.

    Each task keeps its first ones, as many as any other may; they stand in random order. roles: how many of the two
    kinds are in use.
    """
    allowed = int(MOST_OF_MEMORY * capacity) // max(1, roles) // max(1, tasks)
    slots = (role == kind).nonzero().flatten()
    return torch.cat([slots[task[slots] == k][:allowed] for k in range(tasks)] or [slots])
