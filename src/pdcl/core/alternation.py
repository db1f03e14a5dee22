"""The alternation of Algorithm 1: primal steps on the Lagrangian, then a dual step on the slacks, without a network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pdcl.core.drawn import Drawn
from pdcl.core.duals import Duals
from pdcl.core.filling import Filling, Forward
from pdcl.core.held_back import HeldBack
from pdcl.core.layout import lay_out
from pdcl.core.objective import OBJECTIVES, Objective
from pdcl.core.pace import Pace
from pdcl.core.promising import Witnesses
from pdcl.core.recorded import recorded_in, softened
from pdcl.core.segments import Segments
from pdcl.core.slacks import Gauge, Read
from pdcl.core.tolerances import Tolerances, usual_partition
from pdcl.duality.estimators import Pool, Uniformly
from pdcl.duality.lagrangian import base_weight
from pdcl.duality.rules import not_negative, rule
from pdcl.errors import UsageError
from pdcl.memory.store import Memory
from pdcl.ranks import ALONE
from pdcl.trees import cat

SAMPLE_TOLERANCE = 1.1
RECENT = 0.2


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
        base_most: float | None = 4.0,
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
        not_negative(start=start, base=base, base_most=base_most or 0, guard=guard or 0, witness=witness or 0)
        self.tolerances = Tolerances(tolerance)
        self.segments = Segments(self.tolerances.segments)
        if self.segments and level == "sample":
            raise UsageError(f'a limit on a segment ({self.segments.names[0]}) needs level="task"; leave level out')
        self.level, self.start, self.warm, self.normalise = level, start, warm, normalise
        self.base, self.base_most = base, base_most
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
        self.ranks, self.forward_shares, self.open_ended = ALONE, False, False
        self.always_replays = self.slack.from_batches
        self.filling = Filling(
            self.memory, objective, self.place, self.selection, self.partition, self.constrain.records_outputs, guard,
            witness, self.segments,
        )  # fmt: skip
        self.witnesses = Witnesses()
        self.carried: list[float] = []
        self.segment_duals: list[float] = []
        self.last_duals: list[float] = []
        self.by_heart: list[bool] = []
        self.unseen: list[int] = []
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
        """Constraints: past tasks, then segments (samples of any past task with one value of a column); or samples."""
        self.past = len(self.tolerances)
        found = lay_out(self.memory, self.past, self.level == "sample", self.segments)
        self.task_of, self.tasks, self.sets, self.looks = found.task_of, found.tasks, found.sets, found.looks
        self.in_order = found.in_order
        self.recorded = recorded_in(self.memory)
        # Only scores of classes can be less sure: outputs of a regression are held as recorded.
        if self.constrain.soften and self.goal.name == "classification":
            self.recorded = softened(self.memory, found, self.witnesses.samples, self.by_heart, self.constrain.soften)
        self.gauge = Gauge(self.slack, self.looks, self.level == "sample", self.generator)
        units = [self.tolerances.unit(k) for k in range(self.past)]
        units += [limit.unit for limit in self.segments.limits.values()]
        self.in_error = torch.tensor([unit == "error" for unit in units], dtype=torch.bool)

    def _limits(self) -> Tensor:
        """ε per quantity and constraint, NaN for none; a sample may have 1.1 times what its task may have."""
        tolerances = [*self.tolerances.values, *self._segment_limits()]
        names = self.constrain.names
        known = {"loss": tolerances, "drift": [self.constrain.drift_tolerance] * len(tolerances)}
        matrix = torch.tensor([known[q] for q in names], dtype=torch.float64).view(len(names), len(tolerances))
        loosened = [self.tolerances.loosened.get(k, 0.0) for k in range(len(tolerances))]
        moved = torch.tensor(loosened, dtype=torch.float64)
        if self.level == "task":
            return matrix + moved
        return SAMPLE_TOLERANCE * matrix[:, self.sets.tasks] + moved[self.sets.tasks]

    def _segment_limits(self) -> list[float]:
        """ε of every segment, of what its samples gave when they were stored; NaN while none of it is replayed."""
        found = []
        for c, limit in enumerate(self.segments.limits.values(), self.past):
            start, count = int(self.looks.offsets[c]), int(self.looks.counts[c])
            slots = self.looks.members[start : start + count]
            column = "wrong" if limit.unit == "error" else "reference"
            there = count > 0 and int(self.sets.counts[c]) > 0
            found.append(limit.of(0, float(self.memory.read(column, slots).double().mean())) if there else torch.nan)
        return found

    def _start(self, limits: Tensor) -> Tensor:
        start = torch.full_like(limits, self.start)
        if self.warm and self.level == "task":
            start[:, : len(self.carried)] = torch.tensor(self.carried, dtype=torch.float64)
            if len(self.segment_duals) == len(self.segments):
                start[:, self.past :] = torch.tensor(self.segment_duals, dtype=torch.float64)
        elif self.warm and len(self.memory):
            start[:] = self.memory["dual"].double().cpu()[self.sets.members] / len(start)
        return torch.where(limits.isnan(), 0.0, start)

    def _price(self) -> None:
        """What draws and weights need of the duals, computed once a dual step: μ_c = (b + λ_c) / divisor_c.

        b is the weight of tasks: segments repeat their samples and have λ_c alone. shares: how the weight of each slot
        divides among quantities, [Q, slots], where there are several.
        """
        weighed = self.duals.values.clone()
        weighed[0, self.sets.tasks >= 0] += base_weight(self.base, self.base_most, self.past)
        masses = weighed.sum(0) / self.sets.divisors
        self.norm = float(masses.sum())
        self.pool = Pool(masses, self.sets.members, self.sets.offsets, self.sets.counts)
        if len(weighed) > 1:
            parts = [replace(self.pool, masses=row / self.sets.divisors).slot_masses for row in weighed]
            self.shares = torch.stack(parts) / self.pool.slot_masses.clamp(min=torch.finfo(torch.float64).tiny)

    # A step.

    def draw(self, m: int) -> Drawn | None:
        """What to replay: unbiased for Σ_k (b + λ_k) L_k. None: nothing to replay."""
        if not len(self.pool.members) or (self.norm == 0 and not self.always_replays):
            return None
        estimator = Uniformly() if self.norm == 0 or self.slack.from_batches else self.estimator
        slots, weights = estimator.draw(self.pool, m, self.generator)
        if len(self.constrain.names) > 1:
            weights = weights * self.shares[:, slots]
        return Drawn(slots, weights.view(-1, len(slots)).to(self.place, torch.get_default_dtype()))

    def terms(self, outputs: Tensor, y: Tensor, drawn: Drawn | None) -> Tensor:
        """What the Lagrangian sums: losses of the n current samples, then every quantity of the replayed ones."""
        if drawn is None:
            return self.goal.loss(outputs, y)
        n = len(y)
        if self.constrain.names != ("loss",):
            return torch.cat([self.goal.loss(outputs[:n], y), self.constrained(outputs[n:], drawn.slots).flatten()])
        losses = self.goal.loss(outputs, cat([y, self.memory.read("y", drawn.slots)]))
        if not self.constrain.drift:
            return losses
        # Current samples are held to what they give: a drift of 0, and nothing has to be cut apart and joined again.
        held_to = torch.cat([outputs[:n].detach(), self.recorded.of(drawn.slots)])
        return losses + float(self.constrain.drift) * self.recorded.drift(outputs, held_to)

    def constrained(self, outputs: Tensor, slots: Tensor) -> Tensor:
        """What the Lagrangian differentiates of stored samples: [Q, slots]."""
        rows = {}
        gap = self.recorded.drift(outputs, self.recorded.of(slots)) if self.constrain.records_outputs else None
        if "loss" in self.constrain.names:
            losses = self.goal.loss(outputs, self.memory.read("y", slots))
            rows["loss"] = losses + self.constrain.drift * gap if self.constrain.drift else losses
        if gap is not None:
            rows["drift"] = gap
        return torch.stack([rows[name] for name in self.constrain.names])

    def weights(self, n: int, drawn: Drawn | None, total: int | None = None) -> Tensor | None:
        """The weight of each term: 1/n for current samples, the draw's for replayed ones; over 1 + Σμ if normalised.

        None: the plain mean, where nothing is replayed. With several ranks n and `drawn` are this rank's part of
        `total` current samples and of the draw; world × the weights, since gradients are averaged over ranks.
        """
        world = self.ranks.world
        if drawn is None:
            return None if self.ranks.alone else torch.full((n,), world / (total or n), device=self.place)
        scale = world / (1 + self.norm) if self.normalise else float(world)
        return torch.cat([drawn.weights.new_full((n,), scale / (total or n)), scale * drawn.weights.flatten()])

    def observe(self, index: Tensor, terms: Tensor, n: int, drawn: Drawn | None) -> None:
        """Account for a step: `terms` as descended, detached, the first n of them of current samples.

        index: positions of the current samples of all ranks.
        """
        if drawn is not None and self.slack.from_batches:
            self.gauge.offer(drawn.slots, terms[n:].view(drawn.weights.shape))
        losses = terms[:n]
        if self.pursues:
            self._loss_sum = self._loss_sum + self.ranks.batch_mean(losses, len(index))
            self._loss_count += 1
        self.observed += len(index)
        if len(self.shadow):
            self._raise_shadows(index, self.ranks.whole(losses.cpu(), len(index)))
        self.clock += 1

    def _raise_shadows(self, index: Tensor, losses: Tensor) -> None:
        """Samples of the current task have duals too, which are not in the Lagrangian: selection needs them."""
        own = index < len(self.shadow)
        index, slack = index[own], losses[own].to(self.shadow.dtype) - self.sample_tolerance
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
        self.synchronise()
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
        self.history.append(self.duals.values.sum(0) if self.level == "task" else self.task_duals())
        self.slacks.append(found.told)
        slacks = found.told[: self.past].tolist()
        return Moved(self.task_duals().tolist(), slacks, limits.tolist(), self.current_dual)

    def synchronise(self) -> None:
        """Let every rank hold what one process would."""
        self._loss_sum = self.ranks.mean(self._loss_sum)

    def _readings(self, forward: Forward) -> Read:
        """Values compared with ε, [Q, slots]: 0–1 errors for error-rate tolerances, otherwise the loss."""

        @torch.no_grad()
        def read(slots: Tensor, owners: Tensor) -> Tensor:
            outputs = self._outputs_of(slots, forward)
            rows = self.constrained(outputs, slots)
            if "loss" in self.constrain.names:
                rows[0] = self.compared(outputs, self.memory.read("y", slots), self.in_error[owners])
            return rows.double().cpu()

        return read if self.forward_shares else self.ranks.spread(read)

    def _outputs_of(self, slots: Tensor, forward: Forward) -> Tensor:
        if self.in_order and slots is self.tasks.members:
            return forward(self.memory["x"])
        if not self.segments:
            return forward(self.memory.read("x", slots))
        # A sample stands once for its task and once for each of its segments: one pass is enough.
        once, where = slots.unique(return_inverse=True)
        return forward(self.memory.read("x", once))[where.to(self.place)]

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
            return each[: self.past]
        return torch.zeros(self.past, dtype=torch.float64).index_add(0, self.sets.tasks, each) / self.tasks.counts


def _one(value: float) -> Tensor:
    return torch.full((1, 1), value, dtype=torch.float64)
