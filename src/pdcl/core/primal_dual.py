"""Primal-dual continual learning without a loop and without a network: Algorithm 1, for any training code.

min L_t(θ) + b Σ_k L_k(θ)   s.t.   L_k(θ) ≤ ε_k for every past task k         (b = 0: the paper's problem)

The core owns memory, constraints, duals and the rules between them. Whoever trains asks it what to replay, hands it the
losses, and lends it a forward pass now and then:

    core.begin(task, samples, steps)
    each step:   drawn = core.draw(m);  descend core.terms(outputs, y, drawn) with core.weights(n, drawn)
                 core.observe(index, losses, n, drawn);  if core.due(): core.measure(forward)
    core.end(task, data, forward)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from pdcl.core.duals import Duals
from pdcl.core.objective import OBJECTIVES, Objective
from pdcl.core.refill import Refilled, Source, ToleranceChange, chosen_positions, divided, kept_slots
from pdcl.core.report import Report, Trace
from pdcl.core.sets import Sets, sample_sets, task_sets
from pdcl.core.slacks import Gauge
from pdcl.duality.duals import infeasible
from pdcl.duality.estimators import Pool, Uniformly
from pdcl.duality.quantities import drift_of
from pdcl.duality.rules import not_negative, rule
from pdcl.duality.tolerance import Relative, Tolerance, as_tolerance, describe
from pdcl.errors import UsageError
from pdcl.memory.store import Memory

SAMPLE_TOLERANCE = 1.1
RECENT = 0.2
LOOK_AT = 512
DUAL_STEPS = 60

Forward = Callable[[Tensor], Tensor]


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


@dataclass(frozen=True)
class OutOfReach:
    """A past task whose dual rose while its tolerance stayed broken."""

    task: int
    dual: float
    slack: float
    tolerance: float


@dataclass(frozen=True)
class Ended:
    """What the end of a task changed."""

    duals: list[float]
    counts: list[int]
    out_of_reach: list[OutOfReach] = field(default_factory=list)
    tolerances: list[ToleranceChange] = field(default_factory=list)
    note: str | None = None


class PrimalDual:
    """Constraints, memory and rules of one learner; see the module for how it is used.

    memory: a bound in samples or bytes, or a Memory. tolerance, level, start, warm, normalise, base: as in `pdcl.PDCL`;
    dual, estimator, slack, partition, selection, constrain: rules, by name ("affine:alpha=.3") or as objects.
    """

    def __init__(
        self,
        memory: int | str | Memory,
        tolerance: Any = "1.1x",
        *,
        level: str = "task",
        base: float = 0.0,
        dual: Any = "ascent",
        estimator: Any = "dual",
        slack: Any = "memory",
        partition: Any = "affine",
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
        not_negative(start=start, base=base)
        self.limit: Tolerance = as_tolerance(tolerance)
        self.level, self.base, self.start, self.warm, self.normalise = level, base, start, warm, normalise
        self.dual, self.estimator, self.slack = rule("dual", dual), rule("estimator", estimator), rule("slack", slack)
        self.partition, self.selection = rule("partition", partition), rule("selection", selection)
        self.constrain = rule("constrain", constrain)
        self.pace = Pace(dual_steps, primal_steps)
        if level == "sample" and self.slack.smoothing < 1:
            raise UsageError('slack="ema" has no effect at level="sample", where a sample has one loss; leave it out')
        self.goal = objective
        self.generator = generator or torch.Generator().manual_seed(0)
        self.place = torch.device(device)
        self.memory = memory if isinstance(memory, Memory) else Memory(memory, self.place)
        self.always_replays = self.slack.from_batches
        self.tolerances: list[float] = []
        self.agreed: dict[str, str] = {}
        self.carried: list[float] = []
        self.last_duals: list[float] = []
        self.clock, self.period, self.observed, self.current_dual = 0, 1, 0, 0.0
        self.recent: float | None = None
        self.shadow = torch.zeros(0)
        self.begin(0, 1)

    # ---- a task begins

    def begin(self, samples: int, steps: int) -> None:
        """A task of `samples` samples and `steps` updates starts: constraints of the past tasks, duals, layout."""
        self.clock, self.observed, self.current_dual, self.recent = 0, 0, 0.0, None
        self.period = self.pace.period(steps)
        self.shadow = torch.zeros(samples) if self.selection.by_dual else torch.zeros(0)
        self._loss_sum, self._loss_count = torch.zeros(()), 0
        self.history: list[Tensor] = []
        self.slacks: list[Tensor] = []
        self._lay_out()
        tolerances = self._tolerance_matrix()
        self.duals = Duals(tolerances, self._start(tolerances), self.dual, max(1, steps // self.period))
        self._price()

    def _lay_out(self) -> None:
        """Which slots each past task and each constraint speaks of."""
        self.past = len(self.tolerances)
        task_of = self.memory["task"].cpu() if len(self.memory) else torch.zeros(0, dtype=torch.long)
        self.tasks: Sets = task_sets(task_of, self.past)
        self.sets = self.tasks if self.level == "task" else sample_sets(task_of, self.past)
        self.task_of = task_of
        self.in_order = torch.equal(self.tasks.members, torch.arange(len(task_of)))
        self.gauge = Gauge(self.slack, self.tasks, self.sets, self.generator)

    def _tolerance_matrix(self) -> Tensor:
        """ε per quantity and constraint; a sample may have 1.1 times what its task may have."""
        rows = {"loss": self.tolerances, "drift": [self.constrain.drift_tolerance] * self.past}
        matrix = torch.tensor([rows[q] for q in self.constrain.names], dtype=torch.float64)
        return matrix if self.level == "task" else SAMPLE_TOLERANCE * matrix[:, self.sets.tasks]

    def _start(self, tolerances: Tensor) -> Tensor:
        start = torch.full_like(tolerances, self.start)
        if self.warm and self.level == "task":
            start[:, : len(self.carried)] = torch.tensor(self.carried, dtype=torch.float64)
        elif self.warm and len(self.memory):
            start[:] = self.memory["dual"].double().cpu() / len(start)
        return start

    def _price(self) -> None:
        """What draws and weights need of the duals, computed once a dual step: μ_c = λ_c / divisor_c."""
        each = self.duals.values.sum(0)
        masses = each / self.sets.divisors
        self.norm = float(masses.sum())
        self.pool = Pool(masses, self.sets.members, self.sets.offsets, self.sets.counts)
        self.shares = self.duals.values / each.clamp(min=torch.finfo(torch.float64).tiny)

    # ---- a step

    def draw(self, m: int) -> Drawn | None:
        """What to replay: unbiased for Σ_k λ_k L_k. None: nothing to replay."""
        if not len(self.memory) or (self.norm == 0 and not self.always_replays):
            return None
        estimator = Uniformly() if self.norm == 0 or self.slack.from_batches else self.estimator
        slots, weights = estimator.draw(self.pool, m, self.generator)
        if len(self.constrain.names) == 1:
            return Drawn(slots, weights[None].to(self.place, torch.get_default_dtype()))
        constraint = slots if self.level == "sample" else self.task_of[slots]
        return Drawn(slots, (weights * self.shares[:, constraint]).to(self.place, torch.get_default_dtype()))

    def terms(self, outputs: Tensor, y: Tensor, drawn: Drawn | None) -> Tensor:
        """What the Lagrangian sums: losses of the n current samples, then every quantity of the replayed ones."""
        if drawn is None:
            return self.goal.loss(outputs, y)
        if not self.constrain.records_outputs:
            return self.goal.loss(outputs, torch.cat([y, self.memory.read("y", drawn.slots)]))
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
        """The weight of each term: 1/n for current samples, the draw's for replayed ones, over 1 + ‖λ‖₁ if normalised.

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
        index, slack = index[own], losses[own] - SAMPLE_TOLERANCE * self.current_tolerance()
        self.shadow[index] = (self.shadow[index] + self.shadow_lr * slack).clamp(min=0)

    @property
    def shadow_lr(self) -> float:
        return float(getattr(self.dual, "lr", 0.1))

    def current_tolerance(self) -> float:
        """ε of the task being learned; a relative one isn't known yet, so its floor stands in."""
        if isinstance(self.limit, Relative):
            return self.limit.floor
        return self.limit.of(len(self.tolerances), None)

    # ---- a dual step

    def due(self) -> bool:
        """Whether a dual step is due after this step."""
        return self.clock % self.period == 0

    def measure(self, forward: Forward) -> Moved | None:
        """Measure slacks and step the duals. forward: stored inputs to outputs, in eval mode. None: no past task."""
        mean = float(self._loss_sum) / self._loss_count
        self.recent = mean if self.recent is None else self.recent + RECENT * (mean - self.recent)
        self._loss_sum, self._loss_count = torch.zeros((), device=self.place), 0
        self.current_dual = max(0.0, self.current_dual + self.shadow_lr * (mean - self.current_tolerance()))
        if not self.past:
            return None
        slacks, visited, by_task = self.gauge.measure(self.duals.tolerances, self.tolerances, self._readings(forward))
        self.duals.ascend(slacks, visited)
        self._price()
        duals = self.task_duals()
        self.history.append(duals)
        self.slacks.append(by_task)
        return Moved(duals.tolist(), by_task.tolist(), list(self.tolerances), self.current_dual)

    def _readings(self, forward: Forward) -> Callable[[Tensor], Tensor]:
        """Values compared with ε, [Q, slots]: 0–1 errors for error-rate tolerances, otherwise the loss."""

        @torch.no_grad()
        def read(slots: Tensor) -> Tensor:
            whole = self.in_order and slots is self.tasks.members
            outputs = forward(self.memory["x"] if whole else self.memory.read("x", slots))
            rows = self.constrained(outputs, slots)
            if "loss" in self.constrain.names:
                rows[0] = self.compared(outputs, self.memory.read("y", slots))
            return rows.double().cpu()

        return read

    def compared(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss or the error of each sample, as the tolerance's unit says."""
        return (self.goal.error if self.limit.unit == "error" else self.goal.loss)(outputs, targets)

    def task_duals(self) -> Tensor:
        """λ_k of every past task: the mean over its samples at the sample level, the sum over quantities."""
        each = self.duals.values.sum(0)
        if self.level == "task":
            return each
        return torch.zeros(self.past, dtype=torch.float64).index_add(0, self.sets.tasks, each) / self.tasks.counts

    # ---- a task ends

    def end(self, task: int, data: Source, forward: Forward, first_id: int) -> Ended:
        """Partition memory by the duals, fill it, and set the tolerances anew.

        data: the task's samples; first_id: the id that its first sample gets.
        """
        duals = self.task_duals()
        missed = self._out_of_reach(duals)
        self.last_duals = [*duals.tolist(), self.current_dual]
        self.carried = self.last_duals if self.level == "task" else []
        refilled = self._refill(task, data, forward, first_id)
        changes = self._set_tolerances(task, data, forward)
        self.clock = 0
        return Ended(self.last_duals, refilled.counts, missed, changes, refilled.note)

    def _out_of_reach(self, duals: Tensor) -> list[OutOfReach]:
        if not self.history:
            return []
        found = infeasible(torch.stack(self.history), torch.stack(self.slacks)).nonzero().flatten().tolist()
        return [OutOfReach(k, float(duals[k]), float(self.slacks[-1][k]), self.tolerances[k]) for k in found]

    def _refill(self, task: int, data: Source, forward: Forward, first_id: int) -> Refilled:
        self._allocate(data, forward)
        each = self.duals.values.sum(0)
        counts, note = divided(self.partition, self.last_duals, self.memory, [*self.tasks.counts.tolist(), len(data)])
        labels = self.memory["y"].cpu() if len(self.memory) else torch.zeros(0)
        by_sample = each if self.level == "sample" else None
        kept = kept_slots(self.selection, self.tasks, counts[:-1], by_sample, labels, self.generator)
        chosen, shadows = chosen_positions(
            self.selection, data, counts[-1], self._candidate_duals(data, forward), self.generator
        )
        if len(self.memory):
            self.memory["dual"].copy_(each if self.level == "sample" else each[self.task_of])
        self.memory.replace(kept, **self._rows(task, data, chosen, shadows, forward, first_id))
        return Refilled(counts, kept, chosen, note)

    def _candidate_duals(self, data: Source, forward: Forward) -> Callable[[Tensor], Tensor]:
        """Shadow duals. Re-score candidates now: after one pass a shadow dual reflects the loss at first sight."""

        def score(candidates: Tensor) -> Tensor:
            x, y = data.fetch(candidates)
            losses = self.goal.loss(forward(x), y.to(self.place)).cpu()
            now = (losses - SAMPLE_TOLERANCE * self.current_tolerance()).clamp(min=0)
            single_pass = getattr(self.selection, "rescore", True) and self.observed <= len(data)
            return now if single_pass else self.shadow[candidates] + self.shadow_lr * now

        return score

    def _rows(
        self, task: int, data: Source, chosen: Tensor, shadows: Tensor, forward: Forward, first_id: int
    ) -> dict[str, Tensor]:
        x, y = data.fetch(chosen)
        outputs = forward(x)
        y = y.to(self.place)
        rows = {
            "x": x,
            "y": y,
            "task": torch.full((len(chosen),), task),
            "id": chosen + first_id,
            "dual": shadows,
            "reference": self._steadied(data, self.compared(outputs, y).to(torch.get_default_dtype()), forward),
        }
        return rows | {"outputs": outputs} if self.constrain.records_outputs else rows

    def _steadied(self, data: Source, reference: Tensor, forward: Forward) -> Tensor:
        """What each stored sample reached, without the luck of the last step.

        The last iterate of stochastic descent may be far worse than those before it (a mean loss of .9 after .05 was
        seen online), and a tolerance relative to it would be no tolerance. If the task's loss now exceeds its mean over
        the last dual steps, references shrink by that factor.
        """
        now, recent = self._reached_on_all(data, forward), self.recent
        if self.limit.unit == "error" or recent is None or now <= recent:
            return reference
        return reference * (recent / now)

    def _allocate(self, data: Source, forward: Forward) -> None:
        """Reserve memory before partitioning it: a bound in bytes is a number of samples only now."""
        if self.memory.columns:
            return
        first = torch.zeros(1, dtype=torch.long)
        x, y = data.fetch(first)
        blank = {"task": first, "id": first, "dual": torch.zeros(1), "reference": torch.zeros(1)}
        if self.constrain.records_outputs:
            blank["outputs"] = forward(x)
        self.memory.allocate(x=x, y=y, **blank)

    def _set_tolerances(self, task: int, data: Source, forward: Forward) -> list[ToleranceChange]:
        """ε_k from what each task reached on the very samples that memory holds of it now."""
        memory, changes = self.memory, []
        sums = torch.zeros(task + 1, dtype=torch.float64)
        sums.index_add_(0, memory["task"].cpu(), memory["reference"].double().cpu())
        reached = (sums / torch.tensor(memory.counts(task + 1)).clamp(min=1)).tolist()
        for k, value in enumerate(reached):
            old = self.tolerances[k] if k < len(self.tolerances) else None
            new = self.limit_of(k).of(k, value)
            if old == new:
                continue
            why = "task learned" if old is None else "other samples of it are stored"
            beside = self._reached_on_all(data, forward) if k == task else None
            text = f"{why}; {describe(self.limit_of(k))}"
            changes.append(ToleranceChange(k, old, new, self.limit.unit, text, value, beside))
            self.tolerances[k : k + 1] = [new]
        return changes

    def _reached_on_all(self, data: Source, forward: Forward) -> float:
        """The same value on the task's data at large (up to 512 samples of it), to set beside that on memory."""
        total = len(data)
        x, y = data.fetch(torch.linspace(0, total - 1, min(total, LOOK_AT)).long())
        return float(self.compared(forward(x), y.to(self.place)).mean())

    # ---- tolerances, report, state

    def agree_on(self, task: int, tolerance: Any) -> None:
        """A tolerance of one task's own, in the unit that all have."""
        own = as_tolerance(tolerance)
        if own.unit != self.limit.unit:
            raise UsageError(f"tolerance={tolerance!r} is in {own.unit}, those of other tasks in {self.limit.unit}")
        self.agreed[str(task)] = describe(own)

    def limit_of(self, task: int) -> Tolerance:
        """What was stated for this task."""
        return as_tolerance(self.agreed[str(task)]) if str(task) in self.agreed else self.limit

    def loosen(self, task: int, change: float) -> None:
        """Move ε of one past task by `change`, for what-if."""
        self.tolerances[task] += change

    def report(self) -> Report:
        """Duals, tolerances and the newest task's dual steps, as values."""
        known = self.duals.tolerances[0].tolist() if self.level == "task" else self.tolerances[: self.past]
        units = [self.limit.unit] * len(self.tolerances)
        duals, slacks = ([step.tolist() for step in steps] for steps in (self.history, self.slacks))
        return Report(
            has_tolerances=True,
            duals=self.last_duals,
            tolerances=list(self.tolerances),
            units=units,
            trace=Trace(duals, slacks, known, self.tasks.counts.tolist(), units[: self.past]),
            no_price=self._no_price(),
            decay=float(getattr(self.dual, "decay", 0.0)),
            prices_drift="drift" in self.constrain.names,
        )

    def _no_price(self) -> str | None:
        """Theorem 1 wants the gradient of what is constrained."""
        if self.limit.unit == "error":
            return "the tolerance is an error rate"
        if self.constrain.drift > 0:
            return f"{self.constrain.drift:g} × the drift of outputs stands beside the loss under it"
        return None

    PERSISTENT = ("tolerances", "agreed", "clock", "period", "observed", "recent", "shadow", "current_dual", "carried",
                  "last_duals")  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """All that determines the future but memory and generator, as tensors and JSON values."""
        running = self.clock > 0
        past = torch.stack(self.history) if self.history else torch.zeros(0)
        slacks = torch.stack(self.slacks) if self.slacks else torch.zeros(0)
        return {
            "method": {name: getattr(self, name) for name in self.PERSISTENT},
            "duals": {**self.duals.state_dict(), "history": past, "task_slacks": slacks} if running else {},
            "running": {"sum": self._loss_sum, "count": self._loss_count, "steps": self.duals.steps} if running else {},
            "measure": self.gauge.state_dict() if running else {},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state; memory must have taken over its own before."""
        for name in self.PERSISTENT:
            setattr(self, name, state["method"][name])
        if not state["duals"]:
            return
        self._lay_out()
        blank = torch.zeros(1, 0)
        self.duals = Duals(blank, blank, self.dual, state["running"].get("steps", 1))
        self.duals.load_state_dict(state["duals"])
        self.history, self.slacks = list(state["duals"]["history"]), list(state["duals"]["task_slacks"])
        self._loss_sum, self._loss_count = state["running"]["sum"], state["running"]["count"]
        self.gauge.load_state_dict(state["measure"])
        self._price()


@dataclass(frozen=True)
class Pace:
    """When dual steps are due: so many a task, spread evenly over it (60, if nothing is said), or every T_p steps."""

    dual_steps: int | None = None
    primal_steps: int | None = None

    def __post_init__(self) -> None:
        if self.dual_steps is not None and self.primal_steps is not None:
            raise UsageError(
                f"dual_steps={self.dual_steps} has no effect beside primal_steps={self.primal_steps}; give one of them"
            )
        if any(steps is not None and steps < 1 for steps in (self.dual_steps, self.primal_steps)):
            raise UsageError("dual_steps and primal_steps must be at least 1")

    def longer(self, factor: int) -> Pace:
        """So many times the dual steps, for a task that is trained so many times as long."""
        return self if self.primal_steps else Pace((self.dual_steps or DUAL_STEPS) * factor)

    def period(self, steps: int) -> int:
        """T_p, primal steps per dual step, for a task of so many steps."""
        return self.primal_steps or max(1, steps // (self.dual_steps or DUAL_STEPS))
