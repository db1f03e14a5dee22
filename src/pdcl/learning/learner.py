"""What the loop trains: the contract that every method keeps, on one screen.

A learner owns its network, optimiser, memory and generator; the loop owns order, epochs, evaluation and events.
Only `step` must be written. Fields of the dataclass are the method's options, on the command line, in studies and in
a run's `config.json`; attributes named in `persistent` are what it saves beyond network, optimiser and memory.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pdcl.errors import Diverged, UsageError
from pdcl.given import seed_of, short
from pdcl.judging.table import Promises
from pdcl.learning.batches import Batch, seeded
from pdcl.learning.data_parallel import Spread
from pdcl.learning.events import Listener, ignore
from pdcl.learning.fields import check_fields, check_unused
from pdcl.learning.optimizers import MakeOptimizer, MakeScheduler, check_optimizer, load_optimizer, make_optimizer
from pdcl.learning.placement import Finiteness, autocast, check_placement, device_of
from pdcl.learning.report import Report
from pdcl.learning.stated import check_enough
from pdcl.learning.updates import Updater, Updates, scaled
from pdcl.learning.weighting import check_weights, weigh_classes
from pdcl.networks import eval_mode, has_batch_statistics
from pdcl.networks.heads import check_same_parameters, keep_frozen_statistics
from pdcl.networks.named import build_named
from pdcl.networks.soundness import check_computes, check_finite_weights, check_learns
from pdcl.objective import OBJECTIVES, Objective, outputs_each
from pdcl.past.repeats import Earlier
from pdcl.past.store import Memory
from pdcl.streams.data import Data
from pdcl.streams.task import Spec, Stream, Task
from pdcl.trees import Tree, call, joined, length, logits_of, split, to

EVALUATION_BATCH = 250


@dataclass(frozen=True)
class Step:
    """What one update did: the current batch's losses, one per sample, and numbers worth plotting.

    `losses` are looked at some steps later, so nobody may write into them.
    """

    losses: Tensor
    scalars: dict[str, float] = field(default_factory=dict)


@dataclass(eq=False)
class Trainable(Spread, ABC):
    """A network that learns tasks one after another by one method.

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

    persistent: ClassVar[tuple[str, ...]] = ()
    # What options did before they were options: for states that don't name them.
    former: ClassVar[dict[str, Any]] = {}
    cannot: ClassVar[tuple[str, ...]] = ()
    # Options that a stream's preset has no say in: it was made for methods of another kind.
    not_from_presets: ClassVar[tuple[str, ...]] = ()
    # Options of every learner, or of the loop, that do nothing for this one.
    unused: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # `dataclass` writes a repr of all options into every class that has none of its own.
        cls.__repr__ = cls.__dict__.get("__repr__", Trainable.__repr__)  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """The method, its network and the options that aren't the defaults, then what it has learned."""
        own = [(f.name, getattr(self, f.name), f.default) for f in fields(self) if f.init and f.name != "network"]
        said = [
            f"{name}={value!r}" for name, value, usual in own if value != usual and not isinstance(value, nn.Module)
        ]
        shown = repr(self.network) if isinstance(self.network, str) else type(self.network).__name__
        return f"{type(self).__name__}({', '.join([shown, *said])}): {self._learned()}"

    def _learned(self) -> str:
        if self.spec is None:
            return "nothing learned yet"
        classes = f", {len(self.spec.labels)} classes" if self.spec.labels else ""
        held = "" if self.store is None else f", {len(self.store)} samples in memory"
        return f"{self.tasks_learned} task{'s' * (self.tasks_learned != 1)} learned{classes}{held}"

    def __post_init__(self) -> None:
        check_fields(self)
        check_unused(self)
        check_optimizer(self.optimizer, self.lr, Trainable.lr, self.weight_decay)
        check_weights(self.class_weights)
        self.updater = Updater(Updates(self.clip_norm, self.accumulate, self.scheduler))
        if not self.lr > 0:
            raise UsageError(f"lr={self.lr} must be positive")
        seed_of(self.seed)
        if self.weight_decay < 0:
            raise UsageError(f"weight_decay={self.weight_decay} must not be negative")
        if not isinstance(self.network, nn.Module | str):
            raise UsageError(f"network={self.network!r} must be a torch module, or a name such as mlp:100-100")
        if self.backbone is not None and not isinstance(self.backbone, nn.Module):
            raise UsageError(f"backbone={short(self.backbone)} must be a torch module")
        if self.objective != "auto" and not isinstance(self.objective, Objective):
            raise UsageError(f"objective={short(self.objective)} must be 'auto' or a pdcl Objective")
        for what, module in (("network", self.network), ("backbone", self.backbone)):
            if isinstance(module, nn.Module):
                check_computes(module, what)
        check_placement(self.device, self.precision)
        self.spec: Spec | None = None
        self.store: Memory | None = None
        self.emit: Listener = ignore
        self.earlier = Earlier([])
        self.promises: Promises | None = None
        self.tasks_learned = 0
        self.generator = seeded(self.seed, 1)
        self.stay_alone()

    def prepare(self, spec: Spec) -> None:
        """Build what depends on the stream; reject what this method can't do. Called once, before the first task."""
        if spec.tasks is not None:
            check_enough(getattr(self, "tolerance", None), spec.tasks)
        self.spec = spec
        self.place = device_of(self.device)
        self.goal = OBJECTIVES[spec.kind] if isinstance(self.objective, str) else self.objective
        if self.class_weights is not None:
            self.goal = weigh_classes(self.goal, self)
        if isinstance(self.network, str):
            if spec.leaves:
                raise UsageError(
                    f"network={self.network!r} takes one tensor, and inputs are {spec.inputs()}; give a module"
                )
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                self.model: nn.Module = build_named(self.network, spec.shape, spec.outputs)
        else:
            self.model = self.network
        check_learns(self.model)
        self.model.to(self.place)
        self.finiteness = Finiteness.on(self.place)
        keep_frozen_statistics(self.model)
        self.batch_statistics = has_batch_statistics(self.model)
        self.optimiser = self.new_optimiser()

    def new_optimiser(self) -> torch.optim.Optimizer:
        return make_optimizer(self.optimizer, self.model, self.lr, self.weight_decay)

    def begin_updates(self, steps: int) -> None:
        """A task of `steps` batches starts: every rate is what it was at first, and a schedule begins."""
        handed = None if isinstance(self.optimizer, str) else self.new_optimiser().param_groups
        for number, group in enumerate(self.optimiser.param_groups):
            own = {"lr": self.lr, "weight_decay": self.weight_decay}
            group.update(own if handed is None else {"lr": handed[number]["lr"]})
            group.pop("initial_lr", None)
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

    def note(self, task: Task, stream: Stream, settings: dict[str, Any], result: dict[str, Any]) -> None:
        """The loop has learned and measured a task of a stream; a long-lived learner enters it in its lineage."""

    def notes(self) -> list[dict[str, Any]]:
        """What `note` has entered so far."""
        return []

    def restore_notes(self, notes: list[dict[str, Any]], stream: Stream, tasks: Sequence[Task]) -> None:
        """Resuming: take over notes on these tasks of the stream."""

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

    def report(self) -> Report:
        """What a method with tolerances has to say of itself; empty for others."""
        return Report()

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

    def outputs(self, raw: Tree, augment: bool = True) -> Tensor:
        """Network outputs for raw inputs: a tensor is normalised, and augmented while training; trees are as they are.

        A dict is handed over as keywords, a tuple as arguments. Of what comes back the logits are taken.
        """
        assert self.spec is not None
        # A rank may have no sample in a step, all the same gradients are waited for; few networks take an empty batch.
        if not self.peers.alone and not length(raw):
            return self.outputs(to(self.spec.blank(1), self.place), augment)[:0]
        generator = self._augmenting() if augment and self.model.training else None
        model = self._trained_model() if self.model.training and torch.is_grad_enabled() else self.model
        with autocast(self.place, self.precision):
            out = model(self.spec.transform(raw, generator)) if isinstance(raw, Tensor) else call(model, raw)
        out = out if isinstance(out, Tensor) else logits_of(out)
        return out if out.dtype == torch.float64 else out.float()

    def scores(self, raw: Tree) -> Tensor:
        """What evaluation and `predict` look at, n × outputs."""
        return self.outputs(raw, augment=False)

    def penultimate(self, raw: Tree) -> Tensor:
        """What the last layer sees, n × d."""
        assert self.spec is not None
        found = getattr(self.model, "features", None)
        x = self.spec.transform(raw) if isinstance(raw, Tensor) else raw
        return logits_of(call(found if callable(found) else self.model, x))

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """One loss per sample."""
        return self.goal.loss(outputs, targets)

    def backward(self, losses: Tensor, weights: Tensor | None = None) -> None:
        """Gradients of Σ_i weights_i losses_i (their mean, without weights), after checking that they are finite."""
        total = self.finiteness.look(losses.detach().sum())
        if not math.isfinite(total):
            raise Diverged(
                f"the loss became {total} ({self._rate()}); "
                "lower lr, or look for inputs far outside the range of the others"
            )
        if not losses.requires_grad:
            raise UsageError(
                "the network's outputs have no gradient: its forward detaches them or computes under torch.no_grad(), "
                "so that nothing can be learned"
            )
        self.updater.clear(self.optimiser)
        each = torch.full_like(losses, 1 / losses.numel()) if weights is None else weights.to(losses.dtype)
        losses.backward(scaled(each, self.updater.rules.batches))

    def _rate(self) -> str:
        return f"lr={self.optimiser.param_groups[0]['lr']:g}, optimizer={type(self.optimiser).__name__}"

    def descend(self, losses: Tensor, weights: Tensor | None = None) -> None:
        """One step down Σ_i weights_i losses_i, or the mean; where batches are accumulated, part of one."""
        self.backward(losses, weights)
        self.update()

    def update(self) -> None:
        """Let the optimiser make a step with the gradients that are there, once there are enough."""
        self.updater.gather(self.optimiser)

    def check_finite(self) -> None:
        """Raise Diverged unless all weights are finite: only good states are worth keeping."""
        for name, value in self.model.state_dict().items():
            if value.is_floating_point() and not bool(value.isfinite().all()):
                raise Diverged(f"{name} is no longer finite ({self._rate()}); lower lr")

    @torch.no_grad()
    def evaluated(self, x: Tree, size: int = EVALUATION_BATCH) -> Tensor:
        """Scores of many raw inputs in eval mode, in pieces of `size`."""
        with eval_mode(self.model):
            return joined([self.scores(to(part, self.place)) for part in split(x, size)])

    @torch.no_grad()
    def logits(self, x: Tree) -> Tensor:
        """Outputs of the network in eval mode, whatever the method's scores are."""
        with eval_mode(self.model):
            return joined([self.outputs(to(part, self.place), augment=False) for part in split(x, EVALUATION_BATCH)])

    def state_dict(self) -> dict[str, Any]:
        """Everything that determines this learner's future, as tensors and JSON values."""
        return {
            "network": self.model.state_dict(),
            "optimizer": self.optimiser.state_dict(),
            **({"updates": updates} if (updates := self.updater.state_dict(self.optimiser)) else {}),
            "memory": None if self.store is None else self.store.state_dict(),
            "generator": self.generator.get_state(),
            "tasks_learned": self.tasks_learned,
            "method": {name: getattr(self, name) for name in self.persistent},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state saved by `state_dict` of an equal, prepared learner."""
        check_same_parameters(self.model.state_dict(), state["network"])
        check_finite_weights(state["network"])
        self.model.load_state_dict(state["network"])
        self.optimiser = self.new_optimiser()
        self.updater.load_state_dict(self.optimiser, state.get("updates", {}))
        load_optimizer(self.optimiser, state["optimizer"])
        if self.store is not None:
            self.store.load_state_dict(state["memory"])
        self.generator.set_state(state["generator"])
        self.tasks_learned = state["tasks_learned"]
        for name in self.persistent:
            setattr(self, name, state["method"][name])
