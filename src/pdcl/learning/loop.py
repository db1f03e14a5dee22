"""The loop: tasks in order, epochs, batches, evaluation, events. It knows no method and no file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pdcl.errors import Diverged, UsageError
from pdcl.learning.batches import Batch, Step, batches, epoch_order, in_blocks, mixed, seeded
from pdcl.learning.data_parallel import replicated
from pdcl.learning.evaluation import evaluate
from pdcl.learning.events import Evaluated, Listener, RunFailed, Stepped, TaskBegan, TaskEnded, ignore
from pdcl.learning.meter import Meter
from pdcl.learning.placement import computing
from pdcl.learning.schedule import Schedule
from pdcl.past.repeats import Earlier
from pdcl.streams.data import Data
from pdcl.streams.task import Stream, Task

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


@dataclass(frozen=True)
class Position:
    """Where a run is: the next step is batch `step` of `epoch` of `task`."""

    task: int = 0
    epoch: int = 0
    step: int = 0


@dataclass
class History:
    """What was measured after each task, row j after task j."""

    class_il: list[list[float]] = field(default_factory=list)
    task_il: list[list[float]] = field(default_factory=list)
    duals: list[list[float]] = field(default_factory=list)
    partitions: list[list[int]] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)
    promises: list[dict[str, Any]] = field(default_factory=list)


def keep_nothing(loop: Loop) -> None:
    """For callers who need no checkpoints."""


@dataclass
class Loop:
    """One learner through one stream. `keep` is offered the loop after every step and every task."""

    learner: Learner
    stream: Stream
    schedule: Schedule
    listener: Listener = ignore
    keep: Callable[[Loop], None] = keep_nothing
    position: Position = field(default_factory=Position)
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        if self.learner.place.type == "meta":
            raise UsageError("device='meta' computes no numbers, so that nothing can be learned; choose auto or cpu")
        self._meter = Meter()
        self._random: dict[str, Tensor] | None = None
        self._earlier = Earlier([task.data for task in self.stream.tasks])

    def run(self) -> History:
        """Learn every task from `position` on."""
        self.learner.emit = self.listener
        with _own_randomness(), computing(self.learner.model):
            self._restore_randomness()
            for task in self.stream.tasks[self.position.task :]:
                self._learn(task)
                self._note(task)
                self.keep(self)
        return self.history

    def _restore_randomness(self) -> None:
        """Go on with the generators of rank 0; other ranks must not draw the same."""
        if self._random is None:
            return
        set_randomness(self._random)
        if not self.learner.peers.first:
            place = (self.learner.seed, *astuple(self.position), *self.learner.peers.own_numbers)
            torch.manual_seed(seeded(*place).initial_seed() % 2**63)

    def _note(self, task: Task) -> None:
        """Enter the task in the learner's lineage, before its state is kept."""
        settings = {"epochs": self.schedule.epochs, "batch": self.schedule.batch, "stream": self.stream.name}
        score = self.history.class_il[-1][task.index]
        tolerances = self.learner.report().tolerances
        result: dict[str, Any] = {
            "test": score,
            "tolerance": tolerances[task.index] if task.index < len(tolerances) else None,
        }
        if self.learner.promises is not None:
            result["promises"] = self.learner.promises.as_json()
        self.learner.lineage.note_task(task, self.stream, settings, result)

    def learn(self, task: Task) -> History:
        """Learn one task that needn't be of the stream."""
        self.learner.emit = self.listener
        with _own_randomness(), computing(self.learner.model):
            self._learn(task)
        return self.history

    def synchronise(self) -> None:
        """Let every rank hold what one process would, before rank 0 keeps it for all."""
        total = self._meter.sum_up(self.learner.peers)
        if total is not None:
            self._meter.total = self.learner.peers.mean(total)
        self.learner.synchronise()

    def state_dict(self) -> dict[str, Any]:
        """Where the run is and what it measured: with the learner's state, all that determines what follows."""
        return {
            "position": list(astuple(self.position)),
            "history": asdict(self.history),
            "meter": {"total": self._meter.sum_up(self.learner.peers), "count": self._meter.count},
            "random": randomness(),
            "lineage": self.learner.lineage.entries,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where the loop was that gave `state`, with a learner that has taken over its own."""
        self.position, self.history = Position(*state["position"]), History(**state["history"])
        if damaged := [name for name, rows in asdict(self.history).items() if not isinstance(rows, list)]:
            raise UsageError(f"what the state measured is damaged: {damaged[0]} is no list")
        if not all(isinstance(number, int) for number in astuple(self.position)):
            raise UsageError(f"the state is at {state['position']!r:.60}, which is no task, epoch and step")
        if not 0 <= self.position.task <= len(self.stream.tasks):
            raise UsageError(f"the state is at task {self.position.task} of a stream of {len(self.stream.tasks)}")
        total, count = state["meter"]["total"], state["meter"]["count"]
        if not (isinstance(total, Tensor | None) and isinstance(count, int)):
            raise UsageError(f"the state's sum of losses is damaged: {total!r:.40} over {count!r:.40} steps")
        self._meter = Meter(total, count)
        self._random = checked_randomness(state["random"])
        past = self.stream.tasks[: self.position.task]
        self.learner.lineage.resume(state["lineage"], self.stream, past)
        self.learner.promises = self.learner.lineage.promises
        self.learner.recall(past)

    def _learn(self, task: Task) -> None:
        learner, fresh = self.learner, self.position.epoch == self.position.step == 0
        if fresh:
            torch.manual_seed(seeded(learner.seed, task.index, 2, *learner.peers.own_numbers).initial_seed() % 2**63)
            if not learner.keep_optimizer:
                learner.optimiser = learner.new_optimiser()
        # For a task outside the stream, the caller of `learn` says which samples were learned before.
        learner.earlier = self._earlier if task.index < len(self.stream.tasks) else Earlier([])
        whole, task = task, learner.hold_back(task)
        learner.earlier = Earlier([])
        more = learner.mix(task)
        data = task.data if more is None else mixed([task.data, more])
        if fresh:
            self._announce(task, len(data))
            learner.begin(task, self._steps(len(data)))
            learner.begin_updates(self._steps(len(data)))
        learner.model.train()
        try:
            for epoch in range(self.position.epoch, self.schedule.epochs):
                self._epoch(task, data, epoch)
        except Diverged as error:
            self.listener(RunFailed(task.index, self.position.step, str(error)))
            place = f"task {task.index} ({task.name}), epoch {self.position.epoch}, step {self.position.step}"
            raise error.at(place) from error
        learner.updater.flush(learner.optimiser)
        learner.end(task)
        learner.peers.check_agreement("weights, duals and memory", *replicated(learner))
        learner.tasks_learned += 1
        self.listener(TaskEnded(task.index, self._steps(len(data))))
        self._measure(whole)
        self.position = Position(task.index + 1)

    def _steps(self, samples: int) -> int:
        return self.schedule.steps(samples, self.learner.batch_statistics)

    def _announce(self, task: Task, samples: int) -> None:
        labels = self.stream.spec.labels
        names = [str(labels[c]) for c in task.classes] if labels else []
        self.listener(TaskBegan(task.index, task.name, samples, self._steps(samples), names))

    def _epoch(self, task: Task, data: Data, epoch: int) -> None:
        learner, size = self.learner, self.schedule.batch
        order = in_blocks(epoch_order(len(data), learner.seed, task.index, epoch), data)
        per_epoch = self.schedule.per_epoch(len(data), learner.batch_statistics)
        every = max(1, self.schedule.epochs * per_epoch // 50)
        start = self.position.step if epoch == self.position.epoch else 0
        joins = learner.batch_statistics
        read = batches(data, task.index, size, order, learner.place, start, learner.peers, joins)
        for number, batch in enumerate(read, start):
            self.position = Position(task.index, epoch, number)
            step = self._step(batch)
            at_least = 1 if number == per_epoch - 1 else every
            loss = self._meter.add(step.losses, batch.total, at_least, learner.peers)
            if loss is not None:
                self.listener(Stepped(task.index, epoch, number, loss, step.scalars))
            self.position = Position(task.index, epoch, number + 1)
            self.keep(self)
        self.position = Position(task.index, epoch + 1, 0)

    def _step(self, batch: Batch) -> Step:
        try:
            return self.learner.take(batch)
        except ValueError as error:
            if not self.learner.batch_statistics or "more than 1 value per channel" not in str(error):
                raise
            raise UsageError(
                f"batch={self.schedule.batch}: the network normalises by the statistics of a batch (BatchNorm), and a "
                "single sample has none; give a larger batch, or a network with GroupNorm"
            ) from error

    def _measure(self, task: Task) -> None:
        learner, history = self.learner, self.history
        found = evaluate(learner, self.stream.tasks)
        history.class_il.append(found.class_il)
        history.task_il.append(found.task_il)
        history.duals.append(learner.final_duals())
        history.partitions.append([] if learner.store is None else learner.store.counts(task.index + 1))
        if learner.promises is not None:
            history.promises.append(learner.promises.as_json())
        if found.confusion is not None:
            history.confusion = found.confusion.tolist()
        self.listener(Evaluated(task.index, found.class_il, found.task_il))


def randomness() -> dict[str, Tensor]:
    """The states of torch's global generators, by device."""
    found = {f"cuda:{i}": torch.cuda.get_rng_state(i) for i in range(torch.cuda.device_count())}
    return {"cpu": torch.get_rng_state(), **found}


def checked_randomness(states: Any) -> dict[str, Tensor]:
    """These states, if generators can take them: found before any work is done with them."""
    if not isinstance(states, dict) or not all(isinstance(state, Tensor) for state in states.values()):
        raise UsageError("the state's random numbers are damaged: they are no tensors by device")
    torch.Generator().set_state(states["cpu"])
    return states


def set_randomness(states: dict[str, Tensor]) -> None:
    for device, state in states.items():
        torch.set_rng_state(state) if device == "cpu" else torch.cuda.set_rng_state(state, device)


@contextmanager
def _own_randomness() -> Iterator[None]:
    """Dropout and the like draw from torch's global generators: give the run its own, and give them back after."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        yield
