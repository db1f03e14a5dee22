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

from pdcl.core.alternation import Alternation
from pdcl.core.filling import Forward, Past, Reached, View
from pdcl.core.held_back import GUARD
from pdcl.core.objective import Objective
from pdcl.core.refill import Source
from pdcl.core.report import Report, Trace
from pdcl.core.tolerances import ToleranceChange
from pdcl.duality.dual_rules import Capped
from pdcl.duality.duals import infeasible
from pdcl.duality.lagrangian import base_weight
from pdcl.duality.partition_rules import FIVE_POINTS
from pdcl.errors import UsageError
from pdcl.promises.table import Promises
from pdcl.ranks import Ranks

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


class PrimalDual(Alternation):
    """Constraints, memory and rules of one learner; see the module for how it is used.

    memory: a bound in samples or bytes, or a Memory. tolerance: what users state (None: no limits). base: b. guard,
    witness: samples a task sets aside (None: as usual where a limit is stated). dual, estimator, slack, partition,
    selection, constrain: rules, by name ("affine:alpha=.3") or as objects. The rest as in `pdcl.PDCL`.
    """

    def serve(self, objective: Objective, device: torch.device) -> None:
        """Take what is known only once a stream is: what is learned, and where."""
        self.goal = self.filling.goal = objective
        self.place = self.filling.place = device

    def spread_over(self, ranks: Ranks, forward_shares: bool = False) -> None:
        """Train with these ranks. forward_shares: the forward pass of `measure` divides samples among them itself."""
        if not ranks.alone and self.slack.from_batches:
            raise UsageError("slack='batch' needs all replayed losses in one process; use slack='memory'")
        self.ranks, self.forward_shares = ranks, forward_shares

    def hold_back(
        self, data: Source, generator: torch.Generator, forward: Forward, groups: Tensor | None = None,
        known: Tensor | None = None,
    ) -> Tensor | None:  # fmt: skip
        """Draw guards and witnesses of a new task: the positions that may be trained on (None: all).

        known: which samples were learned before, and so can't be witnesses.
        """
        self.filling.allocate(data, forward)
        self.aside = self.filling.hold_back(data, groups, self.tolerances.stated_any, generator, known)
        return None if self.aside is None else self.aside.trained

    # A task ends.

    def end(self, name: str, data: Source, forward: Forward, first_id: int) -> Ended:
        """Partition memory, fill it, set the tolerances anew, and look what became of the promises.

        data: all of the task's samples; first_id: the id that its first sample gets.
        """
        duals = self.task_duals()
        missed = self._out_of_reach()
        self.last_duals = [*duals.tolist(), self.current_dual] if self.pursues else []
        self.carried = self.last_duals if self.level == "task" else []
        self.segment_duals = self.duals.values.sum(0)[self.past :].tolist() if self.segments else []
        self.tolerances.names[self.past :] = [name]
        self.filling.allocate(data, forward)
        task, reached = self.past, self.filling.reached(self._trained(data), forward)
        past = Past(
            self.tasks, self._slot_duals(), self.level == "sample", self._weights(reached), self._score(data, forward)
        )
        counts, note = self.filling.fill(
            task, data, self.aside, past, forward, first_id, self._steadying(reached), self.generator
        )
        in_error = [self.tolerances.unit(k) == "error" for k in range(task + 1)]
        on_all = reached.error if in_error[-1] else reached.loss
        changes = self.tolerances.set(self.filling.references(task + 1, in_error), on_all)
        self.witnesses.meet(task, data.targets, getattr(data, "groups", None))
        self.by_heart[task:] = [*[False] * (task - len(self.by_heart)), self.observed > 0]
        promises = None
        if self.tolerances.stated_any:
            promises = self.witnesses.promises(
                self.filling, self.tolerances, reached, forward, self.tasks.counts.tolist(), self._perhaps_seen(),
                self.open_ended, task * base_weight(self.base, self.base_most, task),
            )  # fmt: skip
        self.clock, self.aside = 0, None
        return Ended(self.last_duals, counts, missed, changes, note, promises)

    def _perhaps_seen(self) -> set[int]:
        """Adopted tasks, unless somebody has said that the network never saw their samples."""
        return {task for task, learned in enumerate(self.by_heart) if not learned} - {*self.unseen}

    def _trained(self, data: Source) -> Source:
        """The task's data without what is held back."""
        return data if self.aside is None else View(data, self.aside.trained)

    def _slot_duals(self) -> Tensor:
        """λ of every stored sample, or of its task; 0 for those held back at the sample level."""
        if self.level == "task":
            return self.task_duals()[self.task_of]
        each = self.duals.values.sum(0)
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
        """How far a task's error may rise from what it was, and 5 points; for a task without such a limit, 10 and 5.

        5 points are added since nobody knows how hard a task is: stored samples are learned by heart. So a hard task's
        wider limit isn't taken for a loose one, and +10pt, which even replay may use up, not for a wide one.
        """
        limit = self.tolerances.of(task)
        if limit is None or limit.unit != "error" or had != had:
            return WITHOUT_LIMIT + FIVE_POINTS
        return limit.of(task, had) - had + FIVE_POINTS

    def _score(self, data: Source, forward: Forward) -> Callable[[Tensor], Tensor]:
        """Shadow duals as they accumulated; with `rescore`, after a look at the candidates as they are now.

        After a single pass a shadow dual is the loss at first sight, so that look alone counts. After several it is one
        sight more.
        """
        trained = self._trained(data)

        def score(candidates: Tensor) -> Tensor:
            if not getattr(self.selection, "rescore", True):
                return self.shadow[candidates]
            losses = torch.cat([self._losses(trained, part, forward) for part in candidates.split(AT_ONCE)])
            now = (losses - self.sample_tolerance).clamp(min=0)
            return now if self.observed <= len(trained) else self.shadow[candidates] + self.shadow_lr * now

        return score

    def _losses(self, data: Source, positions: Tensor, forward: Forward) -> Tensor:
        x, y = data.fetch(positions)
        return self.goal.loss(forward(x), y.to(self.place)).cpu()

    def _steadying(self, reached: Reached) -> float:
        """What references are multiplied with, to be free of the luck of the last step.

        The last iterate of stochastic descent may be far worse than those before it (a mean loss of .9 after .05 was
        seen online), and a tolerance relative to it would be no tolerance. If the task's loss now exceeds its mean over
        the last dual steps, references shrink by that factor.
        """
        recent = self.recent
        return 1.0 if recent is None or reached.loss <= recent else recent / reached.loss

    def _out_of_reach(self) -> list[OutOfReach]:
        if not self.history:
            return []
        duals, slack, cap = self.history[-1], self.slacks[-1], getattr(self.dual, "cap", float("inf"))
        rising = infeasible(torch.stack(self.history), torch.stack(self.slacks))
        found = (rising | ((duals >= 0.99 * cap) & (slack > 0))).nonzero().flatten().tolist()
        limits = [*self.tolerances.now(self.past), *self._segment_limits()]
        names = [*map(self.tolerances.name, range(self.past)), *self.segments.names]
        return [OutOfReach(k, names[k], float(duals[k]), float(slack[k]), limits[k]) for k in found]

    # Limits, as they stand.

    @property
    def guarded(self) -> bool:
        """Whether guards alone steer: every past task has some."""
        return self.past > 0 and bool((self.memory["role"].cpu()[self.looks.members] == GUARD).all())

    @torch.no_grad()
    def excess(self, forward: Forward) -> Tensor:
        """By how much every task and segment is over its limit on the samples that steer; NaN where it has none."""
        if not self.past:
            return torch.zeros(0)
        share = self.memory.share(self.looks.members)
        slots, owners = share.own(self.looks.members), share.own(self.looks.owners)
        outputs = self._outputs_of(slots, forward)
        values = share.whole(self.compared(outputs, self.memory.read("y", slots), self.in_error[owners]))
        limits = torch.tensor([*self.tolerances.values, *self._segment_limits()], dtype=torch.float64)
        return self.looks.means(values.double().cpu()[None])[0] - limits

    # Report and state.

    def report(self) -> Report:
        """Duals, tolerances and the newest task's dual steps, as values."""
        units = [self.tolerances.unit(k) for k in range(len(self.tolerances))]
        duals, slacks = ([step[: self.past].tolist() for step in steps] for steps in (self.history, self.slacks))
        known = self.tolerances.now(self.past)
        return Report(
            has_tolerances=self.tolerances.stated_any,
            duals=self.last_duals,
            tolerances=list(self.tolerances.values),
            units=units,
            trace=Trace(duals, slacks, known, self.tasks.counts.tolist(), units[: self.past]),
            no_price=self._no_price(units),
            # Where dual steps have no unit, decay relaxes no tolerance.
            decay=0.0 if isinstance(self.dual, Capped) else float(getattr(self.dual, "decay", 0.0)),
            prices_drift="drift" in self.constrain.names,
            segments=dict(zip(self.segments.names, self.segment_duals, strict=False)),
        )

    def _no_price(self, units: list[str]) -> str | None:
        """Theorem 1 wants the gradient of what is constrained."""
        if "error" in units:
            return "the tolerance is an error rate"
        if self.constrain.drift > 0:
            return f"{self.constrain.drift:g} × the drift of outputs stands beside the loss under it"
        return None

    PERSISTENT = ("clock", "steps", "observed", "recent", "shadow", "carried", "last_duals", "segment_duals")

    def state_dict(self) -> dict[str, Any]:
        """All that determines the future but memory and generator, as tensors and JSON values."""
        running = self.clock > 0
        past = torch.stack(self.history) if self.history else torch.zeros(0)
        slacks = torch.stack(self.slacks) if self.slacks else torch.zeros(0)
        own = {name: getattr(self, name) for name in self.PERSISTENT}
        return {
            "method": {
                **own,
                **self.tolerances.state_dict(),
                "first_seen": self.witnesses.first_seen,
                "task_samples": self.witnesses.samples,
                "smallest_groups": self.witnesses.smallest_groups,
                "by_heart": self.by_heart,
                "unseen": self.unseen,
                "column_values": self.segments.table,
            },
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
        self.witnesses.samples = list(state["method"].get("task_samples", [0] * len(self.tolerances)))
        self.witnesses.smallest_groups = list(state["method"].get("smallest_groups", [1] * len(self.tolerances)))
        self.by_heart = list(state["method"].get("by_heart", []))
        self.unseen = list(state["method"].get("unseen", []))
        self.segments.take_table(state["method"].get("column_values", {}))
        in_error = [self.tolerances.unit(k) == "error" for k in range(len(self.tolerances))]
        self.filling.upgrade(in_error)
        # In the middle of a task duals answer to the limits that it began with.
        if "stated" in state["method"] and not state["duals"] and len(self.memory):
            self.tolerances.restate(state["method"]["stated"], self.filling.references(len(in_error), in_error))
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
        share = self.memory.share(slots)
        with torch.no_grad():
            own = share.own(slots)
            outputs, y = forward(self.memory.read("x", own)), self.memory.read("y", own)
            now = {"reference": self.goal.loss(outputs, y).float(), "wrong": self.filling.wrong(outputs, y)}
        place = self.memory["reference"].device
        for name, values in now.items():
            self.memory[name][slots.to(place)] = share.whole(values).to(place)
        in_error = [self.tolerances.unit(k) == "error" for k in range(len(self.tolerances))]
        reached = self.filling.references(len(self.tolerances), in_error)[task]
        limit, old = self.tolerances.of(task), self.tolerances.values[task]
        new = self.tolerances.values[task] = float("nan") if limit is None else limit.of(task, reached)
        return ToleranceChange(task, old, new, self.tolerances.unit(task), "rebased", reached, None)
