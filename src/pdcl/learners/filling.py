"""The end of a task: partition memory by the duals (PB, BP), fill it (FB), and set the tolerances anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdcl.duality.partition import affine_partition, generalization_partition, uniform_partition
from pdcl.duality.selection import robust_weights, select
from pdcl.duality.tolerance import describe
from pdcl.errors import UsageError
from pdcl.streams.data import Data
from pdcl.streams.task import Task
from pdcl.training.events import Partitioned, ToleranceSet, Warned

if TYPE_CHECKING:
    from pdcl.learners.pdcl import PDCL

SAMPLE_TOLERANCE = 1.1
CANDIDATES_PER_PLACE = 4
FEWEST_CANDIDATES = 1000
LOOK_AT = 512


class Filling:
    """Decides how many and which samples memory keeps of each task."""

    def __init__(self, learner: PDCL) -> None:
        self.learner = learner

    def __call__(self, task: Task, duals: list[float]) -> None:
        learner = self.learner
        self._allocate(task.data)
        counts = self.partition(duals, [*learner.counts.tolist(), len(task.data)])
        kept = self._kept(counts[:-1])
        chosen, shadows = self._chosen(task, counts[-1])
        self._note_duals()
        learner.held.replace(kept, **self._rows(task, chosen, shadows))
        learner.emit(Partitioned(task.index, counts, duals, learner.held.capacity))
        self._set_tolerances(task)

    def partition(self, duals: list[float], available: list[int]) -> list[int]:
        """n_k for every task so far, the current one last."""
        learner, capacity, tasks = self.learner, self.learner.held.capacity, len(duals)
        if capacity < tasks:
            raise UsageError(f"memory={learner.memory} holds {capacity} samples, fewer than the {tasks} tasks so far")
        if learner.partition == "uniform":
            return uniform_partition(tasks, capacity, available)
        if learner.partition == "affine":
            cap = min(1.0, learner.current_cap / tasks) or None
            return affine_partition(duals, capacity, learner.alpha, available, current_cap=cap)
        if capacity < tasks * learner.minimum:
            text = f"memory of {capacity} is below {learner.minimum} samples for each of {tasks} tasks: divided evenly"
            learner.emit(Warned(tasks - 1, text))
            return uniform_partition(tasks, capacity, available)
        # BP weighs the current task by 1: its loss stands in the Lagrangian with that weight.
        return generalization_partition([*duals[:-1], 1.0], capacity, learner.minimum, available)

    def _kept(self, counts: list[int]) -> Tensor:
        """Slots of past samples that stay, task by task."""
        learner, kept = self.learner, [torch.zeros(0, dtype=torch.long)]
        weights = self._weights(learner.duals.values.sum(0)) if self._by_dual() else None
        for offset, held, count in zip(learner.offsets.tolist(), learner.counts.tolist(), counts, strict=True):
            slots = torch.arange(offset, offset + held)
            own = torch.ones(held) if weights is None else weights[slots]
            kept.append(slots[select(own, count, learner.generator, self._labels(learner.held["y"][slots]))])
        return torch.cat(kept)

    def _by_dual(self) -> bool:
        return self.learner.selection == "dual" and self.learner.level == "sample"

    def _chosen(self, task: Task, count: int) -> tuple[Tensor, Tensor]:
        """Positions of the current task's samples that are stored, and their shadow duals."""
        learner = self.learner
        total = len(task.data)
        if learner.selection == "uniform":
            labels = self._labels(task.data.targets)
            return select(torch.ones(total), count, learner.generator, labels), torch.zeros(count)
        pool = min(total, max(FEWEST_CANDIDATES, CANDIDATES_PER_PLACE * count))
        candidates = torch.randperm(total, generator=learner.generator)[:pool]
        duals = self._candidate_duals(task.data, candidates)
        labels = self._labels(task.data.targets[candidates])
        chosen = select(self._weights(duals), count, learner.generator, labels)
        return candidates[chosen], duals[chosen].float()

    def _note_duals(self) -> None:
        """Duals go with their samples: from now on they stand in memory beside them."""
        learner = self.learner
        if len(learner.held):
            each = learner.duals.values.sum(0)
            learner.held["dual"].copy_(each if learner.level == "sample" else each[learner.task_of])

    def _candidate_duals(self, data: Data, candidates: Tensor) -> Tensor:
        """Shadow duals. After a single pass they say how hard a sample was when it came: look again how hard it is."""
        learner = self.learner
        x, y = data.fetch(candidates)
        losses = learner.losses(learner.evaluated(x), y.to(learner.place)).cpu()
        now = (losses - SAMPLE_TOLERANCE * learner.current_tolerance()).clamp(min=0)
        return now if learner.observed <= len(data) else learner.shadow[candidates] + learner.dual_lr * now

    def _weights(self, duals: Tensor) -> Tensor:
        return robust_weights(duals, self.learner.clip, self.learner.uniform_share)

    def _labels(self, targets: Tensor) -> Tensor | None:
        return targets.cpu() if self.learner.balance and not targets.is_floating_point() and targets.ndim == 1 else None

    def _rows(self, task: Task, chosen: Tensor, shadows: Tensor) -> dict[str, Tensor]:
        learner = self.learner
        x, y = task.data.fetch(chosen)
        outputs = learner.evaluated(x)
        y = y.to(learner.place)
        rows = {
            "x": x,
            "y": y,
            "task": torch.full((len(chosen),), task.index),
            "id": chosen + learner.samples_seen,
            "dual": shadows,
            "reference": self._steadied(task, learner.measure.of_tolerance(outputs, y).float()),
        }
        return rows | {"outputs": outputs} if learner.records_outputs else rows

    def _steadied(self, task: Task, reference: Tensor) -> Tensor:
        """What each stored sample reached, without the luck of the last step.

        The last iterate of stochastic descent may be far worse than those before it (a mean loss of .9 after .05 was
        seen online), and a tolerance relative to it would be no tolerance. If the task's loss now exceeds its mean over
        the last dual steps, references shrink by that factor.
        """
        now, recent = self._reached_on_all(task), self.learner.recent
        if self.learner.limit.unit == "error" or recent is None or now <= recent:
            return reference
        return reference * (recent / now)

    def _allocate(self, data: Data) -> None:
        """Reserve memory before partitioning it: a bound in bytes is a number of samples only now."""
        learner = self.learner
        if learner.held.columns:
            return
        first = torch.zeros(1, dtype=torch.long)
        x, y = data.fetch(first)
        blank = {"task": first, "id": first, "dual": torch.zeros(1), "reference": torch.zeros(1)}
        if learner.records_outputs:
            blank["outputs"] = learner.evaluated(x)
        learner.held.allocate(x=x, y=y, **blank)

    def _set_tolerances(self, task: Task) -> None:
        """ε_k from what each task reached on the very samples that memory holds of it now."""
        learner, memory = self.learner, self.learner.held
        sums = torch.zeros(task.index + 1, dtype=torch.float64)
        sums.index_add_(0, memory["task"].cpu(), memory["reference"].double().cpu())
        reached = (sums / torch.tensor(memory.counts(task.index + 1)).clamp(min=1)).tolist()
        for k, value in enumerate(reached):
            old = learner.tolerances[k] if k < len(learner.tolerances) else None
            new = learner.limit_of(k).of(k, value)
            if old == new:
                continue
            why = "task learned" if old is None else "other samples of it are stored"
            beside = self._reached_on_all(task) if k == task.index else None
            text = f"{why}; {describe(learner.limit_of(k))}"
            learner.emit(ToleranceSet(task.index, k, old, new, learner.limit.unit, text, value, beside))
            learner.tolerances[k : k + 1] = [new]

    def _reached_on_all(self, task: Task) -> float:
        """The same value on the task's data at large (up to 512 samples of it), to set beside that on memory."""
        learner = self.learner
        total = len(task.data)
        x, y = task.data.fetch(torch.linspace(0, total - 1, min(total, LOOK_AT)).long())
        return float(learner.measure.of_tolerance(learner.evaluated(x), y.to(learner.place)).mean())
