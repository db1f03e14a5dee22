"""Primal-dual continual learning without a loop and without a network: Algorithm 1, for any training code.

min L_t(θ) + b Σ_k L_k(θ)   s.t.   L_k(θ) ≤ ε_k for every past task k         (b = 0: the paper's problem)

The core owns memory, constraints, duals and the rules between them. Whoever trains asks it what to replay, hands it the
losses, and lends it a forward pass now and then:

    trained = core.hold_back(data, generator, forward)      None: train on all of it
    core.begin(samples, steps)
    each step:   drawn = core.draw(m);  descend core.terms(outputs, y, drawn) with core.weights(n, drawn)
                 core.observe(index, terms, n, drawn);  if core.due(): core.measure(forward)
    core.end(name, data, forward, first_id)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from pdcl.core.duals import Duals
from pdcl.core.filling import Filling, Forward, Past, Reached, View
from pdcl.core.held_back import GUARD, REPLAY, HeldBack
from pdcl.core.objective import OBJECTIVES, Objective
from pdcl.core.pace import Pace
from pdcl.core.promising import Witnesses
from pdcl.core.refill import Source
from pdcl.core.report import Report, Trace
from pdcl.core.sets import Sets, sample_sets, task_sets
from pdcl.core.slacks import Gauge, Read
from pdcl.core.tolerances import ToleranceChange, Tolerances
from pdcl.duality.duals import infeasible
from pdcl.duality.estimators import Pool, Uniformly
from pdcl.duality.partition_rules import FIVE_POINTS
from pdcl.duality.quantities import drift_of
from pdcl.duality.rules import not_negative, rule
from pdcl.errors import UsageError
from pdcl.memory.store import Memory
from pdcl.promises.table import Promises
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


@dataclass(frozen=True)
class OutOfReach:
    """A past task that is over its tolerance while its dual still rises, or can't rise any more."""

    task: int
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


class PrimalDual:
    """Constraints, memory and rules of one learner; see the module for how it is used.

    memory: a bound in samples or bytes, or a Memory. tolerance: what users state (None: no limits). base: b. guard,
    witness: samples a task sets aside (None: as usual where a limit is stated). dual, estimator, slack, partition,
    selection, constrain: rules, by name ("affine:alpha=.3") or as objects. The rest as in `pdcl.PDCL`.
    """

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

    def serve(self, objective: Objective, device: torch.device) -> None:
        """Take what is known only once a stream is: what is learned, and where."""
        self.goal = self.filling.goal = objective
        self.place = self.filling.place = device

    def hold_back(
        self, data: Source, generator: torch.Generator, forward: Forward, groups: Tensor | None = None
    ) -> Tensor | None:
        """Draw guards and witnesses of a new task: the positions that may be trained on (None: all)."""
        self.filling.allocate(data, forward)
        self.aside = self.filling.hold_back(data, groups, self.tolerances.stated_any, generator)
        return None if self.aside is None else self.aside.trained

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

    # A task ends.

    def end(self, name: str, data: Source, forward: Forward, first_id: int) -> Ended:
        """Partition memory, fill it, set the tolerances anew, and look what became of the promises.

        data: all of the task's samples; first_id: the id that its first sample gets.
        """
        duals = self.task_duals()
        missed = self._out_of_reach(duals)
        self.last_duals = [*duals.tolist(), self.current_dual] if self.pursues else []
        self.carried = self.last_duals if self.level == "task" else []
        self.tolerances.names[self.past :] = [name]
        self.filling.allocate(data, forward)
        task, reached = self.past, self.filling.reached(data, forward)
        past = Past(
            self.tasks, self._slot_duals(), self.level == "sample", self._weights(reached), self._score(data, forward)
        )
        counts, note = self.filling.fill(
            task, data, self.aside, past, forward, first_id, self._steadying(reached), self.generator
        )
        in_error = [self.tolerances.unit(k) == "error" for k in range(task + 1)]
        on_all = reached.error if in_error[-1] else reached.loss
        changes = self.tolerances.set(self.filling.references(task + 1, in_error), on_all)
        self.witnesses.meet(task, data.targets)
        promises = None
        if self.tolerances.stated_any:
            promises = self.witnesses.promises(self.filling, self.tolerances, reached, forward)
        self.clock, self.aside = 0, None
        return Ended(self.last_duals, counts, missed, changes, note, promises)

    def _slot_duals(self) -> Tensor:
        """λ of every stored sample, or of its task; 0 for those held back at the sample level."""
        each = self.duals.values.sum(0)
        if self.level == "task":
            return each[self.task_of]
        found = torch.zeros(len(self.memory), dtype=torch.float64)
        found[self.sets.members] = each
        return found

    def _weights(self, reached: Reached) -> list[float]:
        """What the partition goes by: duals, the newest task's artificial one last; or the rooms of limits."""
        if not getattr(self.partition, "by_room", False):
            return self.last_duals or [0.0] * (self.past + 1)
        before = self.filling.references(self.past, [True] * self.past) if self.past else []
        return [self._room(k, had) for k, had in enumerate([*before, reached.error])]

    def _room(self, task: int, had: float) -> float:
        """How far a task's error may rise from what it was; 5 points where its limit isn't an error rate."""
        limit = self.tolerances.of(task)
        if limit is None or limit.unit != "error" or had != had:
            return FIVE_POINTS
        return limit.of(task, had) - had

    def _score(self, data: Source, forward: Forward) -> Callable[[Tensor], Tensor]:
        """Shadow duals. Re-score candidates now: after one pass a shadow dual reflects the loss at first sight."""
        trained = data if self.aside is None else View(data, self.aside.trained)

        def score(candidates: Tensor) -> Tensor:
            x, y = trained.fetch(candidates)
            losses = self.goal.loss(forward(x), y.to(self.place)).cpu()
            now = (losses - self.sample_tolerance).clamp(min=0)
            single_pass = getattr(self.selection, "rescore", True) and self.observed <= len(trained)
            return now if single_pass else self.shadow[candidates] + self.shadow_lr * now

        return score

    def _steadying(self, reached: Reached) -> float:
        """What references are multiplied with, to be free of the luck of the last step.

        The last iterate of stochastic descent may be far worse than those before it (a mean loss of .9 after .05 was
        seen online), and a tolerance relative to it would be no tolerance. If the task's loss now exceeds its mean over
        the last dual steps, references shrink by that factor.
        """
        recent = self.recent
        return 1.0 if recent is None or reached.loss <= recent else recent / reached.loss

    def _out_of_reach(self, duals: Tensor) -> list[OutOfReach]:
        if not self.history:
            return []
        slack, cap = self.slacks[-1], getattr(self.dual, "cap", float("inf"))
        rising = infeasible(torch.stack(self.history), torch.stack(self.slacks))
        found = (rising | ((duals >= 0.99 * cap) & (slack > 0))).nonzero().flatten().tolist()
        limits = self.tolerances.now(self.past)
        return [OutOfReach(k, float(duals[k]), float(slack[k]), limits[k]) for k in found]

    # Report and state.

    def report(self) -> Report:
        """Duals, tolerances and the newest task's dual steps, as values."""
        units = [self.tolerances.unit(k) for k in range(len(self.tolerances))]
        duals, slacks = ([step.tolist() for step in steps] for steps in (self.history, self.slacks))
        known = self.tolerances.now(self.past)
        return Report(
            has_tolerances=self.tolerances.stated_any,
            duals=self.last_duals,
            tolerances=list(self.tolerances.values),
            units=units,
            trace=Trace(duals, slacks, known, self.tasks.counts.tolist(), units[: self.past]),
            no_price=self._no_price(units),
            decay=float(getattr(self.dual, "decay", 0.0)),
            prices_drift="drift" in self.constrain.names,
        )

    def _no_price(self, units: list[str]) -> str | None:
        """Theorem 1 wants the gradient of what is constrained."""
        if "error" in units:
            return "the tolerance is an error rate"
        if self.constrain.drift > 0:
            return f"{self.constrain.drift:g} × the drift of outputs stands beside the loss under it"
        return None

    PERSISTENT = ("clock", "steps", "observed", "recent", "shadow", "carried", "last_duals")

    def state_dict(self) -> dict[str, Any]:
        """All that determines the future but memory and generator, as tensors and JSON values."""
        running = self.clock > 0
        past = torch.stack(self.history) if self.history else torch.zeros(0)
        slacks = torch.stack(self.slacks) if self.slacks else torch.zeros(0)
        own = {name: getattr(self, name) for name in self.PERSISTENT}
        return {
            "method": {**own, **self.tolerances.state_dict(), "first_seen": self.witnesses.first_seen},
            "duals": {**self.duals.state_dict(), "history": past, "task_slacks": slacks} if running else {},
            "running": self._running() if running else {},
            "measure": self.gauge.state_dict() if running else {},
        }

    def _running(self) -> dict[str, Any]:
        return {"sum": self._loss_sum, "count": self._loss_count, "artificial": self.artificial.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state; memory must have taken over its own before."""
        self.tolerances.load_state_dict(state["method"])
        self.witnesses.first_seen = dict(state["method"].get("first_seen", {}))
        self.filling.upgrade([self.tolerances.unit(k) == "error" for k in range(len(self.tolerances))])
        self.begin(0, 1)
        for name in self.PERSISTENT:
            setattr(self, name, state["method"].get(name, getattr(self, name)))
        if not state["duals"]:
            return
        self.duals.steps = self.artificial.steps = self.pace.dual_steps_of(self.steps)
        self.duals.load_state_dict(state["duals"])
        self.history, self.slacks = list(state["duals"]["history"]), list(state["duals"]["task_slacks"])
        self._loss_sum, self._loss_count = state["running"]["sum"], state["running"]["count"]
        self.artificial.load_state_dict(state["running"]["artificial"])
        self.gauge.load_state_dict(state["measure"])
        self._price()

    def rebase(self, task: int, forward: Forward) -> ToleranceChange:
        """Let what the stored samples of a task give now be what its limit compares with, and set ε_k anew."""
        slots = (self.memory["task"].cpu() == task).nonzero().flatten()
        with torch.no_grad():
            outputs, y = forward(self.memory.read("x", slots)), self.memory.read("y", slots)
            now = {"reference": self.goal.loss(outputs, y).float(), "wrong": self.filling.wrong(outputs, y)}
        place = self.memory["reference"].device
        for name, values in now.items():
            self.memory[name][slots.to(place)] = values.to(place)
        in_error = [self.tolerances.unit(k) == "error" for k in range(len(self.tolerances))]
        reached = self.filling.references(len(self.tolerances), in_error)[task]
        limit, old = self.tolerances.of(task), self.tolerances.values[task]
        new = self.tolerances.values[task] = float("nan") if limit is None else limit.of(task, reached)
        return ToleranceChange(task, old, new, self.tolerances.unit(task), "rebased", reached, None)


def usual_partition(tolerances: Tolerances) -> str:
    """Evenly without limits; by the room that error limits leave; by dual where limits are losses (the paper)."""
    if not tolerances.stated_any:
        return "uniform"
    return "room" if tolerances.in_error else "affine"


def _one(value: float) -> Tensor:
    return torch.full((1, 1), value, dtype=torch.float64)
