"""How far past tasks are from their tolerances: slacks of every constraint, measured as a slack rule says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from pdcl.core.sets import Sets
from pdcl.duality.lagrangian import task_means
from pdcl.duality.slack_rules import SlackRule, smoothing_weights
from pdcl.errors import Diverged


class Gauge:
    """Measures s = value − ε for one task's constraints. tasks: a set per past task; sets: a set per constraint."""

    def __init__(self, rule: SlackRule, tasks: Sets, sets: Sets, generator: Generator) -> None:
        self.rule, self.tasks, self.sets, self.generator = rule, tasks, sets, generator
        self.smooth: Tensor | None = None
        self.offered: list[tuple[Tensor, Tensor]] = []
        self.looked_at = rule.looks(tasks.counts)
        self.whole = bool((self.looked_at == tasks.counts).all()) and not rule.from_batches
        self.strata = torch.repeat_interleave(torch.arange(len(tasks)), self.looked_at)

    def offer(self, slots: Tensor, values: Tensor) -> None:
        """Values of replayed samples, for a rule that makes slacks of them. values: [Q, slots]."""
        self.offered.append((slots, values))

    def measure(
        self, tolerances: Tensor, by_task: list[float], read: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Slacks [Q, constraints measured], which constraints those are (None: all), and slacks by task.

        tolerances: [Q, C]; by_task: ε_k; read: values compared with ε, [Q, slots], of stored samples.
        """
        slots, tasks, values = self._batch() if self.rule.from_batches else self._memory(read)
        if not bool(values.isfinite().all()):
            raise Diverged("losses on memory are no longer finite; lower lr or dual_lr")
        means = torch.stack([task_means(row, tasks, len(self.tasks)) for row in values])
        if self.sets is not self.tasks:
            visited = None if self.whole else slots
            limits = tolerances if visited is None else tolerances[:, visited]
            return values - limits, visited, means[0] - torch.tensor(by_task, dtype=torch.float64)
        slacks = self._smoothed(means - tolerances)
        seen = (~slacks[0].isnan()).nonzero().flatten()
        if len(seen) < len(self.tasks):
            return slacks[:, seen], seen, slacks[0]
        return slacks, None, slacks[0]

    def _memory(self, read: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """All stored samples, or a fresh stratified sample of them, in eval mode and unaugmented."""
        if self.whole:
            slots, tasks = self.tasks.members, self.tasks.owners
            return slots, tasks, read(slots)
        u = torch.rand(len(self.strata), generator=self.generator, dtype=torch.float64)
        places = self.tasks.offsets[self.strata] + (u * self.tasks.counts[self.strata]).long()
        places = places.unique() if self.sets is not self.tasks else places
        slots = self.tasks.members[places]
        return slots, self.tasks.owners[places], read(slots)

    def _batch(self) -> tuple[Tensor, Tensor, Tensor]:
        slots = torch.cat([slots for slots, _ in self.offered])
        values = torch.cat([values for _, values in self.offered], 1).double().cpu()
        self.offered = []
        owner = torch.empty(int(self.tasks.members.max()) + 1, dtype=torch.long)
        owner[self.tasks.members] = self.tasks.owners
        return slots, owner[slots], values

    def _smoothed(self, slacks: Tensor) -> Tensor:
        """s̄ ← s̄ + a (s − s̄), where asked for and where a task shows too few samples to trust one look."""
        if self.rule.from_batches or (self.whole and self.rule.smoothing == 1):
            return slacks
        weight = smoothing_weights(self.rule.smoothing, self.looked_at, self.tasks.counts)
        self.smooth = slacks if self.smooth is None else self.smooth + weight * (slacks - self.smooth)
        return self.smooth

    def state_dict(self) -> dict[str, Any]:
        return {"smooth": self.smooth, "offered": [list(pair) for pair in self.offered]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.smooth = state["smooth"]
        self.offered = [(slots, values) for slots, values in state["offered"]]
