"""Primal-dual continual learning (Elenter et al., 2024): Algorithm 1, with its choices as options.

`min L_t(θ)  s.t.  L_k(θ) ≤ ε_k for every past task k` is solved by alternating primal steps on the Lagrangian and
projected ascent on the duals. Duals weigh what is replayed, divide the memory (PB, BP) and choose its samples (FB).

    pdcl0    dual weights, uniform partition, uniform filling
    pdcl     + partition by dual
    pdcl-s   duals per sample, partition and filling by dual
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from pdcl.duality.replay import cumulate, draw_by_dual, draw_samples_by_dual, draw_stratified, draw_uniform
from pdcl.duality.tolerance import Relative, Rise, Tolerance, as_tolerance, describe
from pdcl.errors import UsageError
from pdcl.learners.constraints import Duals
from pdcl.learners.filling import SAMPLE_TOLERANCE, Filling
from pdcl.learners.replay import Rehearsal
from pdcl.learners.slacks import Slacks
from pdcl.streams.task import Spec, Task
from pdcl.training.batches import Batch
from pdcl.training.events import DualsMoved, Infeasible
from pdcl.training.learner import Step

CHOICES = {
    "level": ("task", "sample"),
    "partition": ("uniform", "affine", "generalization"),
    "selection": ("uniform", "dual"),
    "estimator": ("dual", "uniform", "stratified"),
    "slack": ("memory", "batch", "ema"),
    "constrain": ("loss", "drift", "both"),
}
RECENT = 0.2


@dataclass(eq=False)
class PDCL(Rehearsal):
    """Primal-dual continual learning: past tasks stay within their tolerance, at a price found while learning.

    tolerance: ε_k: a loss (0.05), one per task, relative to what a task reached ("1.1x"), an error rate ("5%")
    dual_lr: η_d, the step of dual ascent
    dual_steps: dual steps per task, spread evenly over it
    primal_steps: T_p, primal steps per dual step, instead of dual_steps
    level: a dual per past task, or per stored sample
    partition: memory divided evenly, by dual (affine, PB) or by dual and generalisation gap (generalization, BP)
    selection: which samples are kept: any (uniform), or by dual (FB)
    alpha: how far the affine partition follows the duals
    minimum: the least that generalization gives a task
    current_cap: the most that the affine partition gives the newest task, in even shares (0: no cap, the paper's rule)
    estimator: how replayed samples are drawn: by dual, uniform, stratified
    slack: measured on memory, on the replayed batches, or on memory and smoothed (ema)
    slack_samples: at most so many stored samples per measurement
    decay: κ, which relaxes each tolerance by κ λ
    gain: K_p, a proportional answer to a slack besides the accumulated one
    start: what duals start a task with
    warm: keep duals from the task before
    normalise: divide the Lagrangian by 1 + ‖λ‖₁
    constrain: the loss of stored samples, the drift of their outputs, or both
    drift: weight of the squared drift added to a replayed sample's loss, under the same dual
    drift_tolerance: ε of the drift, where it is constrained
    clip: the quantile that duals are clipped at for selection (1: not at all)
    uniform_share: how much of the selection is uniform (0: none, the paper's rule)
    balance: keep as many samples of each class within a task
    """

    tolerance: Tolerance | float | str = "1.1x"
    dual_lr: float = 0.1
    dual_steps: int = 60
    primal_steps: int | None = None
    level: str = "task"
    partition: str = "affine"
    selection: str = "uniform"
    alpha: float = 0.5
    minimum: int = 5
    current_cap: float = 1.0
    estimator: str = "dual"
    slack: str = "memory"
    slack_samples: int = 512
    decay: float = 0.0
    gain: float = 0.0
    start: float = 0.0
    warm: bool = False
    normalise: bool = True
    constrain: str = "loss"
    drift: float = 0.0
    drift_tolerance: float = 0.1
    clip: float = 0.9
    uniform_share: float = 0.5
    balance: bool = True

    persistent: ClassVar[tuple[str, ...]] = (
        "samples_seen", "tolerances", "agreed", "clock", "period", "observed", "recent", "shadow", "current_dual",
        "carried", "last_duals",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise UsageError(f"{name}={getattr(self, name)!r} is unknown; choose one of {', '.join(allowed)}")
        for name in ("alpha", "clip", "uniform_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name}={getattr(self, name)} must lie between 0 and 1")
        for name in ("dual_lr", "drift_tolerance", "decay", "gain", "start", "drift", "current_cap"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name}={getattr(self, name)} must not be negative")
        if self.dual_steps < 1 or (self.primal_steps is not None and self.primal_steps < 1):
            raise UsageError("dual_steps and primal_steps must be at least 1")
        self.limit = as_tolerance(self.tolerance)
        self.quantities = {"loss": ("loss",), "drift": ("drift",), "both": ("loss", "drift")}[self.constrain]
        self.records_outputs = self.constrain != "loss" or self.drift > 0

    def prepare(self, spec: Spec) -> None:
        super().prepare(spec)
        self.tolerances: list[float] = []
        self.carried: list[float] = []
        self.last_duals: list[float] = []
        self.shadow = torch.zeros(0)
        self.current_dual = 0.0
        self.clock = 0
        self.period = 1
        self.observed = 0
        self.recent: float | None = None
        self.agreed: dict[str, str] = {}
        self.filling = Filling(self)
        self.measure = Slacks(self)

    def begin(self, task: Task, steps: int) -> None:
        self.clock, self.observed, self.current_dual, self.recent = 0, 0, 0.0, None
        self.period = self.primal_steps or max(1, steps // self.dual_steps)
        self.shadow = torch.zeros(len(task.data)) if self.selection == "dual" else torch.zeros(0)
        self._loss_sum, self._loss_count = torch.zeros(()), 0
        self._lay_out()
        tolerances = self._tolerance_matrix()
        start = torch.full_like(tolerances, self.start)
        if self.warm:
            start[:, : len(self.carried)] = torch.tensor(self.carried, dtype=torch.float64)
        self.duals = Duals(tolerances, start, self.dual_lr, self.gain, self.decay)
        self._price()

    def _lay_out(self) -> None:
        """Where each past task's samples lie: memory is sorted by task."""
        self.past = len(self.tolerances)
        counts = self.held.counts(self.past)
        self.counts = torch.tensor(counts, dtype=torch.long)
        self.offsets = self.counts.cumsum(0) - self.counts
        self.task_of = torch.repeat_interleave(torch.arange(self.past), self.counts)
        self.measure.lay_out()

    def _tolerance_matrix(self) -> Tensor:
        """ε per quantity and constraint; a sample may have 1.1 times what its task may have."""
        rows = {"loss": self.tolerances, "drift": [self.drift_tolerance] * self.past}
        matrix = torch.tensor([rows[q] for q in self.quantities], dtype=torch.float64)
        return matrix if self.level == "task" else SAMPLE_TOLERANCE * matrix[:, self.task_of]

    def _price(self) -> None:
        """What the draws and weights need of the duals, computed once a dual step."""
        each = self.duals.values.sum(0)
        masses = each if self.level == "task" else each / self.counts[self.task_of]
        self.norm = float(masses.sum())
        self.cumulative = cumulate(masses, self.counts if self.level == "task" else None)
        self.shares = self.duals.values / each.clamp(min=torch.finfo(torch.float64).tiny)

    def step(self, batch: Batch) -> Step:
        slots, weights = self._draw()
        n = len(batch)
        if not len(slots):
            losses = self.losses(self.outputs(batch.x), batch.y)
            self.descend(losses)
        else:
            outputs = self.outputs(torch.cat([batch.x, self.held.read("x", slots)]))
            losses = self._terms(batch, outputs, slots)
            scale = 1 / (1 + self.norm) if self.normalise else 1.0
            self.descend(losses, torch.cat([weights.new_full((n,), scale / n), scale * weights.flatten()]))
            self.measure.offer(slots, losses.detach()[n:].view(weights.shape))
        current = losses.detach()[:n]
        self._observe(batch, current)
        return Step(current, {"norm": self.norm})

    def _terms(self, batch: Batch, outputs: Tensor, slots: Tensor) -> Tensor:
        """What the Lagrangian sums, each with its weight: the batch's losses, then every quantity of the replayed."""
        if not self.records_outputs:
            return self.losses(outputs, torch.cat([batch.y, self.held.read("y", slots)]))
        n = len(batch)
        return torch.cat([self.losses(outputs[:n], batch.y), self.constrained(outputs[n:], slots).flatten()])

    def _draw(self) -> tuple[Tensor, Tensor]:
        """Slots to replay and a weight per quantity and slot: unbiased for Σ λ_k L_k. Nothing to replay: none."""
        if not len(self.held) or (self.norm == 0 and not self._replays_at_no_weight()):
            return torch.zeros(0, dtype=torch.long), torch.zeros(0)
        slots, weights = self._estimate()
        if len(self.quantities) == 1:
            return slots, weights[None].to(self.place, torch.float32)
        constraint = slots if self.level == "sample" else self.task_of[slots]
        return slots, (weights * self.shares[:, constraint]).to(self.place, torch.float32)

    def _replays_at_no_weight(self) -> bool:
        """Batch statistics must go on seeing the past, and slacks from batches need batches."""
        return self.batch_statistics or self.slack == "batch"

    def _estimate(self) -> tuple[Tensor, Tensor]:
        m, random = self.replay, self.generator
        if self.norm == 0 or self.slack == "batch":
            return draw_uniform(self._task_duals(), self.task_of, self.counts, m, random)
        if self.level == "sample":
            return draw_samples_by_dual(self.cumulative, m, random)
        if self.estimator == "dual":
            return draw_by_dual(self.cumulative, self.offsets, self.counts, m, random)
        if self.estimator == "stratified":
            return draw_stratified(self._task_duals(), self.offsets, self.counts, m, random)
        return draw_uniform(self._task_duals(), self.task_of, self.counts, m, random)

    def constrained(self, outputs: Tensor, slots: Tensor) -> Tensor:
        """What the Lagrangian differentiates, quantities × samples."""
        rows = []
        gap = None
        if self.records_outputs:
            gap = (outputs - self.held["outputs"][slots]).square().flatten(1).mean(1)
        if "loss" in self.quantities:
            losses = self.losses(outputs, self.held["y"][slots])
            rows.append(losses + self.drift * gap if gap is not None and self.drift else losses)
        if "drift" in self.quantities:
            assert gap is not None
            rows.append(gap)
        return torch.stack(rows)

    def _observe(self, batch: Batch, losses: Tensor) -> None:
        """Account for the current batch, and take a dual step when it is time."""
        self._loss_sum = self._loss_sum + losses.mean()
        self._loss_count += 1
        self.observed += len(batch)
        if len(self.shadow):
            self._raise_shadows(batch.index, losses.cpu())
        self.clock += 1
        if self.clock % self.period == 0:
            self._dual_step()

    def _raise_shadows(self, index: Tensor, losses: Tensor) -> None:
        own = index < len(self.shadow)
        index, slack = index[own], losses[own] - SAMPLE_TOLERANCE * self.current_tolerance()
        self.shadow[index] = (self.shadow[index] + self.dual_lr * slack).clamp(min=0)

    def current_tolerance(self) -> float:
        """ε of the task being learned; a relative one isn't known yet, so its floor stands in."""
        if isinstance(self.limit, Relative | Rise):
            return self.limit.floor
        return self.limit.of(len(self.tolerances), None)

    def _dual_step(self) -> None:
        mean = float(self._loss_sum) / self._loss_count
        self.recent = mean if self.recent is None else self.recent + RECENT * (mean - self.recent)
        self._loss_sum, self._loss_count = torch.zeros((), device=self.place), 0
        self.current_dual = max(0.0, self.current_dual + self.dual_lr * (mean - self.current_tolerance()))
        if not self.past:
            return
        slacks, visited, by_task = self.measure()
        self.duals.ascend(slacks, visited)
        self._price()
        duals = self._task_duals()
        self.duals.remember(duals, by_task)
        self.emit(
            DualsMoved(
                len(self.tolerances), self.clock, duals.tolist(), by_task.tolist(), self.tolerances, self.current_dual
            )
        )

    def _task_duals(self) -> Tensor:
        """λ_k of every past task: the mean over its samples at the sample level, the sum over quantities."""
        each = self.duals.values.sum(0)
        if self.level == "task":
            return each
        return torch.zeros(self.past, dtype=torch.float64).index_add(0, self.task_of, each) / self.counts

    def end(self, task: Task) -> None:
        duals = self._task_duals()
        for k in self.duals.infeasible():
            slack = float(self.duals.slacks[-1][k])
            limit = self.tolerances[k]
            self.emit(Infeasible(task.index, k, float(duals[k]), slack, limit, limit + slack))
        self.last_duals = [*duals.tolist(), self.current_dual]
        self.carried = self.last_duals if self.level == "task" else []
        self.filling(task, self.last_duals)
        self.clock = 0
        super().end(task)

    def agree_on(self, task: int, tolerance: Any) -> None:
        """A tolerance of one task's own, in the unit that all have."""
        if tolerance is None:
            return
        own = as_tolerance(tolerance)
        if own.unit != self.limit.unit:
            raise UsageError(f"tolerance={tolerance!r} is in {own.unit}, those of other tasks in {self.limit.unit}")
        self.agreed[str(task)] = describe(own)

    def limit_of(self, task: int) -> Tolerance:
        return as_tolerance(self.agreed[str(task)]) if str(task) in self.agreed else self.limit

    def final_duals(self) -> list[float]:
        return self.last_duals

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state["duals"] = self.duals.state() if self.clock else {}
        state["running"] = {"sum": self._loss_sum, "count": self._loss_count} if self.clock else {}
        state["measure"] = self.measure.state() if self.clock else {}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        if not state["duals"]:
            return
        self._lay_out()
        blank = torch.zeros(0)
        self.duals = Duals(blank, blank, self.dual_lr, self.gain, self.decay)
        self.duals.restore(state["duals"])
        self._loss_sum, self._loss_count = state["running"]["sum"], state["running"]["count"]
        self.measure.restore(state["measure"])
        self._price()
