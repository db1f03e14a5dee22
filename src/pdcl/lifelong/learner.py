"""The learner: a network that learns tasks one after another by one method, over years.

It owns its network, optimiser, memory and generator; the loop owns order, epochs, evaluation and events. A method
extends `Learner`, and only `step` must be written. Fields of the dataclass are its options, on the command line, in
studies and in a run's `config.json`; attributes named in `persistent` are saved beyond network, optimiser and memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pdcl.errors import Diverged, UsageError
from pdcl.judging.table import Promises
from pdcl.learning.batches import Batch, Step, seeded
from pdcl.learning.data_parallel import Averaged, check_ranks
from pdcl.learning.events import Listener, ignore
from pdcl.learning.forward import evaluated, logits, outputs, penultimate, scores
from pdcl.learning.optimizers import MakeOptimizer, MakeScheduler, make_optimizer, restart_rates
from pdcl.learning.options import check_options, told
from pdcl.learning.placement import device_of
from pdcl.learning.report import Report
from pdcl.learning.state import state_of, take_state
from pdcl.learning.stated import check_enough
from pdcl.learning.updates import Finiteness, Updater, Updates, backward, descend, rate_of, update
from pdcl.learning.weighting import weigh_classes
from pdcl.lifelong.export import export
from pdcl.lifelong.forgetting import forget_samples
from pdcl.lifelong.learn import adopt, learn
from pdcl.lifelong.lineage import Lineage
from pdcl.lifelong.predict import evaluate, predict, predict_proba
from pdcl.lifelong.rebase import rebase
from pdcl.lifelong.rows import takes_tables
from pdcl.lifelong.save import save_to
from pdcl.networks import has_batch_statistics
from pdcl.networks.heads import keep_frozen_statistics
from pdcl.networks.named import network_for
from pdcl.networks.soundness import check_learns
from pdcl.objective import OBJECTIVES, Objective, outputs_each
from pdcl.past.repeats import Earlier
from pdcl.past.store import Memory
from pdcl.ranks import ALONE, Ranks
from pdcl.streams.data import Data
from pdcl.streams.table_reader import TableReader
from pdcl.streams.task import Spec, Task
from pdcl.streams.transform import Transform

NO_LIMITS: Any = None


@dataclass(eq=False)
class Learner(ABC):
    """A network that learns tasks one after another by one method, months apart if need be.

    `promises` is the table of all stated limits with their verdicts after the newest task (`pdcl.Promises`), None where
    there are no limits. `lineage` has the whole life.

    network: a module that gives logits, or a name: auto, linear, mlp:100-100, mlp-glorot, cnn, audio, resnet18:20; on
        the command line also PACKAGE.MODULE:FUNCTION that builds one
    seed: of everything random
    lr: η_p, the learning rate
    optimizer: sgd, adam or adamw; in Python a class or partial, called with parameters, or a function of the network
    weight_decay: of the optimiser
    keep_optimizer: keep its state from task to task
    scheduler: of the learning rate within a task: linear or cosine (cosine:0.1: a tenth of it to warm up), in Python
        also a function of the optimiser and the number of updates
    clip_norm: the largest norm of a gradient
    accumulate: batches whose mean gradient makes one update
    class_weights: weights of losses by label, 1 where none is stated: {"fraud": 5}
    device: auto, cpu, cuda, mps
    precision: float32, or bfloat16 and float16 by autocast
    objective: what is learned; auto: by the kind of the stream
    backbone: a frozen network in front of this one; memory then holds its features (`learn` and `adopt` only)
    """

    network: nn.Module | str = "auto"
    _: KW_ONLY
    seed: int = 0
    lr: float = 0.001
    optimizer: str | MakeOptimizer = "adam"
    weight_decay: float = 0.0
    keep_optimizer: bool = True
    scheduler: str | MakeScheduler | None = None
    clip_norm: float | None = None
    accumulate: int | None = None
    class_weights: Mapping[Any, float] | None = None
    device: str = "auto"
    precision: str = "float32"
    objective: Objective | str = "auto"
    backbone: nn.Module | None = None

    # Limits that users stated, for methods that have such an option.
    tolerance = NO_LIMITS

    persistent: ClassVar[tuple[str, ...]] = ()
    # What options did before they were options: for states that don't name them.
    former: ClassVar[dict[str, Any]] = {}
    cannot: ClassVar[tuple[str, ...]] = ()
    # Options that a stream's preset has no say in: it was made for methods of another kind.
    not_from_presets: ClassVar[tuple[str, ...]] = ()
    # Options of every learner, or of the loop, that do nothing for this one.
    unused: ClassVar[tuple[str, ...]] = ()
    # Whether `step` computes its rank's part alone. A subclass with another step must say so for itself.
    data_parallel: ClassVar[bool] = False
    # What `pdcl.forget` can't take training samples out of; {path}: where the model is.
    keeps_traces: ClassVar[str] = (
        "the weights of {path}, of its previous state and of exports were trained on them; only a model that is "
        "trained anew without them never saw them"
    )

    # What users call: each is a function in a file of its own, and its signature is the method's.
    learn = takes_tables(learn)
    adopt = takes_tables(adopt)
    rebase = rebase
    predict = predict
    predict_proba = predict_proba
    evaluate = evaluate
    save = save_to
    export = export

    __repr__ = told

    # What determines its future, as tensors and JSON values.
    state_dict = state_of
    load_state_dict = take_state

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # `dataclass` writes a repr of all options into every class that has none of its own.
        cls.__repr__ = cls.__dict__.get("__repr__", Learner.__repr__)  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        check_options(self, Learner.lr)
        self.updater = Updater(Updates(self.clip_norm, self.accumulate, self.scheduler))
        self.spec: Spec | None = None
        self.store: Memory | None = None
        self.emit: Listener = ignore
        self.earlier = Earlier([])
        self.promises: Promises | None = None
        self.tasks_learned = 0
        self.generator = seeded(self.seed, 1)
        self.peers, self.averaged = ALONE, Averaged(ALONE)
        self.lineage = Lineage()
        # Where it was saved. The gate writes its looks there, too.
        self.home: Path | None = None
        # How raw inputs are read before a backbone sees them.
        self.reading = Transform()
        # How rows of a table are read; None: the first task were arrays.
        self.table: TableReader | None = None
        self.backbone_hash: str | None = None
        # An option of the saved state that this version has no more: the learner predicts, and can't learn on.
        self.learned_with: str | None = None
        # Which samples of the current task were learned before, and so can't be witnesses.
        self.learned_before: Tensor | None = None

    def prepare(self, spec: Spec) -> None:
        """Build what depends on the stream; reject what this method can't do. Called once, before the first task."""
        if spec.tasks is not None:
            check_enough(self.tolerance, spec.tasks)
        self.spec = spec
        self.place = device_of(self.device)
        self.goal = OBJECTIVES[spec.kind] if isinstance(self.objective, str) else self.objective
        if self.class_weights is not None:
            self.goal = weigh_classes(self.goal, self)
        self.model = network_for(self.network, spec, self.seed)
        check_learns(self.model)
        self.model.to(self.place)
        self.updater.finiteness = Finiteness.on(self.place)
        keep_frozen_statistics(self.model)
        self.batch_statistics = has_batch_statistics(self.model)
        self.optimiser = self.new_optimiser()

    def new_optimiser(self) -> torch.optim.Optimizer:
        return make_optimizer(self.optimizer, self.model, self.lr, self.weight_decay)

    def begin_updates(self, steps: int) -> None:
        """A task of `steps` batches starts: every rate is what it was at first, and a schedule begins."""
        own = {"lr": self.lr, "weight_decay": self.weight_decay}
        restart_rates(self.optimiser, own if isinstance(self.optimizer, str) else self.new_optimiser())
        self.updater.begin(self.optimiser, steps)

    def output_width(self) -> int:
        """How many outputs the network gives, found by asking it."""
        assert self.spec is not None
        return outputs_each(self.evaluated(self.spec.blank(1)), self.spec.kind)

    def mix(self, task: Task) -> Data | None:
        """Samples to mix into the task's training data, such as what memory holds."""
        return None

    def hold_back(self, task: Task) -> Task:
        """The part of a task that is trained on; the rest is stored and never trained on. The same each time."""
        return task

    def begin(self, task: Task, steps: int) -> None:
        """A task of `steps` updates starts."""

    def take(self, batch: Batch) -> Step:
        """What the loop calls: `step`, with options that were left open at what they come to for this batch."""
        return self.step(batch)

    @abstractmethod
    def step(self, batch: Batch) -> Step:
        """One whole update on a batch of the current task."""

    def end(self, task: Task) -> None:
        """The task is over; its data is still here, for the last time."""

    def recall(self, tasks: Sequence[Task]) -> None:
        """Resuming: these tasks were learned before. Only a method that keeps whole tasks needs to know."""

    def absorb(self, task: Task) -> None:
        """Take in a task that the network knows already, as `end` would after learning it; train nothing."""
        part = self.hold_back(task)
        self.begin(part, 1)
        self.end(part)

    def check_room(self, task: Task) -> None:
        """Refuse a task that memory couldn't keep, before it is trained."""

    def agree_on(self, task: int, tolerance: Any) -> None:
        """Give one task a tolerance of its own (None: as all have)."""
        if tolerance is not None:
            raise UsageError(f"tolerance={tolerance!r} has no effect: {type(self).__name__} knows no tolerances")

    def vouch_for(self, task: int) -> None:
        """Samples of an adopted task are such as the network never saw: what they show may certify its limit."""

    def grown(self, before: int) -> None:
        """The network has more outputs than before: recorded outputs get what it gives for the new ones."""
        if self.store is not None and "outputs" in self.store.columns:
            self.store.widen("outputs", self.logits(self.store["x"])[:, before:], self.generator)

    def move_reference(self, task: int, name: str) -> dict[str, Any]:
        """Store what a task has now as its reference: its limit before and after."""
        raise UsageError(f"rebase({name!r}) has no effect: {type(self).__name__} knows no limits")

    def other_limits(self) -> list[dict[str, Any]]:
        """Errors of all tasks under other limits, for a page's sliders; nothing where that would take training."""
        return []

    def room_gains(self, task: int, more: float) -> float | None:
        """What `more` room for a past task's limit wins, measured by solving anew; None for learners that can't."""
        return None

    def take_out(self, hashes: Tensor, x: Tensor | None, y: Any = None) -> int | None:
        """Take stored samples out, for `pdcl.forget`: how many there were, None where nothing changed.

        hashes: under the lineage's key. x, y: the samples themselves, where they were given.
        """
        return forget_samples(self, hashes)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels known so far, in the order of `predict_proba`'s columns."""
        return () if self.spec is None else self.spec.labels

    def report(self) -> Report:
        """What a method with tolerances has to say of itself; empty for others."""
        return Report()

    def final_duals(self) -> list[float]:
        """λ_k of every past task at the end of a task, then the artificial one; [] where a method has none."""
        return []

    @classmethod
    def settled(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """What options that are left open (None) come to beside these, for a run's `config.json`."""
        return {}

    @classmethod
    def translated(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options that an older version saved, in the words of this one."""
        return dict(options)

    @classmethod
    def gone(cls, options: Mapping[str, Any]) -> str | None:
        """The first of these saved options that this version has no more; None: it has all."""
        return None

    @classmethod
    def without_effect(cls, options: Mapping[str, Any]) -> dict[str, str]:
        """Options among these that do nothing beside the others, and why."""
        return {}

    # Several ranks.

    def spread_over(self, ranks: Ranks) -> None:
        """Train with these ranks from now on; call it after `prepare`."""
        check_ranks(self, ranks)
        self.peers, self.averaged = ranks, Averaged(ranks)

    def synchronise(self) -> None:
        """Let every rank hold what one process would, where ranks hold parts of a number."""

    def even_weights(self, losses: Tensor, total: int) -> Tensor | None:
        """The weights of a mean over `total` samples of all ranks, these among them."""
        return None if self.peers.alone else torch.full_like(losses, self.peers.world / total)

    # Forward, in `forward.py`, and backward, in `updates.py`.

    outputs = outputs
    scores = scores
    penultimate = penultimate
    evaluated = evaluated
    logits = logits
    backward = backward
    descend = descend
    update = update

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """One loss per sample."""
        return self.goal.loss(outputs, targets)

    def check_finite(self) -> None:
        """Raise Diverged unless all weights are finite: only good states are worth keeping."""
        for name, value in self.model.state_dict().items():
            if value.is_floating_point() and not bool(value.isfinite().all()):
                raise Diverged(f"{name} is no longer finite ({rate_of(self.optimiser)}); lower lr")
