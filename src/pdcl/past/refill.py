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
        return select(torch.ones(total), count, generator, labels), torch.zeros(count)
    pool = rule.pool(total, count) if hasattr(rule, "pool") else total
    candidates = torch.randperm(total, generator=generator)[:pool]
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
    past: StoredSamples, task: int, data: Source, aside: HeldBack | None, by: Refill, forward: Forward, first_id: int,
    steady: float, generator: Generator,
) -> tuple[list[int], str | None]:  # fmt: skip
    """Divide memory, keep and choose samples: n_k replayed of each task, and a note where the rule gave way.

    steady: the factor on references (1, or less: see `ToEnd._shrinkage`).
    """
    if aside is not None and groups_of(data) is not None and GROUP not in past.memory.columns:
        past.memory.join_column(GROUP, alone(past.memory["id"].cpu() if len(past.memory) else torch.zeros(0).long()))
    trained = data if aside is None else View(data, aside.trained)
    stay = _held_back_slots(past, task, data)
    replayed = _released(past, by.tasks, stay, _groups_held_back(data, aside))
    new = 0 if aside is None else len(aside.guards) + len(aside.witnesses)
    capacity = past.memory.capacity - len(stay) - new
    available = [*replayed.counts.tolist(), len(trained)]
    division = divided(by.partition, by.weights, past.memory.bound, capacity, available)
    labels = past.memory["y"].cpu() if len(past.memory) else torch.zeros(0)
    kept = kept_slots(
        by.selection, replayed, division.counts[:-1], by.duals if by.by_sample else None, labels, generator
    )
    chosen, shadows = chosen_positions(by.selection, trained, division.counts[-1], by.score, generator)
    if len(past.memory):
        past.memory["dual"].copy_(by.duals)
    rows = _rows(past, task, data, aside, chosen, shadows, forward, first_id, steady)
    past.memory.replace(torch.cat([kept, stay]), **rows)
    return _replayed(past, task + 1), division.note


def _released(past: StoredSamples, replayed: Sets, stay: Tensor, new: Tensor) -> Sets:
    """What is replayed of past tasks, with the guards and witnesses that lost their place (not in `stay`).

    None of a group that still has samples held back. new: groups that have some in the newest task.
    """
    if not len(past.memory):
        return replayed
    role = past.memory["role"]
    free = role.cpu() != REPLAY
    free[stay] = False
    if GROUP in past.memory.columns:
        group = past.memory[GROUP].cpu()
        free &= ~torch.isin(group, torch.cat([group[stay], new]))
    if not bool(free.any()):
        return replayed
    role[free.to(role.device)] = REPLAY
    return task_sets(past.memory["task"].cpu(), len(replayed.counts), (role.cpu() == REPLAY).nonzero().flatten())


def _replayed(past: StoredSamples, tasks: int) -> list[int]:
    """n_k as held: under a bound in bytes long sequences may have left less room than was divided."""
    owners = past.memory["task"][past.memory["role"] == REPLAY]
    held: list[int] = torch.bincount(owners.cpu(), minlength=tasks).tolist()
    return held


def _held_back_slots(past: StoredSamples, task: int, data: Source) -> Tensor:
    """Slots of past guards and witnesses that stay."""
    if not len(past.memory):
        return torch.zeros(0, dtype=torch.long)
    role, owner = past.memory["role"].cpu(), past.memory["task"].cpu()
    each = past.wanted(data, limited=True)
    kinds = ((GUARD, each.guards), (WITNESS, each.witnesses))
    found = [surviving(role, owner, kind, task + 1, most) for kind, most in kinds]
    return torch.cat([torch.zeros(0, dtype=torch.long), *found])


def _rows(
    past: StoredSamples, task: int, data: Source, aside: HeldBack | None, chosen: Tensor, shadows: Tensor,
    forward: Forward, first_id: int, steady: float,
) -> dict[str, Any]:  # fmt: skip
    empty = torch.zeros(0, dtype=torch.long)
    guards, witnesses = (empty, empty) if aside is None else (aside.guards, aside.witnesses)
    positions = torch.cat([chosen if aside is None else aside.trained[chosen], guards, witnesses])
    x, y = fetched(past.memory, data.fetch, positions)
    x = past.to_store(x, y, len(chosen))
    outputs = forward(x)
    y = y.to(past.place)
    reference = past.goal.loss(outputs, y).to(torch.get_default_dtype()) * steady
    wrong = past.wrong(outputs, y)
    sizes = torch.tensor([len(chosen), len(guards), len(witnesses)])
    roles = torch.tensor([REPLAY, GUARD, WITNESS], dtype=torch.uint8)
    rows = {
        "x": x,
        "y": y,
        "task": torch.full((len(positions),), task),
        "id": positions + first_id,
        "dual": torch.cat([shadows, torch.zeros(len(positions) - len(chosen))]),
        "reference": reference,
        "role": torch.repeat_interleave(roles, sizes),
        "wrong": wrong,
    }
    if GROUP in past.memory.columns:
        groups = groups_of(data)
        rows[GROUP] = alone(positions + first_id) if groups is None else groups[positions]
    if CODES in past.memory.columns:
        rows[CODES] = past.segments.encode(data.columns if isinstance(data, Data) else {}, positions)
    if past.records:
        rows["outputs"] = outputs
    return rows


def alone(ids: Tensor) -> Tensor:
    """Groups of samples that came without one: each its own, below 0, where no given group is."""
    return -1 - ids


def _groups_held_back(data: Source, aside: HeldBack | None) -> Tensor:
    groups = groups_of(data)
    if aside is None or groups is None:
        return torch.zeros(0, dtype=torch.long)
    return groups[torch.cat([aside.guards, aside.witnesses])]
