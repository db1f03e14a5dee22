"""The end of a task: how many samples memory keeps of each task, and which. Functions from values to values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from pdcl.algorithm.constraints import Sets
from pdcl.algorithm.partition import uniform_partition
from pdcl.algorithm.partition_rules import PartitionRule, Undivided
from pdcl.algorithm.selection import select, select_each
from pdcl.algorithm.selection_rules import SelectionRule
from pdcl.errors import UsageError
from pdcl.streams.data import Data


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
