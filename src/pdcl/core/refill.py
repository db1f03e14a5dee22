"""The end of a task: how many samples memory keeps of each task, and which. Functions from values to values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from pdcl.core.sets import Sets
from pdcl.duality.partition import uniform_partition
from pdcl.duality.partition_rules import PartitionRule, Undivided
from pdcl.duality.selection import select
from pdcl.duality.selection_rules import SelectionRule
from pdcl.errors import UsageError
from pdcl.memory.store import Memory


class Source(Protocol):
    """A task's samples, fetched by position."""

    @property
    def targets(self) -> Tensor: ...

    def fetch(self, index: Tensor) -> tuple[Any, Tensor]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Refilled:
    """n_k of every task, the slots that stay, the positions of the newest task that are stored, a note to pass on."""

    counts: list[int]
    kept: Tensor
    chosen: Tensor
    note: str | None = None


@dataclass(frozen=True)
class ToleranceChange:
    """ε of `task` went from `old` to `new`; `reached` on memory and on the task's data at large, where measured."""

    task: int
    old: float | None
    new: float
    unit: str
    why: str
    reached: float
    reached_on_all: float | None


def divided(
    rule: PartitionRule, duals: list[float], memory: Memory, available: list[int]
) -> tuple[list[int], str | None]:
    """n_k for every task so far, the newest last, and a note where the rule had to give way."""
    capacity, tasks = memory.capacity, len(duals)
    if capacity < tasks:
        raise UsageError(f"memory={memory.bound} holds {capacity} samples, fewer than the {tasks} tasks so far")
    try:
        return rule.counts(duals, capacity, available), None
    except Undivided as reason:
        return uniform_partition(tasks, capacity, available), f"{reason}: divided evenly"


def kept_slots(
    rule: SelectionRule,
    tasks: Sets,
    counts: list[int],
    duals: Tensor | None,
    labels: Tensor,
    generator: Generator,
) -> Tensor:
    """Slots of past samples that stay, task by task. duals: one per slot (None: any sample alike)."""
    kept = [torch.zeros(0, dtype=torch.long)]
    weights = rule.weights(duals) if rule.by_dual and duals is not None else None
    for members, count in zip(tasks.members.split(tasks.counts.tolist()), counts, strict=True):
        own = torch.ones(len(members)) if weights is None else weights[members]
        kept.append(members[select(own, count, generator, balancing(rule, labels[members]))])
    return torch.cat(kept)


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
    return targets.cpu() if rule.balance and not targets.is_floating_point() and targets.ndim == 1 else None
