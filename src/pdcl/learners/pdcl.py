"""Primal-dual continual learning (Elenter et al., 2024): Algorithm 1, with its choices as options.

`min L_t(θ)  s.t.  L_k(θ) ≤ ε_k for every past task k` is solved by alternating primal steps on the Lagrangian and
projected ascent on the duals. Duals weigh what is replayed, divide the memory (PB, BP) and choose its samples (FB).
All of that is `core.PrimalDual`; this learner gives it a network and a loop.

    pdcl0    dual weights, uniform partition, uniform filling
    pdcl     + partition by dual
    pdcl-s   duals per sample, partition and filling by dual
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import torch

from pdcl.core.primal_dual import Ended, PrimalDual
from pdcl.core.report import Report
from pdcl.duality.rules import HOMES, rule, settings
from pdcl.duality.tolerance import Tolerance
from pdcl.errors import UsageError
from pdcl.learners.replay import Rehearsal
from pdcl.streams.task import Spec, Task
from pdcl.training.batches import Batch
from pdcl.training.events import DualsMoved, Infeasible, Partitioned, ToleranceSet, Warned
from pdcl.training.learner import Step

# Options that are short for a setting of a rule: dual_lr=.05 is dual="ascent:lr=.05".
SHORT = {
    "dual_lr": ("dual", "lr"),
    "decay": ("dual", "decay"),
    "gain": ("dual", "gain"),
    "slack_samples": ("slack", "samples"),
    "alpha": ("partition", "alpha"),
    "current_cap": ("partition", "current_cap"),
    "minimum": ("partition", "minimum"),
    "clip": ("selection", "clip"),
    "uniform_share": ("selection", "uniform_share"),
    "balance": ("selection", "balance"),
    "candidates": ("selection", "candidates"),
    "rescore": ("selection", "rescore"),
    "drift": ("constrain", "drift"),
    "drift_tolerance": ("constrain", "drift_tolerance"),
}


@dataclass(eq=False)
class PDCL(Rehearsal):
    """Primal-dual continual learning: past tasks stay within their tolerance, at a price found while learning.

    Rules are written by name, with settings: partition="affine:alpha=.3"; alpha=.3 is short for that.

    tolerance: ε_k: a loss (0.05), one per task, relative to what a task reached ("1.1x"), an error rate ("5%")
    level: a dual per past task, or per stored sample
    dual: how duals answer slacks: ascent
    estimator: how replayed samples are drawn: dual (if nothing is said), uniform, stratified, whole
    slack: measured on memory, on the replayed batches (batch), or on memory and smoothed (ema)
    partition: how memory is divided: evenly (uniform), by dual (affine, PB), by generalisation gap (generalization, BP)
    selection: which samples are kept: any (uniform), or by dual (dual, FB)
    constrain: the loss of stored samples, the drift of their outputs, or both
    dual_steps: dual steps per task, spread evenly over it (60, if nothing is said)
    primal_steps: T_p, primal steps per dual step, instead of dual_steps
    start: what duals start a task with
    warm: keep duals from the task before
    normalise: divide the Lagrangian by 1 + ‖λ‖₁
    dual_lr: η_d, the step of dual ascent (.1)
    decay: κ, which relaxes each tolerance by κ λ (0)
    gain: K_p, a proportional answer to a slack besides the accumulated one (0)
    slack_samples: at most so many stored samples per measurement (512)
    alpha: how far the affine partition follows the duals (.5)
    current_cap: the most that affine gives the newest task, in even shares (1; 0: no cap, the paper's rule)
    minimum: the least that generalization gives a task (5)
    clip: the quantile that duals are clipped at for selection (.9; 1: not at all)
    uniform_share: how much of the selection by dual is uniform (.5; 0: none, the paper's rule)
    balance: keep as many samples of each class within a task (yes)
    candidates: samples scored per place for selection by dual (4, at least 1000 in all; 0: all of the task's data)
    rescore: after a single pass, score candidates again at the task's end (yes; no: the paper's rule)
    drift: weight of the squared drift added to a replayed sample's loss, under the same dual (0)
    drift_tolerance: ε of the drift, where it is constrained (.1)
    """

    tolerance: Tolerance | float | str = "1.1x"
    level: str = "task"
    dual: str = "ascent"
    estimator: str | None = None
    slack: str = "memory"
    partition: str = "affine"
    selection: str = "uniform"
    constrain: str = "loss"
    dual_steps: int | None = None
    primal_steps: int | None = None
    start: float = 0.0
    warm: bool = False
    normalise: bool = True
    dual_lr: float | None = None
    decay: float | None = None
    gain: float | None = None
    slack_samples: int | None = None
    alpha: float | None = None
    current_cap: float | None = None
    minimum: int | None = None
    clip: float | None = None
    uniform_share: float | None = None
    balance: bool | None = None
    candidates: int | None = None
    rescore: bool | None = None
    drift: float | None = None
    drift_tolerance: float | None = None

    persistent: ClassVar[tuple[str, ...]] = ("samples_seen",)

    def __post_init__(self) -> None:
        super().__post_init__()
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, reason in self.without_effect(own).items():
            raise UsageError(f"{name}={own[name]} has no effect {reason}; leave it out")
        self.rules = rules_of(own)
        self.new_core(1)

    @classmethod
    def without_effect(cls, options: Mapping[str, Any]) -> dict[str, str]:
        """Options among these that do nothing beside the others, and why."""
        defaults = {f.name: f.default for f in fields(cls)}
        values = {**defaults, **options}
        found = {}
        for name, (kind, setting) in SHORT.items():
            if values[name] is not None and setting not in settings(rule(kind, values[kind])):
                found[name] = f"with {kind}={values[kind]!r}"
        if values["estimator"] is not None and rule("slack", values["slack"]).from_batches:
            found["estimator"] = f"with slack={values['slack']!r}, which draws uniformly"
        if values["dual_steps"] is not None and values["primal_steps"] is not None:
            found["dual_steps"] = f"beside primal_steps={values['primal_steps']}"
        return found

    def new_core(self, bound: int | str | Any) -> PrimalDual:
        """The core that these options describe."""
        return PrimalDual(
            bound, self.tolerance, level=self.level, start=self.start, warm=self.warm, normalise=self.normalise,
            dual_steps=self.dual_steps, primal_steps=self.primal_steps, generator=self.generator, **self.rules,
        )  # fmt: skip

    def prepare(self, spec: Spec) -> None:
        super().prepare(spec)
        self.core = self.new_core(self.held)
        self.core.goal, self.core.place = self.goal, self.place
        self.core.always_replays |= self.batch_statistics

    def begin(self, task: Task, steps: int) -> None:
        self.core.begin(len(task.data), steps)

    def step(self, batch: Batch) -> Step:
        core, n = self.core, len(batch)
        drawn = core.draw(self.replay)
        x = batch.x if drawn is None else torch.cat([batch.x, self.held.read("x", drawn.slots)])
        terms = core.terms(self.outputs(x), batch.y, drawn)
        self.descend(terms, core.weights(n, drawn))
        done = terms.detach()
        core.observe(batch.index, done, n, drawn)
        if core.due():
            self._dual_step()
        return Step(done[:n], {"norm": core.norm})

    def _dual_step(self) -> None:
        moved = self.core.measure(self.evaluated)
        if moved is not None:
            now = (moved.duals, moved.slacks, moved.tolerances, moved.current)
            self.emit(DualsMoved(self.core.past, self.core.clock, *now))

    def end(self, task: Task) -> None:
        self._tell(task.index, self.core.end(task.index, task.data, self.evaluated, self.samples_seen))
        super().end(task)

    def _tell(self, task: int, ended: Ended) -> None:
        """What the end of a task changed, as events."""
        for each in ended.out_of_reach:
            reached = each.tolerance + each.slack
            self.emit(Infeasible(task, each.task, each.dual, each.slack, each.tolerance, reached))
        if ended.note is not None:
            self.emit(Warned(task, ended.note))
        self.emit(Partitioned(task, ended.counts, ended.duals, self.held.capacity))
        for new in ended.tolerances:
            self.emit(
                ToleranceSet(task, new.task, new.old, new.new, new.unit, new.why, new.reached, new.reached_on_all)
            )

    def agree_on(self, task: int, tolerance: Any) -> None:
        if tolerance is not None:
            self.core.agree_on(task, tolerance)

    def final_duals(self) -> list[float]:
        return self.core.last_duals

    def report(self) -> Report:
        return self.core.report()

    def state_dict(self) -> dict[str, Any]:
        state, own = super().state_dict(), self.core.state_dict()
        return {**state, **own, "method": {**state["method"], **own["method"]}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.core.load_state_dict(state)


def rules_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The six rules that a learner's options describe, short ones entered."""
    found = {kind: rule(kind, options[kind] if options[kind] is not None else "dual") for kind in HOMES}
    for name, (kind, setting) in SHORT.items():
        if options[name] is not None:
            found[kind] = replace(found[kind], **{setting: options[name]})
    return found
