"""Primal-dual continual learning (Elenter et al., 2024): Algorithm 1, with its choices as options.

`min L_t(θ)  s.t.  L_k(θ) ≤ ε_k for every past task k` is solved by alternating primal steps on the Lagrangian and
projected ascent on the duals. Duals weigh what is replayed, divide the memory (PB, BP) and choose its samples (FB).
All of that is `pdcl.PrimalDual`; this learner gives it a network and a loop.

    pdcl0    dual weights, uniform partition, uniform filling
    pdcl     + partition by dual
    pdcl-s   duals per sample, partition and filling by dual
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from torch import Tensor

from pdcl.algorithm.rules import HOMES, describe_rule, settings, stated_settings
from pdcl.errors import UsageError
from pdcl.judging.promise import BROKEN
from pdcl.judging.table import Promises
from pdcl.learning.batches import Batch, Step, seeded
from pdcl.learning.end_of_task import Ended
from pdcl.learning.events import DualsMoved, Infeasible, Partitioned, PromisesJudged, ToleranceSet, Warned
from pdcl.learning.primal_dual import PrimalDual
from pdcl.learning.report import Report
from pdcl.learning.stated import in_one_line
from pdcl.limits.limits import Limits
from pdcl.limits.tolerance import Relative, Rise, Tolerance, describe
from pdcl.limits.tolerances import read_limits
from pdcl.methods.exact_instead import exact_instead
from pdcl.methods.old_options import gone, translated
from pdcl.methods.replay import Rehearsal
from pdcl.methods.rule_options import SHORT, open_rules, rules_of, without_short_ones
from pdcl.past.held_back import cut_short
from pdcl.past.repeats import left_out
from pdcl.past.store import Memory
from pdcl.past.stored import StoredSamples
from pdcl.ranks import Ranks
from pdcl.streams.task import Spec, Task
from pdcl.trees import cat

DRIFT = 0.1


@dataclass(eq=False)
class PDCL(Rehearsal):
    """Primal-dual continual learning: past tasks stay within their tolerance, at a price found while learning.

    Rules are written by name, with settings: partition="affine:alpha=.3"; alpha=.3 is short for that.

    tolerance: what a past task may have: points more than it had (+2pt), an error rate (5%), a loss (0.05), a multiple
        of the loss it reached (1.1x); by task name, or by a value of a column that comes with the data:
        "legacy:+2pt, plan=gold:+1pt, *:+3pt, new:10%". Nothing: no limits
    base: b, the weight of every past task before its dual (0: the paper's problem)
    base_most: the most that these come to, in weights of the new task: b = min(base, base_most / past tasks);
        None: no bound
    guard: samples of each task that are stored, held back from training, and steer its dual (if nothing
        is said, none)
    witness: the same, by which its limit is judged (where one is stated, from 200 places and ten for each class on:
        an eighth of memory or, with guards, a sixteenth, while that is five a task)
    level: a dual per past task, or per stored sample
    dual: how duals answer slacks: ascent (where limits are losses), capped (where they are error rates), frozen
    estimator: how replayed samples are drawn: dual, or all of them at each step (whole)
    partition: how memory is divided: evenly (uniform), by dual (affine, PB), by generalisation gap (generalization,
        BP), by the room that limits leave (room); if nothing is said, affine for losses, room for error rates
    selection: which samples are kept: any (uniform), or by dual (dual, FB)
    lever: a rule of one's own that acts at each dual step
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
    rescore: score candidates again at the task's end (yes; no: by the duals that they have gained, the paper's rule)
    drift: weight of the squared drift of outputs added to a replayed sample's loss, under the same weight (.1; for
        tokens 0)
    soften: how far drift is measured from smaller class scores than were recorded, on tasks of which two thirds or more
        are stored (a sixth or less, or adopted: not at all): scores of samples learned by heart are too sure
        (.6; 0: as recorded)
    """

    tolerance: Tolerance | Limits | Mapping[str, Any] | float | str | None = None
    base: float = 1.0
    base_most: float | None = 4.0
    guard: int | None = None
    witness: int | None = None
    level: str = "task"
    dual: str | None = None
    estimator: str = "dual"
    partition: str | None = None
    selection: str = "uniform"
    lever: str | None = None
    dual_steps: int | None = None
    primal_steps: int | None = None
    start: float = 0.0
    warm: bool = False
    normalise: bool = True
    dual_lr: float | None = None
    decay: float | None = None
    gain: float | None = None
    slack_samples: int = 512
    alpha: float | None = None
    current_cap: float | None = None
    minimum: int | None = None
    clip: float | None = None
    uniform_share: float | None = None
    balance: bool | None = None
    candidates: int | None = None
    rescore: bool | None = None
    drift: float | None = None
    soften: float = 0.6

    # What is kept of the past; a method with another one extends this class.
    past: ClassVar[type[StoredSamples]] = StoredSamples
    persistent: ClassVar[tuple[str, ...]] = ("samples_seen",)
    data_parallel: ClassVar[bool] = True
    former: ClassVar[dict[str, Any]] = {"base": 0.0, "base_most": None, "guard": 0, "witness": 0, "soften": 0.0}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole: Task | None = None
        self.tolerance = in_one_line(self.tolerance)
        read_limits(self.tolerance)
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, reason in self.without_effect(own).items():
            raise UsageError(f"{name}={own[name]} has no effect {reason}; leave it out")
        self.rules = rules_of(own)
        self.new_core(1)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "tolerance" and "rules" in vars(self):
            raise UsageError(
                f"tolerance={value!r}: limits of a learner are stated when it is made or loaded, "
                f"pdcl.load(directory, tolerance={value!r}), or for one task, learn(…, tolerance={value!r})"
            )
        super().__setattr__(name, value)

    @classmethod
    def settled(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        rules = rules_of({**{f.name: f.default for f in fields(cls)}, **options})
        written = [kind for kind in HOMES if isinstance(options.get(kind), str | None) and rules[kind] is not None]
        named: dict[str, Any] = {kind: without_short_ones(kind, describe_rule(kind, rules[kind])) for kind in written}
        if options.get("drift") is None:
            named["drift"] = DRIFT
        own = [(name, rules[kind], setting) for name, (kind, setting) in SHORT.items()]
        return named | {name: getattr(found, setting) for name, found, setting in own if setting in settings(found)}

    @classmethod
    def translated(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        return translated(options)

    @classmethod
    def gone(cls, options: Mapping[str, Any]) -> str | None:
        return gone(options)

    @classmethod
    def without_effect(cls, options: Mapping[str, Any]) -> dict[str, str]:
        """Options among these that do nothing beside the others, and why."""
        values = {**{f.name: f.default for f in fields(cls)}, **options}
        found, rules = {}, rules_of({**values, **dict.fromkeys(SHORT)})
        for name, (kind, setting) in SHORT.items():
            if values[name] is not None and setting not in settings(rules[kind]):
                found[name] = f"with {kind}={describe_rule(kind, rules[kind])!r}"
            elif (
                values[name] is not None
                and setting in stated_settings(values[kind])
                and values[name] != getattr(rules[kind], setting)
            ):
                found[name] = f"beside {kind}={values[kind]!r}, which states it too"
        if values["dual_steps"] is not None and values["primal_steps"] is not None:
            found["dual_steps"] = f"beside primal_steps={values['primal_steps']}"
        return found

    def new_core(self, bound: int | str | Any) -> PrimalDual:
        """The core that these options describe."""
        return PrimalDual(
            bound, self.tolerance, level=self.level, base=self.base, base_most=self.base_most,
            guard=self.guard, witness=self.witness, drift=DRIFT if self.drift is None else self.drift,
            soften=self.soften, slack_samples=self.slack_samples, start=self.start, warm=self.warm,
            normalise=self.normalise, dual_steps=self.dual_steps,
            primal_steps=self.primal_steps, generator=self.generator, past=self.past, **self.rules,
        )  # fmt: skip

    def prepare(self, spec: Spec) -> None:
        if spec.kind == "tokens":
            self._leave_drift_out()
        super().prepare(spec)
        self.core = self.new_core(self.held)
        self.core.serve(self.goal, self.place)
        self.core.open_ended = spec.tasks is None
        self.core.always_replays = self.batch_statistics

    def spread_over(self, ranks: Ranks) -> None:
        super().spread_over(ranks)
        self.core.spread_over(ranks)

    def synchronise(self) -> None:
        self.core.synchronise()

    def _leave_drift_out(self) -> None:
        """Drift needs recorded outputs of one size, which tokens don't have; only a stated one is an error."""
        if self.drift:
            raise UsageError(
                f"drift={self.drift} stores outputs of one size, and those of tokens have none; use drift=0"
            )
        self.drift = 0.0

    def hold_back(self, task: Task) -> Task:
        self._whole = task
        data = task.data
        generator = seeded(self.seed, task.index, 3)
        trained = self.core.hold_back(data, generator, self.evaluated, data.groups, self._known(task))
        aside = self.core.aside
        missing = left_out(aside, len(data), data.groups is not None)
        for each in (cut_short(self.guard, self.witness, aside, len(data)), missing):
            if each is not None:
                self.emit(Warned(task.index, each))
        return task if trained is None else replace(task, data=data.subset(trained))

    def _known(self, task: Task) -> Tensor | None:
        """Which samples were learned before, where it matters: a limit is stated, and samples are held back."""
        limited = self.core.tolerances.stated_any
        if self.learned_before is not None or not limited or not self.held.columns:
            return self.learned_before
        wanted = self.core.past.wanted(task.data, limited)
        return self.earlier.known(task.index, task.data) if wanted.guards or wanted.witnesses else None

    def begin(self, task: Task, steps: int) -> None:
        self.core.begin(len(task.data), steps)

    def step(self, batch: Batch) -> Step:
        core, n = self.core, len(batch.y)
        drawn = core.draw(self.replay or batch.total)
        if drawn is not None and not self.peers.alone:
            drawn = drawn.at(self.peers.part(len(drawn.slots), backwards=True))
        x = batch.x if drawn is None else cat([batch.x, core.past.inputs(drawn.slots)])
        terms = core.terms(self.outputs(x), batch.y, drawn)
        self.descend(terms, core.weights(n, drawn, batch.total))
        done = terms.detach()
        core.observe(batch.positions, done, n)
        if core.due() and (moved := core.measure(self.evaluated)) is not None:
            now = (moved.duals, moved.slacks, moved.tolerances, moved.current)
            self.emit(DualsMoved(core.past_tasks, core.progress.clock, *now))
        return Step(done[:n], {"norm": core.algorithm.norm})

    def end(self, task: Task) -> None:
        whole = self._whole or task
        self._whole = None
        ended = self.core.end(whole.name, whole.data, self.evaluated, self.samples_seen)
        self._tell(task.index, ended)
        if _breaks_a_limit(ended.promises) and not _breaks_a_limit(self.promises):
            assert self.spec is not None
            if (said := exact_instead(self.spec, self.backbone, self.network)) is not None:
                self.emit(Warned(task.index, said))
        self.promises = ended.promises
        super().end(whole)

    def _tell(self, task: int, ended: Ended) -> None:
        """What the end of a task changed, as events."""
        for each in ended.out_of_reach:
            reached = each.tolerance + each.slack
            if each.task >= task:
                text = f"{each.name} is out of reach: {reached:.3g} where its limit is {each.tolerance:.3g}"
                self.emit(Warned(task, f"{text}, with a dual of {each.dual:.3g}"))
                continue
            self.emit(Infeasible(task, each.task, each.dual, each.slack, each.tolerance, reached))
        if ended.note is not None:
            self.emit(Warned(task, ended.note))
        self.emit(Partitioned(task, ended.counts, ended.duals, self.held.capacity))
        for new in ended.tolerances:
            self.emit(
                ToleranceSet(task, new.task, new.old, new.new, new.unit, new.why, new.reached, new.reached_on_all)
            )
        if ended.promises is not None:
            self.emit(PromisesJudged(task, ended.promises.as_json()))

    def agree_on(self, task: int, tolerance: Any) -> None:
        if tolerance is not None:
            self.core.tolerances.agree_on(task, tolerance)
            self._settle_rules()

    def _settle_rules(self) -> None:
        """Rules that nobody stated go by all limits, those of single tasks included."""
        self.rules |= open_rules({f.name: getattr(self, f.name) for f in fields(self)}, self.core.tolerances)
        self.core.dual = self.rules["dual"]
        self.core.partition = self.rules["partition"]

    def vouch_for(self, task: int) -> None:
        self.core.registry.unseen.append(task)

    def move_reference(self, task: int, name: str) -> dict[str, Any]:
        limit = self.core.tolerances.of(task)
        if not isinstance(limit, Rise | Relative):
            stated = "it has no limit" if limit is None else f"its limit {describe(limit)} compares with nothing"
            raise UsageError(f"rebase({name!r}) has no effect: {stated}; only such as +2pt and 1.1x have a reference")
        if not bool((self.held["task"] == task).any()):
            raise UsageError(f"rebase({name!r}): memory holds no sample of it to measure on")
        before = _reference(self.held, task, limit.unit)
        self.core.rebase(task, self.evaluated)
        now = _reference(self.held, task, limit.unit)
        old, new = limit.of(task, before), limit.of(task, now)
        return {"limit": describe(limit), "unit": limit.unit, "then": before, "now": now, "old": old, "new": new}

    def final_duals(self) -> list[float]:
        return self.core.last_duals

    def report(self) -> Report:
        return Report() if self.spec is None else self.core.report()

    def state_dict(self) -> dict[str, Any]:
        state, own = super().state_dict(), self.core.state_dict()
        return {**state, **own, "method": {**state["method"], **own["method"]}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        # Limits of single tasks choose the rules that the core's state is read by.
        self.core.tolerances.load_state_dict(state["method"])
        self._settle_rules()
        self.core.load_state_dict(state)


def _reference(held: Memory, task: int, unit: str) -> float:
    """What a task had at its reference, on the samples by which it is judged: witnesses, else guards, else replayed."""
    own = held["task"] == task
    role = max(held.read("role")[own].tolist())
    values = held.read("wrong" if unit == "error" else "reference")[own & (held.read("role") == role)]
    return float(values.double().mean())


def _breaks_a_limit(promises: Promises | None) -> bool:
    """Whether a limit is broken for certain; a task that was not learned breaks none."""
    return promises is not None and any(row.verdict == BROKEN for row in promises.rows)
