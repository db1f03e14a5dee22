"""Samples that are stored and held back from training: guards steer duals, witnesses certify limits.

They are drawn before a task is learned and count within the bound of memory. Where later tasks leave no place for one,
it is replayed from then on, and judges nothing any more. A sample's group (a patient, a speaker) is on one side only,
in all tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

REPLAY, GUARD, WITNESS = 0, 1, 2
# The memory's column that says who each sample belongs to.
GROUP = "group"
MOST_OF_TASK = 0.1
USUAL_SHARE, LARGEST_SHARE = 1 / 8, 1 / 2
MOST = 400
# With fewer witnesses even a collapse can't be told from chance, and with few samples of a class each is worth more
# when it is replayed.
WITNESSES_FROM, PLACES_A_CLASS, LEAST_WITNESSES = 200, 10, 5


@dataclass(frozen=True)
class HeldBack:
    """Positions of a task's samples: those that are trained on, and those that are not."""

    trained: Tensor
    guards: Tensor
    witnesses: Tensor


@dataclass(frozen=True)
class Counts:
    """How many guards and witnesses a task sets aside. least_guards: so many even if a tenth of the task is less."""

    guards: int
    witnesses: int
    least_guards: int = 0

    def within(self, samples: int) -> tuple[int, int]:
        """Guards and witnesses of a task of this size: each at most a tenth; needed guards up to a quarter."""
        most = int(MOST_OF_TASK * samples)
        return min(self.guards, max(most, min(self.least_guards, samples // 4))), min(self.witnesses, most)


def allowed(
    guard: int | None, witness: int | None, limited: bool, capacity: int, tasks: int, classes: int = 0
) -> Counts:
    """How many guards and witnesses each of so many tasks may have in memory.

    As stated, as long as all of them fit into half of memory. Where nothing is stated (None) there are no guards: duals
    that they steered kept no limit better, and cost the new task points. Where there is a limit to judge, an eighth of
    memory is divided evenly among witnesses, from 200 places and ten for each class on, while each task has five.
    """
    usual_witness = limited and capacity >= max(WITNESSES_FROM, PLACES_A_CLASS * classes)
    uses = [bool(guard), usual_witness if witness is None else witness > 0]
    kinds = max(1, sum(uses)) * max(1, tasks)
    usual, most = min(MOST, int(USUAL_SHARE * capacity) // kinds), int(LARGEST_SHARE * capacity) // kinds
    usual = usual if usual >= LEAST_WITNESSES else 0
    return Counts(min(guard or 0, most), usual * usual_witness if witness is None else min(witness, most))


def hold_back(
    samples: int, wanted: Counts, generator: Generator, groups: Tensor | None = None, known: Tensor | None = None
) -> HeldBack:
    """A random choice of guards and witnesses, at most as many as `Counts.within`; whole groups, where there are any.

    known: which samples were learned before; none of them is chosen, nor is a group that has one.
    """
    guards, witnesses = wanted.within(samples)
    order = torch.randperm(samples, generator=generator)
    if groups is None:
        free = order if known is None else order[~known[order]]
        held = free[: guards + witnesses]
        return _divided(samples, held, min(guards, len(held)))
    rank = _mixed(groups, generator)
    barred = torch.bincount(rank) > max(guards, witnesses)
    if known is not None:
        barred[rank[known]] = True
    # Groups that can't be held back come last.
    rank = barred.long().argsort(stable=True).argsort()[rank]
    sizes = torch.bincount(rank)[: int((~barred).sum())].cumsum(0)
    taken = _whole_groups(sizes, guards)
    end = _whole_groups(sizes, taken + witnesses)
    # Group by group in random order: whatever number of first ones survives later, it is a random choice of groups.
    return _divided(samples, rank.argsort(stable=True)[:end], taken)


def _divided(samples: int, held: Tensor, guards: int) -> HeldBack:
    trained = torch.ones(samples, dtype=torch.bool)
    trained[held] = False
    return HeldBack(trained.nonzero().flatten(), held[:guards], held[guards:])


def cut_short(
    guard: int | None, witness: int | None, found: HeldBack | None, samples: int, most: str = "a tenth"
) -> str | None:
    """A sentence where fewer guards or witnesses were set aside than somebody stated. most: of a task."""
    stated = {"guard": guard or 0, "witness": witness or 0}
    got = {"guard": 0, "witness": 0} if found is None else {"guard": len(found.guards), "witness": len(found.witnesses)}
    short = [f"{name}={count}: {got[name]} were set aside" for name, count in stated.items() if got[name] < count]
    bounds = f"at most {most} of a task's samples ({samples} here), and half of memory for those of all tasks together"
    return f"{'; '.join(short)}; {bounds}" if short else None


def _mixed(groups: Tensor, generator: Generator) -> Tensor:
    """The rank of each sample's group in a random order, which doesn't depend on what the groups are called."""
    _, codes = groups.unique(return_inverse=True)
    count = int(codes.max()) + 1
    first = torch.full((count,), len(codes)).scatter_reduce(0, codes, torch.arange(len(codes)), "amin")
    return torch.randperm(count, generator=generator)[first.argsort().argsort()][codes]


def _whole_groups(sizes: Tensor, most: int) -> int:
    """Samples of the first groups that fit into `most` together. sizes: of the groups so far, summed."""
    fitting = sizes[sizes <= most]
    return int(fitting[-1]) if len(fitting) else 0


def surviving(role: Tensor, task: Tensor, kind: int, tasks: int, each: int) -> Tensor:
    """Slots of the guards (or witnesses) that stay: the first `each` of every task; they stand in random order."""
    slots = (role == kind).nonzero().flatten()
    slots = slots[task[slots].argsort(stable=True)]
    counts = torch.bincount(task[slots], minlength=tasks)
    rank = torch.arange(len(slots)) - torch.repeat_interleave(counts.cumsum(0) - counts, counts)
    return slots[rank < each]
