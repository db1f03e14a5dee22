"""Exact: a linear head on fixed features, solved in closed form from statistics of all samples that ever came.

    L_c(W) = [tr(WᵀG_cW) − 2 tr(WᵀC_c) + q_c] / n_c                  every past loss, exactly, without a sample
    W(λ)   = (A + Σ_c λ_c G_c/n_c + ρP)⁻¹ (B + Σ_c λ_c C_c/n_c)      A, B: classes balanced, tasks by √n

Limits are pursued on that problem, which is convex: in loss by Newton steps on its dual, in error rate by guards.
Nothing is stored of a training sample; guards and witnesses are held back as features in 8 bits. The result doesn't
depend on the order of tasks or on how they were cut into batches.

The closed form without limits: Zhuang et al., "ACIL: Analytic Class-Incremental Learning", NeurIPS 2022.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pdcl.algorithm.guard_search import UNSEEN
from pdcl.errors import UsageError
from pdcl.features.network import SolvedNetwork
from pdcl.learning.batches import EVALUATION_BATCH, Batch, Step, batches
from pdcl.learning.report import Report
from pdcl.learning.stated import in_one_line
from pdcl.lifelong.undo import all_or_nothing
from pdcl.limits.limits import Limits
from pdcl.limits.tolerance import Relative, Rise, Tolerance, describe
from pdcl.limits.tolerances import Tolerances
from pdcl.methods import exact_editing as editing
from pdcl.methods.exact_bound import check_bound, stay_within
from pdcl.methods.exact_holding import draw_aside, store_aside
from pdcl.methods.exact_limits import (
    compare_by_ridge,
    described,
    known_past,
    refer,
    settle,
    stated_limits,
    values_then,
)
from pdcl.methods.exact_solving import Solved, output_counts, solved
from pdcl.methods.exact_state import exact_state, take_exact_state
from pdcl.methods.exact_whatif import sliders, what_more_room_gains
from pdcl.methods.fixed_features import OnFixedFeatures
from pdcl.methods.squared_loss import own_objective, squared
from pdcl.past.bound import parse_bound
from pdcl.past.eight_bits import decode
from pdcl.past.held_features import HeldFeatures
from pdcl.past.refill import View
from pdcl.past.registry import Registry
from pdcl.past.segments import Segments
from pdcl.past.sets import Sets
from pdcl.past.statistics import check_finite
from pdcl.past.task_sums import TaskSums
from pdcl.streams.data import everything
from pdcl.streams.task import Spec, Task
from pdcl.trees import to

KINDS = ("classification", "regression", "multilabel")


@dataclass(eq=False)
class Exact(OnFixedFeatures):
    """A linear head on fixed features, solved exactly from statistics of everything that came; limits in closed form.

    features: auto (by the shape of the input), raw, random:2000, patches:50, spectrum:100, ngrams:2048; in Python also
        a module that stays as it is, or the fitted features of another learner
    memory: the most bytes that statistics, guards and witnesses take (2MB); nothing: as many as they need
    tolerance: limits of past tasks, as in pdcl
    guard: samples a task holds back to steer limits in error rate, and to make scores probabilities (300, at
        most a tenth of the task; where limits are stated, 100 even if they are a quarter)
    witness: the same, by which limits are judged (400 where a limit is stated, at most a tenth)
    head: ridge or lda; nothing: lda for classes, ridge for labels, for numbers, and under limits in loss
    rho: ρ, relative to the mean square of a feature; nothing: by cross-validation, which the sums allow
    erasable: features and statistics in float64, and filters that are no samples, so that `forget` is exact
    """

    features: nn.Module | str = "auto"
    memory: int | str | None = None
    tolerance: Tolerance | Limits | Mapping[str, Any] | float | str | None = None
    guard: int | None = None
    witness: int | None = None
    head: str | None = None
    rho: float | None = None
    erasable: bool = False

    data_parallel: ClassVar[bool] = True
    keeps_traces: ClassVar[str] = (
        "the scale of {path}'s features, ρ and λ, which were found with them; and exports that were made before"
    )
    not_from_presets: ClassVar[tuple[str, ...]] = ("memory", "tolerance", "guard", "witness")
    unused: ClassVar[tuple[str, ...]] = (
        "network", "lr", "optimizer", "weight_decay", "keep_optimizer", "scheduler", "clip_norm", "accumulate",
        "class_weights", "precision", "epochs",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tolerance = in_one_line(self.tolerance)
        for name, reason in self.without_effect(vars(self)).items():
            raise UsageError(f"{name}={getattr(self, name)!r} {reason}")
        if self.head not in (None, "ridge", "lda"):
            raise UsageError(f"head={self.head!r} must be ridge or lda; leave it out to have it chosen")
        if self.rho is not None and not 0 < self.rho <= 10:
            raise UsageError(f"rho={self.rho} must lie in (0, 10]: it is relative to the mean square of a feature")
        for name in ("guard", "witness"):
            if (getattr(self, name) or 0) < 0:
                raise UsageError(f"{name}={getattr(self, name)} must not be negative")
        self.bound = None if self.memory is None else parse_bound(self.memory)[1]
        self.tolerances = Tolerances(self.tolerance)
        self.registry = Registry()
        self.samples_seen = 0
        self.losses_then: list[float] = []
        self.errors_then: list[float] = []
        self.segment_losses: dict[str, float] = {}
        self.ever_held = torch.zeros(0, dtype=torch.int64)
        # Of every sample that sums hold, where they are erasable: its hash, and its values of stated columns.
        self.trained_hashes: dict[int, Tensor] = {}
        self.trained_codes: dict[int, Tensor] = {}
        self.solution: Solved | None = None
        self._whole: Task | None = None
        self.take_fitted()

    @classmethod
    def without_effect(cls, options: Mapping[str, Any]) -> dict[str, str]:
        found = {}
        if options.get("network", "auto") != "auto":
            found["network"] = "has no effect on Exact: its last layer is solved for; give features="
        if str(options.get("memory") or "").isdigit():
            found["memory"] = "is a number of samples, and exact keeps statistics: give bytes, such as 2MB"
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "tolerance" and "tolerances" in vars(self):
            raise UsageError(
                f"tolerance={value!r}: limits of a learner are stated when it is made or loaded, "
                f"pdcl.load(directory, tolerance={value!r}), or for one task, learn(…, tolerance={value!r})"
            )
        super().__setattr__(name, value)

    # Before the first task.

    def prepare(self, spec: Spec) -> None:
        if spec.kind not in KINDS:
            raise UsageError(f"exact learns classes, labels or numbers, not {spec.kind}; use pdcl or er")
        solved_for = SolvedNetwork(self.map_of(spec), spec.outputs)
        network, self.network = self.network, solved_for.double() if self.erasable else solved_for
        try:
            super().prepare(spec)
        finally:
            self.network = network
        self.width = self.phi.width + 1
        check_bound(self, spec.outputs)
        self.sets = Sets(self.dtype)
        segments = Segments(self.tolerances.segments)
        self.held = HeldFeatures(own_objective(spec.kind), segments, self.guard, self.witness)
        self.phi_hash: str | None = None
        self.dropped_segments: list[str] = []
        self.begin_sums(0)

    def begin_sums(self, samples: int) -> None:
        assert self.spec is not None
        self.sums = TaskSums(samples, self.width, self.spec.outputs, self.held.segments, self.erasable)

    # A task comes.

    def check_room(self, task: Task) -> None:
        assert self.spec is not None
        check_bound(self, self.spec.outputs)

    def hold_back(self, task: Task) -> Task:
        self._whole, self.aside = task, draw_aside(self, task)
        self._trained = task.data.subset(self.aside.trained)
        return replace(task, data=self._trained)

    def begin(self, task: Task, steps: int) -> None:
        if not bool(self.phi.fitted):
            self.fit_features(task)
        self.check_features()
        if self.solution is not None and self.solution.head == "lda" and self.tolerances.in_loss:
            compare_by_ridge(self)
        self.begin_sums(len(task.data))

    def step(self, batch: Batch) -> Step:
        """Add the samples that this task didn't show before. The loss is that of the head before this task."""
        features, y = self.represent(batch.x), self.numbers(batch.y.cpu())
        check_finite(features)
        segments = self.held.segments
        codes = segments.encode(self._trained.columns, batch.index) if segments else segments.blank(len(batch))
        self.sums.include(batch.index, features, y, codes)
        W = None if self.solution is None else self.solution.W
        return Step(squared(features if W is None else features @ W.to(features), batch.y.cpu(), W is None))

    def numbers(self, y: Tensor) -> Tensor:
        """Classes as they are; labels as ±1, 0 where not known; numbers as n × outputs."""
        assert self.spec is not None
        if self.spec.kind == "classification":
            return y
        if self.spec.kind == "multilabel":
            return (2 * y.float() - 1).nan_to_num(0.0)
        return y.float().reshape(len(y), self.spec.outputs)

    def absorb(self, task: Task) -> None:
        part = self.hold_back(task)
        self.begin(part, 1)
        for batch in batches(part.data, task.index, EVALUATION_BATCH, everything(part.data), self.place):
            self.step(batch)
        self.end(part)

    # A task ends.

    def end(self, task: Task) -> None:
        assert self._whole is not None
        whole, self._whole, index = self._whole, None, task.index
        own, segments = self.sums.finished(self.peers)
        self.tolerances.names[index:] = [whole.name]
        self.sets.add(own.moments(index), alone=self.tolerances.of(index) is not None)
        for name, sums in segments.items():
            if sums.samples and name not in self.dropped_segments:
                self.sets.add_segment(name, sums.moments(index))
        store_aside(self, whole, self.aside)
        self.begin_sums(0)
        stay_within(self, index + 1)
        self.registry.register_task(index, whole.data.targets, whole.data.groups, True)
        self.use(solved(known_past(self), stated_limits(self, index)))
        self.promises = settle(self, index, View(whole.data, self.aside.trained))
        self.samples_seen += len(whole.data)

    @property
    def nbytes(self) -> int:
        """Bytes of statistics, guards and witnesses."""
        return self.sets.nbytes + self.held.nbytes

    # The head.

    def use(self, found: Solved) -> None:
        """Let the network predict by this head. Outputs without samples are never predicted."""
        assert isinstance(self.model, SolvedNetwork)
        assert self.spec is not None
        self.solution = found
        W = (found.W if found.whole is None else found.whole) * found.factor
        if self.spec.kind == "classification":
            W[-1, output_counts(self.sets.parts, self.spec.outputs) == 0] = UNSEEN
        self.model.take(W)

    @torch.no_grad()
    def raw_scores(self, x: Any) -> Tensor:
        """φW of raw inputs or of held-back features, n × outputs, on the CPU."""
        assert self.solution is not None
        assert self.spec is not None
        if isinstance(x, dict) and "code" in x:
            held = decode(x)
            features = torch.cat([held, torch.ones(len(held), 1)], 1)
        else:
            features = self.represent(to(x, self.place))
        found = features.double() @ self.solution.W
        if self.spec.kind != "classification":
            return found
        return found.masked_fill(output_counts(self.sets.parts, self.spec.outputs) == 0, UNSEEN)

    def grown(self, before: int) -> None:
        super().grown(before)
        assert self.spec is not None
        if self.solution is not None:
            more = torch.zeros(self.width, self.spec.outputs - self.solution.W.shape[1], dtype=torch.float64)
            W, whole = self.solution.W, self.solution.whole
            whole = None if whole is None else torch.cat([whole, more], 1)
            self.use(replace(self.solution, W=torch.cat([W, more], 1), whole=whole))
        if self.spec.kind == "multilabel" and "y" in self.held.memory.columns:
            held = self.held.memory["y"]
            self.held.memory.widen("y", held.new_full((len(held), self.spec.outputs - before), torch.nan))

    def agree_on(self, task: int, tolerance: Any) -> None:
        if tolerance is not None:
            self.tolerances.agree_on(task, tolerance)

    def vouch_for(self, task: int) -> None:
        self.registry.unseen.append(task)

    @property
    def duals(self) -> dict[int, float]:
        """λ of each limit, by its number; of an offset e^offset − 1."""
        return {} if self.solution is None else self.solution.duals

    def final_duals(self) -> list[float]:
        if not self.tolerances.stated_any:
            return []
        return [self.duals.get(k, 0.0) for k in range(len(self.tolerances))]

    def report(self) -> Report:
        return described(self)

    def move_reference(self, task: int, name: str) -> dict[str, Any]:
        limit = self.tolerances.of(task)
        if not isinstance(limit, Rise | Relative):
            stated = "it has no limit" if limit is None else f"its limit {describe(limit)} compares with nothing"
            raise UsageError(f"rebase({name!r}) has no effect: {stated}; only such as +2pt and 1.1x have a reference")
        before, old = values_then(self)[task], self.tolerances.values[task]
        refer(self, task)
        now = values_then(self)[task]
        self.tolerances.values[task] = new = limit.of(task, now)
        return {"limit": describe(limit), "unit": limit.unit, "then": before, "now": now, "old": old, "new": new}

    # What sums allow.

    def merge(self, other: Exact) -> None:
        """Add what another learner with the same features has seen: `pdcl.learner("exact", features=first.phi)`.

        Tasks of one name become one task, others come behind. Nothing has changed where it is refused.
        """
        with all_or_nothing(self) as before:
            editing.merge(self, other)
            before.settle()

    def forget(self, x: Any, y: Any) -> int:
        """Take samples out, exactly: the learner then equals one that never saw them, given φ and its other guards.

        Needs erasable=True. Gives their number; a sample that was never learned is refused, and nothing changes.
        """
        with all_or_nothing(self) as before:
            count = editing.forget(self, x, y)
            before.settle()
        return count

    def take_out(self, hashes: Tensor, x: Tensor | None, y: Any = None) -> int | None:
        return editing.take_out(self, x, y)

    def room_gains(self, task: int, more: float) -> float | None:
        """P(ε) − P(ε + more) of a limit in loss, at most λ · more; for one in error, the fall of guards' mean error."""
        return what_more_room_gains(self, task, more)

    def other_limits(self) -> list[dict[str, Any]]:
        return sliders(self)

    # State.

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state["method"] |= exact_state(self)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        take_exact_state(self, state["method"])
