"""What a learner is shown: tasks one after another, and what can be known before the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from pdcl.streams.data import Data
from pdcl.streams.transform import Transform
from pdcl.trees import LeafSpec, Tree, unflatten


@dataclass(frozen=True)
class Task:
    """The data of one step of a stream. `classes` are head indices ((): not a classification task)."""

    index: int
    name: str
    data: Data
    test: Data
    classes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Spec:
    """What is known of a stream before its first task.

    `kind` is "classification", "regression", "multilabel" or "tokens"; `labels` are the user's names of the head's
    outputs, in head order; `heads` are the classes of every task, where the tasks are known beforehand. `leaves`
    describe inputs that aren't one tensor; `shape` is then () and `dtype` that of the first.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    outputs: int
    kind: str = "classification"
    labels: tuple[Any, ...] = ()
    heads: tuple[tuple[int, ...], ...] | None = None
    transform: Transform = field(default_factory=Transform)
    leaves: tuple[LeafSpec, ...] = ()

    def blank(self, count: int) -> Tree:
        """Samples of zeros."""
        if not self.leaves:
            return torch.zeros((count, *self.shape), dtype=self.dtype)
        return unflatten({leaf.name: leaf.blank(count) for leaf in self.leaves})

    @property
    def expected(self) -> tuple[LeafSpec, ...]:
        """What every leaf of a batch must be; one tensor is a leaf without a name."""
        return self.leaves or (LeafSpec("", self.shape, self.dtype),)

    def inputs(self) -> str:
        """What a sample is, for people."""
        return ", ".join(map(str, self.leaves)) or f"{self.shape} {str(self.dtype).removeprefix('torch.')}"

    @property
    def tasks(self) -> int | None:
        """How many tasks will come, where that is known."""
        return None if self.heads is None else len(self.heads)


@dataclass(frozen=True)
class Stream:
    """An ordered list of tasks. `preset` names the option table made for it (None: `auto`); `groups` are the names of
    what the data's `groups` count (none: their numbers)."""

    name: str
    tasks: Sequence[Task]
    spec: Spec
    preset: str | None = None
    fingerprint: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    groups: tuple[Any, ...] = ()

    def group_names(self, codes: Tensor) -> list[Any]:
        """The names of groups, by the numbers that the data has for them."""
        return [self.groups[code] for code in codes.tolist()] if self.groups else codes.tolist()

    def for_tuning(self, share: float = 0.1, seed: int = 0) -> Stream:
        """The same stream with `share` of each task's training data in place of its test data.

        Nothing that the result fetches is test data of the original, and no group is divided. Its options say
        `held_out`, by which `load` makes it again.
        """
        from pdcl.streams.held_out import hold_out_all

        options = {**self.options, "held_out": share, **({"held_out_seed": seed} if seed else {})}
        return replace(self, tasks=hold_out_all(self.tasks, share, seed), options=options)
