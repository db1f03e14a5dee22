"""The end of a task: how many samples memory keeps of each task, and which; what is stored of the newest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Generator, Tensor

from pdcl.algorithm.constraints import Sets, task_sets
from pdcl.algorithm.partition import uniform_partition
from pdcl.algorithm.partition_rules import PartitionRule, Undivided
from pdcl.algorithm.selection import select, select_each
from pdcl.algorithm.selection_rules import SelectionRule
from pdcl.errors import UsageError
from pdcl.past.file_rows import fetched
from pdcl.past.held_back import GROUP, GUARD, REPLAY, WITNESS, HeldBack, surviving
from pdcl.past.segments import CODES
from pdcl.streams.data import Data

if TYPE_CHECKING:
    from pdcl.past.stored import Forward, StoredSamples


class Source(Protocol):
    """A task's samples, fetched by position."""

    @property
    def targets(self) -> Tensor: ...

    def fetch(self, index: Tensor) -> tuple[Any, Tensor]: ...

    def __len__(self) -> int: ...


def groups_of(data: Source) -> Tensor | None:
    """The group of each sample, where the data has groups: only data of ours can."""
    return data.groups if isinstance(data, Data) else None


@dataclass(frozen=True)
class Divided:
    """n_k of every task, and a note where the rule had to give way."""

    counts: list[int]
    note: str | None = None


def divided(rule: PartitionRule, weights: list[float], bound: Any, capacity: int, available: list[int]) -> Divided:
    """n_k for every task so far, the newest last. weights: duals, or rooms for a rule that goes by them."""
    tasks = len(weights)
    if capacity < tasks:
        raise UsageError(f"memory={bound} holds {capacity} samples, fewer than the {tasks} tasks so far")
    try:
        return Divided(rule.counts(weights, capacity, available))
    except Undivided as reason:
        return Divided(uniform_partition(tasks, capacity, available), f"{reason}: divided evenly")


def kept_slots(
    rule: SelectionRule,
    tasks: Sets,
    counts: list[int],
    duals: Tensor | None,
    labels: Tensor,
    generator: Generator,
) -> Tensor:
    """Slots of past samples that stay, task by task. duals: one per slot (None: any sample alike)."""
    sizes = tasks.counts.tolist()
    shrinks = tasks.counts > torch.tensor(counts, dtype=torch.long)
    fewer = shrinks.nonzero().flatten().tolist()
    if not fewer:
        return tasks.members
    whole = ~shrinks[tasks.owners]
    candidates = tasks.members[~whole]
    weights = rule.weights(duals)[candidates] if rule.by_dual and duals is not None else torch.ones(len(candidates))
    own = [sizes[k] for k in fewer], [counts[k] for k in fewer]
    chosen = select_each(weights, *own, generator, balancing(rule, labels[candidates]))
    owners = torch.cat([tasks.owners[whole], tasks.owners[~whole][chosen]])
    return torch.cat([tasks.members[whole], candidates[chosen]])[owners.argsort(stable=True)]


def chosen_positions(
    rule: SelectionRule, data: Source, count: int, score: Callable[[Tensor], Tensor], generator: Generator
) -> tuple[Tensor, Tensor]:
    """Positions of the newest task's samples that are stored, and their duals. score: candidates to shadow duals."""
    total = len(data)
    if not rule.by_dual:
        labels = balancing(rule, data.targets)
        return select(rule.weights(torch.zeros(total)), count, generator, labels), torch.zeros(count)
    candidates = torch.randperm(total, generator=generator)[: rule.pool(total, count)]
    duals = score(candidates)
    chosen = select(rule.weights(duals), count, generator, balancing(rule, data.targets[candidates]))
    return candidates[chosen], duals[chosen].to(torch.get_default_dtype())


def balancing(rule: SelectionRule, targets: Tensor) -> Tensor | None:
    """Class labels to balance by; None where the rule doesn't, or targets are no classes."""
    return targets.cpu() if rule.balance and are_classes(targets) else None


def are_classes(targets: Tensor) -> bool:
    """Whether targets are one class each; sequences of tokens, numbers and label sets aren't."""
    return isinstance(targets, Tensor) and targets.ndim == 1 and not targets.is_floating_point()


class View:
    """Some positions of a task's data, as data of their own."""

    def __init__(self, data: Source, positions: Tensor) -> None:
        self.data, self.positions = data, positions

    @property
    def targets(self) -> Tensor:
        return self.data.targets[self.positions]

    def fetch(self, index: Tensor) -> tuple[Any, Tensor]:
        return self.data.fetch(self.positions[index])

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class Incoming:
    """The newest task, as memory takes it in. aside: what is held back of it; first_id: the id of its first sample."""

    task: int
    data: Source
    aside: HeldBack | None
    first_id: int

    @property
    def trained(self) -> Source:
        """Its data without what is held back."""
        return self.data if self.aside is None else View(self.data, self.aside.trained)

    @property
    def held_back(self) -> tuple[Tensor, Tensor]:
        """Positions of its guards and of its witnesses."""
        none = torch.zeros(0, dtype=torch.long)
        return (none, none) if self.aside is None else (self.aside.guards, self.aside.witnesses)

    @property
    def groups_held_back(self) -> Tensor:
        """Groups that have guards or witnesses in it."""
        groups, held = groups_of(self.data), torch.cat(self.held_back)
        return groups[held] if groups is not None else torch.zeros(0, dtype=torch.long)


@dataclass(frozen=True)
class Refill:
    """What a refill goes by: the slots replayed of each past task; λ by slot, in memory's order; a weight per task for
    the partition, the newest last (duals, or rooms); what scores candidates of the newest task; the two rules."""

    tasks: Sets
    duals: Tensor
    by_sample: bool
    weights: list[float]
    score: Callable[[Tensor], Tensor]
    partition: PartitionRule
    selection: SelectionRule


def fill(
    past: StoredSamples, new: Incoming, by: Refill, forward: Forward, steady: float, generator: Generator
) -> tuple[list[int], str | None]:
    """Divide memory, keep and choose samples: n_k replayed of each task, and a note where the rule gave way.

    steady: the factor on references (1, or less: see `ToEnd._shrinkage`).
    """
    memory, trained = past.memory, new.trained
    if new.aside is not None and groups_of(new.data) is not None and GROUP not in memory.columns:
        memory.join_column(GROUP, alone(memory["id"].cpu() if len(memory) else torch.zeros(0).long()))
    stay = _held_back_slots(past, new)
    replayed = _released(past, by.tasks, stay, new.groups_held_back)
    capacity = memory.capacity - len(stay) - sum(map(len, new.held_back))
    available = [*replayed.counts.tolist(), len(trained)]
    division = divided(by.partition, by.weights, memory.bound, capacity, available)
    labels = memory["y"].cpu() if len(memory) else torch.zeros(0)
    kept = kept_slots(
        by.selection, replayed, division.counts[:-1], by.duals if by.by_sample else None, labels, generator
    )
    chosen, shadows = chosen_positions(by.selection, trained, division.counts[-1], by.score, generator)
    if len(memory):
        memory["dual"].copy_(by.duals)
    rows = _rows(past, new, chosen, shadows, forward, steady)
    memory.replace(torch.cat([kept, stay]), **rows)
    return _replayed(past, new.task + 1), division.note


def _released(past: StoredSamples, replayed: Sets, stay: Tensor, new: Tensor) -> Sets:
    """What is replayed of past tasks, with the guards and witnesses that lost their place (not in `stay`).

    None of a group that still has samples held back. new: groups that have some in the newest task.
    """
    if not len(past.memory):
        return replayed
    free = past.memory.read("role").cpu() != REPLAY
    free[stay] = False
    if GROUP in past.memory.columns:
        group = past.memory.read(GROUP).cpu()
        free &= ~torch.isin(group, torch.cat([group[stay], new]))
    if not bool(free.any()):
        return replayed
    role = past.memory["role"]
    role[free.to(role.device)] = REPLAY
    return task_sets(past.memory["task"].cpu(), len(replayed.counts), (role.cpu() == REPLAY).nonzero().flatten())


def _replayed(past: StoredSamples, tasks: int) -> list[int]:
    """n_k as held: under a bound in bytes long sequences may have left less room than was divided."""
    owners = past.memory["task"][past.memory.read("role") == REPLAY]
    held: list[int] = torch.bincount(owners.cpu(), minlength=tasks).tolist()
    return held


def _held_back_slots(past: StoredSamples, new: Incoming) -> Tensor:
    """Slots of past guards and witnesses that stay."""
    if not len(past.memory):
        return torch.zeros(0, dtype=torch.long)
    role, owner = past.memory.read("role").cpu(), past.memory["task"].cpu()
    each = past.wanted(new.data, limited=True)
    kinds = ((GUARD, each.guards), (WITNESS, each.witnesses))
    found = [surviving(role, owner, kind, new.task + 1, most) for kind, most in kinds]
    return torch.cat([torch.zeros(0, dtype=torch.long), *found])


def _rows(
    past: StoredSamples, new: Incoming, chosen: Tensor, shadows: Tensor, forward: Forward, steady: float
) -> dict[str, Any]:
    data, held_back = new.data, new.held_back
    positions = torch.cat([chosen if new.aside is None else new.aside.trained[chosen], *held_back])
    x, y = fetched(past.memory, data.fetch, positions)
    x = past.to_store(x, y, len(chosen))
    outputs = forward(x)
    y = y.to(past.place)
    roles = torch.tensor([REPLAY, GUARD, WITNESS], dtype=torch.uint8)
    rows = {
        "x": x,
        "y": y,
        "task": torch.full((len(positions),), new.task),
        "id": positions + new.first_id,
        "dual": torch.cat([shadows, torch.zeros(len(positions) - len(chosen))]),
        "reference": past.goal.loss(outputs, y).to(torch.get_default_dtype()) * steady,
        "role": torch.repeat_interleave(roles, torch.tensor([len(chosen), *map(len, held_back)])),
        "wrong": past.wrong(outputs, y),
    }
    if GROUP in past.memory.columns:
        groups = groups_of(data)
        rows[GROUP] = alone(positions + new.first_id) if groups is None else groups[positions]
    if CODES in past.memory.columns:
        rows[CODES] = past.segments.encode(data.columns if isinstance(data, Data) else {}, positions)
    if past.records:
        rows["outputs"] = outputs
    return rows


def alone(ids: Tensor) -> Tensor:
    """Groups of samples that came without one: each its own, below 0, where no given group is."""
    return -1 - ids
