"""The alternation of Algorithm 1: primal steps on the Lagrangian, then a dual step on the slacks, without a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pdcl.core.duals import Duals
from pdcl.core.filling import Filling, Forward
from pdcl.core.held_back import GUARD, REPLAY, HeldBack
from pdcl.core.objective import OBJECTIVES, Objective
from pdcl.core.pace import Pace
from pdcl.core.promising import Witnesses
from pdcl.core.sets import Sets, sample_sets, task_sets
from pdcl.core.slacks import Gauge, Read
from pdcl.core.tolerances import Tolerances
from pdcl.duality.estimators import Pool, Uniformly
from pdcl.duality.quantities import drift_of
from pdcl.duality.rules import not_negative, rule
from pdcl.errors import UsageError
from pdcl.memory.store import Memory
from pdcl.trees import cat

SAMPLE_TOLERANCE = 1.1
RECENT = 0.2


@dataclass(frozen=True)
class Drawn:
    """Slots to replay and a weight per quantity and slot: [m], [Q, m]."""

    slots: Tensor
    weights: Tensor


@dataclass(frozen=True)
class Moved:
    """After a dual step: λ_k and s_k of every past task, their tolerances, and the artificial dual."""

    duals: list[float]
    slacks: list[float]
    tolerances: list[float]
    current: float


class Alternation:
    """What to replay, what it weighs, how duals answer: `PrimalDual` between a task's start and its end."""

    def __init__(
        self,
        memory: int | str | Memory,
        tolerance: Any = None,
        *,
        level: str = "task",
        base: float = 1.0,
        guard: int | None = None,
        witness: int | None = None,
        dual: Any = None,
        estimator: Any = "dual",
        slack: Any = "memory",
        partition: Any = None,
        selection: Any = "uniform",
        constrain: Any = "loss",
        start: float = 0.0,
        warm: bool = False,
        normalise: bool = True,
        dual_steps: int | None = None,
        primal_steps: int | None = None,
        objective: Objective = OBJECTIVES["classification"],
        generator: torch.Generator | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        if level not in ("task", "sample"):
            raise UsageError(f"level={level!r} is unknown; choose one of task, sample")
        not_negative(start=start, base=base, guard=guard or 0, witness=witness or 0)
        self.tolerances = Tolerances(tolerance)
        self.level, self.base, self.start, self.warm, self.normalise = level, base, start, warm, normalise
        self.dual = rule("dual", dual or ("capped" if self.tolerances.in_error else "ascent"))
        self.estimator, self.slack = rule("estimator", estimator), rule("slack", slack)
        self.partition = rule("partition", partition or usual_partition(self.tolerances))
        self.selection, self.constrain = rule("selection", selection), rule("constrain", constrain)
        self.pace = Pace(dual_steps, primal_steps)
        if level == "sample" and self.slack.smoothing < 1:
            raise UsageError('slack="ema" has no effect at level="sample", where a sample has one loss; leave it out')
        if guard and (level == "sample" or self.slack.from_batches):
            raise UsageError(f"guard={guard} has no effect where stored samples or batches steer; leave it out")
        self.goal, self.place = objective, torch.device(device)
        self.generator = generator or torch.Generator().manual_seed(0)
        self.memory = memory if isinstance(memory, Memory) else Memory(memory, self.place)
        self.always_replays = self.slack.from_batches
        self.filling = Filling(
            self.memory, objective, self.place, self.selection, self.partition, self.constrain.records_outputs, guard,
            witness,
        )  # fmt: skip
        self.witnesses = Witnesses()
        self.carried: list[float] = []
        self.last_duals: list[float] = []
        self.aside: HeldBack | None = None
        self.begin(0, 1)

    # A task begins.

    def begin(self, samples: int, steps: int) -> None:
        """A task of `samples` samples and `steps` updates starts: constraints of the past tasks, duals, layout."""
        self.clock, self.steps, self.observed = 0, steps, 0
        self.recent: float | None = None
        self.shadow = torch.zeros(samples) if self.selection.by_dual else torch.zeros(0)
        self._loss_sum, self._loss_count = torch.zeros(()), 0
        self.history: list[Tensor] = []
        self.slacks: list[Tensor] = []
        self._lay_out()
        limits = self._limits()
        dual_steps = self.pace.dual_steps_of(steps)
        self.duals = Duals(limits, self._start(limits), self.dual, dual_steps)
        self.artificial = Duals(_one(0.0), _one(0.0), self.dual, dual_steps)
        self._price()

    def _lay_out(self) -> None:
        """Which slots are replayed of each past task, which stand for it in its slack, and what is a constraint."""
        self.past, size = len(self.tolerances), len(self.memory)
        self.task_of = self.memory["task"].cpu() if size else torch.zeros(0, dtype=torch.long)
        roles = self.memory["role"].cpu() if size else torch.zeros(0, dtype=torch.uint8)
        self.tasks: Sets = task_sets(self.task_of, self.past, (roles == REPLAY).nonzero().flatten())
        self.sets = self.tasks if self.level == "task" else sample_sets(self.tasks)
        self.in_order = torch.equal(self.tasks.members, torch.arange(size))
        guards = (roles == GUARD).nonzero().flatten()
        guarded = torch.bincount(self.task_of[guards], minlength=self.past) > 0
        replayed = self.tasks.members[~guarded[self.tasks.owners]]
        steers = torch.cat([replayed, guards]) if self.level == "task" and len(guards) else self.tasks.members
        self.looks = self.tasks if steers is self.tasks.members else task_sets(self.task_of, self.past, steers)
        self.gauge = Gauge(self.slack, self.looks, self.level == "sample", self.generator)
        self.in_error = torch.tensor([self.tolerances.unit(k) == "error" for k in range(self.past)], dtype=torch.bool)

    def _limits(self) -> Tensor:
        """ε per quantity and constraint, NaN for none; a sample may have 1.1 times what its task may have."""
        known = {"loss": self.tolerances.values, "drift": [self.constrain.drift_tolerance] * self.past}
        matrix = torch.tensor([known[q] for q in self.constrain.names], dtype=torch.float64).view(
            len(self.constrain.names), self.past
        )
        moved = torch.tensor([self.tolerances.loosened.get(k, 0.0) for k in range(self.past)], dtype=torch.float64)
        if self.level == "task":
            return matrix + moved
        return SAMPLE_TOLERANCE * matrix[:, self.sets.tasks] + moved[self.sets.tasks]

    def _start(self, limits: Tensor) -> Tensor:
        start = torch.full_like(limits, self.start)
        if self.warm and self.level == "task":
            start[:, : len(self.carried)] = torch.tensor(self.carried, dtype=torch.float64)
        elif self.warm and len(self.memory):
            start[:] = self.memory["dual"].double().cpu()[self.sets.members] / len(start)
        return torch.where(limits.isnan(), 0.0, start)

    def _price(self) -> None:
        """What draws and weights need of the duals, computed once a dual step: μ_c = (b + λ_c) / divisor_c."""
        weighed = self.duals.values.clone()
        weighed[0] += self.base
        each = weighed.sum(0)
        masses = each / self.sets.divisors
        self.norm = float(masses.sum())
        self.pool = Pool(masses, self.sets.members, self.sets.offsets, self.sets.counts)
        self.shares = weighed / each.clamp(min=torch.finfo(torch.float64).tiny)

    # A step.

    def draw(self, m: int) -> Drawn | None:
        """What to replay: unbiased for Σ_k (b + λ_k) L_k. None: nothing to replay."""
        if not len(self.pool.members) or (self.norm == 0 and not self.always_replays):
            return None
        estimator = Uniformly() if self.norm == 0 or self.slack.from_batches else self.estimator
        slots, weights = estimator.draw(self.pool, m, self.generator)
        if len(self.constrain.names) > 1:
            constraint = torch.searchsorted(self.sets.members, slots) if self.level == "sample" else self.task_of[slots]
            weights = weights * self.shares[:, constraint]
        return Drawn(slots, weights.view(-1, len(slots)).to(self.place, torch.get_default_dtype()))

    def terms(self, outputs: Tensor, y: Tensor, drawn: Drawn | None) -> Tensor:
        """What the Lagrangian sums: losses of the n current samples, then every quantity of the replayed ones."""
        if drawn is None:
            return self.goal.loss(outputs, y)
        if not self.constrain.records_outputs:
            return self.goal.loss(outputs, cat([y, self.memory.read("y", drawn.slots)]))
        n = len(y)
        return torch.cat([self.goal.loss(outputs[:n], y), self.constrained(outputs[n:], drawn.slots).flatten()])

    def constrained(self, outputs: Tensor, slots: Tensor) -> Tensor:
        """What the Lagrangian differentiates of stored samples: [Q, slots]."""
        rows = {}
        gap = drift_of(outputs, self.memory.read("outputs", slots)) if self.constrain.records_outputs else None
        if "loss" in self.constrain.names:
            losses = self.goal.loss(outputs, self.memory.read("y", slots))
            rows["loss"] = losses + self.constrain.drift * gap if self.constrain.drift else losses
        if gap is not None:
            rows["drift"] = gap
        return torch.stack([rows[name] for name in self.constrain.names])

    def weights(self, n: int, drawn: Drawn | None) -> Tensor | None:
        """The weight of each term: 1/n for current samples, the draw's for replayed ones; over 1 + Σμ if normalised.

        None: the plain mean, where nothing is replayed.
        """
        if drawn is None:
            return None
        scale = 1 / (1 + self.norm) if self.normalise else 1.0
        return torch.cat([drawn.weights.new_full((n,), scale / n), scale * drawn.weights.flatten()])

    def observe(self, index: Tensor, terms: Tensor, n: int, drawn: Drawn | None) -> None:
        """Account for a step: `terms` as descended, detached; index: positions of the n current samples."""
        if drawn is not None and self.slack.from_batches:
            self.gauge.offer(drawn.slots, terms[n:].view(drawn.weights.shape))
        losses = terms[:n]
        self._loss_sum = self._loss_sum + losses.mean()
        self._loss_count += 1
        self.observed += n
        if len(self.shadow):
            self._raise_shadows(index, losses.cpu())
        self.clock += 1

    def _raise_shadows(self, index: Tensor, losses: Tensor) -> None:
        """Samples of the current task have duals too, which are not in the Lagrangian: selection needs them."""
        own = index < len(self.shadow)
        index, slack = index[own], losses[own] - self.sample_tolerance
        self.shadow[index] = (self.shadow[index] + self.shadow_lr * slack).clamp(min=0)

    @property
    def sample_tolerance(self) -> float:
        """ε_i of samples of the task being learned; 0 where it has no limit in loss."""
        return SAMPLE_TOLERANCE * (self.tolerances.of_current() or 0.0)

    @property
    def shadow_lr(self) -> float:
        return float(getattr(self.dual, "lr", 0.1))

    @property
    def current_dual(self) -> float:
        """The artificial dual of the task being learned: not in the Lagrangian, for partitions alone."""
        return float(self.artificial.values)

    # A dual step.

    @property
    def pursues(self) -> bool:
        """Whether there are limits that duals answer to."""
        return self.tolerances.stated_any and getattr(self.dual, "moves", True)

    def due(self) -> bool:
        """Whether a dual step is due after this step."""
        return self.pursues and self.pace.due(self.clock, self.steps)

    def measure(self, forward: Forward) -> Moved | None:
        """Measure slacks and step the duals. forward: stored inputs to outputs, in eval mode. None: no past task."""
        mean = float(self._loss_sum) / self._loss_count
        self.recent = mean if self.recent is None else self.recent + RECENT * (mean - self.recent)
        self._loss_sum, self._loss_count = torch.zeros((), device=self.place), 0
        tolerance = self.tolerances.of_current()
        if tolerance is not None:
            self.artificial.ascend(_one(mean - tolerance))
        if not self.past:
            return None
        limits = torch.tensor(self.tolerances.now(self.past), dtype=torch.float64)
        found = self.gauge.measure(self.duals.tolerances, limits, self._readings(forward))
        if len(found.visited):
            self.duals.ascend(found.slacks, found.visited, found.errors, found.share)
        self._price()
        duals = self.task_duals()
        self.history.append(duals)
        self.slacks.append(found.by_task)
        return Moved(duals.tolist(), found.by_task.tolist(), limits.tolist(), self.current_dual)

    def _readings(self, forward: Forward) -> Read:
        """Values compared with ε, [Q, slots]: 0–1 errors for error-rate tolerances, otherwise the loss."""

        @torch.no_grad()
        def read(slots: Tensor) -> Tensor:
            whole = self.in_order and slots is self.tasks.members
            outputs = forward(self.memory["x"] if whole else self.memory.read("x", slots))
            rows = self.constrained(outputs, slots)
            if "loss" in self.constrain.names:
                rows[0] = self.compared(outputs, self.memory.read("y", slots), self.in_error[self.task_of[slots]])
            return rows.double().cpu()

        return read

    def compared(self, outputs: Tensor, targets: Tensor, in_error: Tensor) -> Tensor:
        """The loss or the error of each sample, as the unit of its limit says. in_error: [n], or one for all."""
        if not bool(in_error.any()):
            return self.goal.loss(outputs, targets)
        if bool(in_error.all()):
            return self.goal.error(outputs, targets)
        both = self.goal.error(outputs, targets), self.goal.loss(outputs, targets)
        return torch.where(in_error.to(outputs.device), both[0].to(both[1]), both[1])

    def task_duals(self) -> Tensor:
        """λ_k of every past task: the mean over its samples at the sample level, the sum over quantities."""
        each = self.duals.values.sum(0)
        if self.level == "task":
            return each
        return torch.zeros(self.past, dtype=torch.float64).index_add(0, self.sets.tasks, each) / self.tasks.counts


def usual_partition(tolerances: Tolerances) -> str:
    """Evenly without limits; by the room that error limits leave; by dual where limits are losses (the paper)."""
    if not tolerances.stated_any:
        return "uniform"
    return "room" if tolerances.in_error else "affine"


def _one(value: float) -> Tensor:
    return torch.full((1, 1), value, dtype=torch.float64)
