"""Lines 10 and 11 of Algorithm 1: divide memory, fill it, set the limits anew; then judge what became of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdcl.algorithm.constraints import base_weight
from pdcl.algorithm.dual_rules import infeasible
from pdcl.algorithm.partition_rules import FIVE_POINTS
from pdcl.judging.table import Promises
from pdcl.judging.witnesses import Newest, after_task
from pdcl.limits.tolerances import ToleranceChange
from pdcl.past.refill import Incoming, Refill, Source, groups_of
from pdcl.past.stored import Forward, Reached

if TYPE_CHECKING:
    from pdcl.learning.primal_dual import PrimalDual

# Candidates may be all of a task's data, which may be larger than memory.
AT_ONCE = 1000

# What a task without a limit is taken to be allowed: ten points more error than it had.
WITHOUT_LIMIT = 0.1


@dataclass(frozen=True)
class OutOfReach:
    """A past task (or a segment) that is over its tolerance while its dual still rises, or can't rise any more.

    task: its number; segments are counted behind the past tasks.
    """

    task: int
    name: str
    dual: float
    slack: float
    tolerance: float


@dataclass(frozen=True)
class Ended:
    """What the end of a task changed, and what became of its promises."""

    duals: list[float]
    counts: list[int]
    out_of_reach: list[OutOfReach] = field(default_factory=list)
    tolerances: list[ToleranceChange] = field(default_factory=list)
    note: str | None = None
    promises: Promises | None = None


@dataclass(frozen=True, eq=False)
class ToEnd:
    """A task that is to end. data: all of its samples; first_id: the id that its first sample gets."""

    core: PrimalDual
    name: str
    data: Source
    forward: Forward
    first_id: int

    def end(self) -> Ended:
        core, task = self.core, self.core.past_tasks
        missed = out_of_reach(core)
        self._keep_duals()
        core.tolerances.names[task:] = [self.name]
        core.past.allocate(self.data, self.forward)
        reached = core.past.reached(self.new.trained, self.forward)
        counts, note = core.past.fill(
            self.new, self._refill(reached), self.forward, self._shrinkage(reached), core.generator
        )
        in_error = [core.tolerances.unit(k) == "error" for k in range(task + 1)]
        on_all = reached.error if in_error[-1] else reached.loss
        changes = core.tolerances.set(core.past.references(task + 1, in_error), on_all)
        core.registry.register_task(task, self.data.targets, groups_of(self.data), core.progress.clock > 0)
        promises = self._judged(reached) if core.tolerances.stated_any else None
        core.progress.clock, core.aside = 0, None
        return Ended(core.last_duals, counts, missed, changes, note, promises)

    def _keep_duals(self) -> None:
        """What reports, a partition and a warm start need of the duals."""
        core, duals = self.core, self.core.algorithm
        core.last_duals = [*duals.task_duals().tolist(), core.progress.current_dual] if core.pursues else []
        core.carried = core.last_duals if core.choices.level == "task" else []
        core.segment_duals = duals.duals.values[core.past_tasks :].tolist() if core.past.segments else []

    @cached_property
    def new(self) -> Incoming:
        return Incoming(self.core.past_tasks, self.data, self.core.aside, self.first_id)

    def _refill(self, reached: Reached) -> Refill:
        core = self.core
        by_sample = core.choices.level == "sample"
        duals, sets = core.algorithm.duals.values, core.algorithm.constraints.sets
        if by_sample:
            each = torch.zeros(len(core.memory), dtype=torch.float64)
            each[sets.members] = duals
        else:
            each = core.task_duals()[core.task_of]
        return Refill(
            tasks=core.algorithm.constraints.tasks,
            duals=each,
            by_sample=by_sample,
            weights=self._shares(reached),
            score=self._score(),
            partition=core.partition,
            selection=core.choices.selection,
        )

    def _shares(self, reached: Reached) -> list[float]:
        """What the partition goes by: duals, the newest task's artificial one last; or the rooms of limits."""
        core, past = self.core, self.core.past_tasks
        if not core.partition.by_room:
            return core.last_duals or [0.0] * (past + 1)
        before = core.past.references(past, [True] * past) if past else []
        return [self._room(k, had) for k, had in enumerate([*before, reached.error])]

    def _room(self, task: int, had: float) -> float:
        """How far a task's error may rise from what it was, and 5 points; for a task without such a limit, 10 and 5.

        5 points are added because the difficulty of a task is unknown: the error on stored, memorised samples doesn't
        show it. So the wider limit of a hard task doesn't count as loose, nor +10pt, which plain replay may use up.
        """
        limit = self.core.tolerances.of(task)
        if limit is None or limit.unit != "error" or had != had:
            return WITHOUT_LIMIT + FIVE_POINTS
        return limit.of(task, had) - had + FIVE_POINTS

    def _score(self) -> Callable[[Tensor], Tensor]:
        """Shadow duals of candidates; with `rescore`, updated by their present losses.

        After one pass a shadow dual reflects the loss at first sight, so only the present loss counts. After several
        passes it is added to the dual.
        """
        core, trained = self.core, self.new.trained
        shadow, lr, tolerance = core.progress.shadow, core.dual.shadow_lr, core.sample_tolerance

        def score(candidates: Tensor) -> Tensor:
            if not core.choices.selection.rescore:
                return shadow[candidates]
            losses = torch.cat([self._losses(trained, part) for part in candidates.split(AT_ONCE)])
            now = (losses - tolerance).clamp(min=0)
            return now if core.progress.observed <= len(trained) else shadow[candidates] + lr * now

        return score

    def _losses(self, data: Source, positions: Tensor) -> Tensor:
        x, y = data.fetch(positions)
        return self.core.goal.loss(self.forward(x), y.to(self.core.place)).cpu()

    def _shrinkage(self, reached: Reached) -> float:
        """Shrink references if the last iterate is worse than recent ones.

        The last iterate of stochastic descent may be far worse than those before it (a mean loss of .9 after .05 was
        seen online), and a tolerance relative to it would be no tolerance. If the task's loss now exceeds its mean over
        the last dual steps, references shrink by that factor.
        """
        recent = self.core.progress.recent
        return 1.0 if recent is None or reached.loss <= recent else recent / reached.loss

    def _judged(self, reached: Reached) -> Promises:
        core, task = self.core, self.core.past_tasks
        weight = task * base_weight(core.choices.base, core.choices.base_most, task)
        replayed = core.algorithm.constraints.tasks.counts.tolist()
        passes = core.progress.observed / max(1, len(self.new.trained))
        newest = Newest(reached, replayed, weight, core.open_ended, passes)
        return after_task(core.past, core.tolerances, core.registry, newest, self.forward)


def out_of_reach(core: PrimalDual) -> list[OutOfReach]:
    """Which limits look as if no dual could keep them."""
    history, slacks = core.progress.history, core.progress.slacks
    if not history:
        return []
    duals, slack = history[-1], slacks[-1]
    rising = infeasible(torch.stack(history), torch.stack(slacks))
    found = (rising | ((duals >= 0.99 * core.dual.most) & (slack > 0))).nonzero().flatten().tolist()
    limits = core.algorithm.constraints.task_limits.tolist()
    names = [*map(core.tolerances.name, range(core.past_tasks)), *core.past.segments.names]
    return [OutOfReach(k, names[k], float(duals[k]), float(slack[k]), limits[k]) for k in found]
