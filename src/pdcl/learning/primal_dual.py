"""Primal-dual continual learning without a loop and without a network: Algorithm 1 on stored samples.

min L_t(θ) + b Σ_k L_k(θ)   s.t.   L_k(θ) ≤ ε_k for every past task k         (b = 0: the paper's problem)

The core owns memory, limits, duals and the rules between them. Whoever trains asks it what to replay, hands it the
losses, and lends it a forward pass now and then:

    trained = core.hold_back(data, generator, forward)      None: train on all of it
    core.begin(samples, steps)
    each step:   drawn = core.draw(m);  descend core.terms(outputs, y, drawn) with core.weights(n, drawn)
                 core.observe(index, terms, n);  if core.due(): core.measure(forward)
    core.end(name, data, forward, first_id)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pdcl.algorithm.algorithm1 import Algorithm1, Drawn, Duals
from pdcl.algorithm.constraints import Constraints, base_weight
from pdcl.algorithm.rules import rule
from pdcl.algorithm.slacks import Survey
from pdcl.errors import UsageError
from pdcl.learning.choices import SAMPLE_TOLERANCE, Choices
from pdcl.learning.core_state import state_of, take_state
from pdcl.learning.end_of_task import Ended, ToEnd
from pdcl.learning.progress import Moved, Pace, Progress
from pdcl.learning.report import Report, Trace
from pdcl.limits.tolerances import ToleranceChange, Tolerances, usual_partition
from pdcl.objective import OBJECTIVES, Objective
from pdcl.past.held_back import HeldBack
from pdcl.past.refill import Source
from pdcl.past.registry import Registry
from pdcl.past.segments import Segments
from pdcl.past.store import Memory
from pdcl.past.stored import Forward, StoredSamples
from pdcl.ranks import ALONE, Ranks
from pdcl.trees import cat


class PrimalDual:
    """Limits, memory and rules of one learner; see the module for how it is used.

    memory: a bound in samples or bytes, or a Memory. tolerance: what users state (None: no limits). base: b. guard,
    witness: samples a task sets aside (None: as usual where a limit is stated). dual, estimator, partition, selection,
    lever: rules, by name ("affine:alpha=.3") or as objects. past: the kind of past, `StoredSamples` or one that extends
    it. The rest as in `pdcl.PDCL`.
    """

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
        partition: Any = None,
        selection: Any = "uniform",
        lever: Any = None,
        drift: float = 0.0,
        soften: float = 0.0,
        slack_samples: int = 512,
        start: float = 0.0,
        warm: bool = False,
        normalise: bool = True,
        dual_steps: int | None = None,
        primal_steps: int | None = None,
        objective: Objective = OBJECTIVES["classification"],
        generator: torch.Generator | None = None,
        device: torch.device | str = "cpu",
        past: type[StoredSamples] = StoredSamples,
    ) -> None:
        self.tolerances = Tolerances(tolerance)
        self.choices = Choices(
            level=level,
            base=base,
            base_most=base_most,
            drift=drift,
            soften=soften,
            slack_samples=slack_samples,
            start=start,
            warm=warm,
            normalise=normalise,
            guard=guard,
            witness=witness,
            estimator=rule("estimator", estimator),
            selection=rule("selection", selection),
            lever=rule("lever", lever),
        )
        self.dual = rule("dual", dual or ("capped" if self.tolerances.in_error else "ascent"))
        self.partition = rule("partition", partition or usual_partition(self.tolerances))
        self.pace = Pace(dual_steps, primal_steps)
        segments = Segments(self.tolerances.segments)
        if segments and level == "sample":
            raise UsageError(f'a limit on a segment ({segments.names[0]}) needs level="task"; leave level out')
        place = torch.device(device)
        held = memory if isinstance(memory, Memory) else Memory(memory, place)
        self.past = past(held, objective, place, drift > 0, guard, witness, segments)
        self.generator = generator or torch.Generator().manual_seed(0)
        self.registry = Registry()
        self.ranks, self.look_spreads = ALONE, False
        self.open_ended = self.always_replays = False
        self.carried: list[float] = []
        self.segment_duals: list[float] = []
        self.last_duals: list[float] = []
        self.aside: HeldBack | None = None
        self.begin(0, 1)

    @property
    def memory(self) -> Memory:
        return self.past.memory

    @property
    def goal(self) -> Objective:
        return self.past.goal

    @property
    def place(self) -> torch.device:
        return self.past.place

    def serve(self, objective: Objective, device: torch.device) -> None:
        """Take what is known only once a stream is: what is learned, and where."""
        self.past.goal, self.past.place = objective, device

    def spread_over(self, ranks: Ranks, look_spreads: bool = False) -> None:
        """Train with these ranks. look_spreads: the forward pass of `measure` divides samples among them itself."""
        self.ranks, self.look_spreads = ranks, look_spreads

    # A task comes.

    def hold_back(
        self, data: Source, generator: torch.Generator, forward: Forward, groups: Tensor | None = None,
        known: Tensor | None = None,
    ) -> Tensor | None:  # fmt: skip
        """Draw guards and witnesses of a new task: the positions that may be trained on (None: all).

        known: which samples were learned before, and so can't be witnesses.
        """
        self.past.allocate(data, forward)
        self.aside = self.past.hold_back(data, groups, self.tolerances.stated_any, generator, known)
        return None if self.aside is None else self.aside.trained

    def begin(self, samples: int, steps: int) -> None:
        """A task of `samples` samples and `steps` updates starts: constraints of the past tasks, and their duals."""
        choices = self.choices
        self.past_tasks = len(self.tolerances)
        by_sample = choices.level == "sample"
        layout = self.past.lay_out(self.past_tasks, by_sample, choices.soften, self.registry.learned)
        self.task_of = layout.task_of
        constraints = self._compiled(layout.tasks, layout.sets, layout.measured_on, by_sample)
        planned = self.pace.dual_steps_of(steps)
        duals = Duals(constraints.limits, self._start(constraints), self.dual, planned)
        survey = Survey(constraints.measured_on, choices.slack_samples, self.generator)
        self.algorithm = Algorithm1(constraints, duals, choices.estimator, survey, choices.normalise)
        self.algorithm.always_replays = self.always_replays
        self.progress = Progress(steps, samples if choices.selection.by_dual else 0, self.dual, planned)
        self.current_limit = self.tolerances.of_current()
        self.pursues = self.tolerances.stated_any and self.dual.moves

    def _compiled(self, tasks: Any, sets: Any, measured_on: Any, by_sample: bool) -> Constraints:
        """Limits as plain arrays, once a task. A sample may have 1.1 times what its task may have."""
        units = [self.tolerances.unit(k) for k in range(self.past_tasks)]
        units += [limit.unit for limit in self.past.segments.limits.values()]
        stated = [*self.tolerances.values, *self.past.segment_limits(sets, measured_on, self.past_tasks)]
        loosened = [self.tolerances.loosened.get(k, 0.0) for k in range(len(stated))]
        epsilon, moved = (torch.tensor(each, dtype=torch.float64) for each in (stated, loosened))
        base = torch.zeros(len(sets), dtype=torch.float64)
        base[sets.tasks >= 0] = base_weight(self.choices.base, self.choices.base_most, self.past_tasks)
        limits = SAMPLE_TOLERANCE * epsilon[sets.tasks] + moved[sets.tasks] if by_sample else epsilon + moved
        in_error = torch.tensor([unit == "error" for unit in units], dtype=torch.bool)
        return Constraints(tasks, sets, measured_on, limits, in_error, base, epsilon + moved, by_sample)

    def _start(self, constraints: Constraints) -> Tensor:
        """Line 4: what duals start a task with; 0 where there is no limit."""
        start = torch.full_like(constraints.limits, self.choices.start)
        if self.choices.warm and constraints.by_sample and len(self.memory):
            start[:] = self.memory["dual"].double().cpu()[constraints.sets.members]
        elif self.choices.warm and not constraints.by_sample:
            start[: len(self.carried)] = torch.tensor(self.carried, dtype=torch.float64)
            if len(self.segment_duals) == len(self.past.segments):
                start[self.past_tasks :] = torch.tensor(self.segment_duals, dtype=torch.float64)
        return torch.where(constraints.limits.isnan(), 0.0, start)

    # A step.

    def draw(self, m: int) -> Drawn | None:
        """What to replay: unbiased for Σ_k (b + λ_k) L_k. None: nothing to replay."""
        return self.algorithm.draw(m, self.generator)

    def terms(self, outputs: Tensor, y: Tensor, drawn: Drawn | None) -> Tensor:
        """What the Lagrangian sums: losses of the n current samples, then of the replayed ones, with their drift."""
        if drawn is None:
            return self.past.goal.loss(outputs, y)
        past, drift = self.past, self.choices.drift
        losses = past.goal.loss(outputs, cat([y, past.targets(drawn.slots)]))
        if not drift:
            return losses
        # Current samples are compared with their own outputs, so their drift is 0: one operation for the whole batch.
        held_to = torch.cat([outputs[: len(y)].detach(), past.recorded.of(drawn.slots)])
        return losses + float(drift) * past.recorded.drift(outputs, held_to)

    def replayed(self, outputs: Tensor, drawn: Drawn) -> Tensor:
        """The same for replayed samples alone, where a loop hides the losses of current ones."""
        losses = self.goal.loss(outputs, self.past.targets(drawn.slots))
        recorded = self.past.recorded
        drift = self.choices.drift
        return losses + drift * recorded.drift(outputs, recorded.of(drawn.slots)) if drift else losses

    def weights(self, n: int, drawn: Drawn | None, total: int | None = None) -> Tensor | None:
        """The weight of each term: 1/n for current samples, the draw's for replayed ones; over 1 + Σμ if normalised.

        None: the plain mean, where nothing is replayed. With several ranks n and `drawn` are this rank's part of
        `total` current samples and of the draw; world × the weights, since gradients are averaged over ranks.
        """
        world = self.ranks.world
        if drawn is None:
            return None if self.ranks.alone else torch.full((n,), world / (total or n), device=self.place)
        if self.ranks.alone:
            return self.algorithm.weights(n, drawn).to(self.past.place)
        whole = self.algorithm.weights(total or n, drawn).to(self.past.place)
        return world * torch.cat([whole[:n], whole[total or n :]])

    def observe(self, index: Tensor, terms: Tensor, n: int) -> None:
        """Account for a step: `terms` as descended, detached, the first n of them of current samples.

        index: positions of the current samples of all ranks.
        """
        losses, progress = terms[:n], self.progress
        if self.pursues:
            mean = losses.mean() if self.ranks.alone else self.ranks.batch_mean(losses, len(index))
            progress.loss_sum = progress.loss_sum + mean
            progress.loss_count += 1
        progress.observed += len(index)
        if len(progress.shadow):
            whole = self.ranks.whole(losses.cpu(), len(index))
            progress.raise_shadows(index, whole, SAMPLE_TOLERANCE * (self.current_limit or 0.0), self.dual.shadow_lr)
        progress.clock += 1

    @property
    def sample_tolerance(self) -> float:
        """ε_i of samples of the task being learned; 0 where it has no limit in loss."""
        return SAMPLE_TOLERANCE * (self.tolerances.of_current() or 0.0)

    # A dual step.

    def due(self) -> bool:
        """Whether a dual step is due after this step."""
        return self.pursues and self.pace.due(self.progress.clock, self.progress.steps)

    def measure(self, forward: Forward) -> Moved | None:
        """Lines 7 and 8: measure slacks, step the duals. forward: stored inputs to outputs, in eval mode. None: no past
        task."""
        if not self.ranks.alone:
            self.synchronise()
        algorithm, progress = self.algorithm, self.progress
        progress.step_current(self.current_limit, self.past.place)
        if not self.past_tasks:
            return None
        look = self.past.look(forward)
        measured = algorithm.measure(look if self.ranks.alone or self.look_spreads else self.ranks.spread(look))
        algorithm.ascend(measured)
        duals = algorithm.task_duals()
        progress.history.append(duals if self.choices.level == "sample" else algorithm.duals.values.clone())
        progress.slacks.append(measured.told)
        past = slice(self.past_tasks)
        slacks, limits = measured.told[past].tolist(), algorithm.constraints.task_limits[past].tolist()
        moved = Moved(duals.tolist(), slacks, limits, progress.current_dual)
        if self.choices.lever is not None:
            self.choices.lever.pull(self, moved)
            algorithm.weigh()
        return moved

    def synchronise(self) -> None:
        """Let every rank hold what one process would."""
        self.progress.loss_sum = self.ranks.mean(self.progress.loss_sum)

    def task_duals(self) -> Tensor:
        """λ_k of every past task: the mean over its samples at the sample level."""
        return self.algorithm.task_duals()

    # A task ends.

    def end(self, name: str, data: Source, forward: Forward, first_id: int) -> Ended:
        """Lines 10 and 11: divide memory and fill it; then set the limits anew and judge what became of them.

        data: all of the task's samples; first_id: the id that its first sample gets.
        """
        return ToEnd(self, name, data, forward, first_id).end()

    # Report and state.

    def report(self) -> Report:
        """Duals, tolerances and the newest task's dual steps, as values."""
        units = [self.tolerances.unit(k) for k in range(len(self.tolerances))]
        past, progress = self.past_tasks, self.progress
        duals, slacks = ([step[:past].tolist() for step in steps] for steps in (progress.history, progress.slacks))
        counts = self.algorithm.constraints.tasks.counts.tolist()
        return Report(
            has_tolerances=self.tolerances.stated_any,
            duals=self.last_duals,
            tolerances=list(self.tolerances.values),
            units=units,
            trace=Trace(duals, slacks, self.tolerances.now(past), counts, units[:past]),
            no_price=self._no_price(units),
            decay=self.dual.relaxation,
            segments=dict(zip(self.past.segments.names, self.segment_duals, strict=False)),
        )

    def _no_price(self, units: list[str]) -> str | None:
        """Why duals are no prices, None if they are: Theorem 1 needs the gradient of the constrained quantity."""
        if "error" in units:
            return "the tolerance is an error rate"
        if self.choices.drift > 0:
            return f"{self.choices.drift:g} × the drift of outputs stands beside the loss under it"
        return None

    state_dict = state_of
    load_state_dict = take_state

    def rebase(self, task: int, forward: Forward) -> ToleranceChange:
        """Make the present loss and error of a task's stored samples its new reference, and set ε_k by it."""
        slots = (self.memory["task"].cpu() == task).nonzero().flatten()
        losses, errors = self.past.look(forward)(slots).unbind(1)
        for name, values in (("reference", losses), ("wrong", errors)):
            column = self.memory[name]
            column[slots.to(column.device)] = values.to(column)
        in_error = [self.tolerances.unit(k) == "error" for k in range(len(self.tolerances))]
        reached = self.past.references(len(self.tolerances), in_error)[task]
        old = self.tolerances.values[task]
        new = self.tolerances.values[task] = self.tolerances.measured(task, reached)
        return ToleranceChange(task, old, new, self.tolerances.unit(task), "rebased", reached, None)
