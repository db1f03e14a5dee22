"""One learner through one stream, with what is written of it: from the start, or from where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from pdcl.judging.table import Promises
from pdcl.learning.events import Event, Listener, PromisesJudged, RunBegan, RunEnded, Warned
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule
from pdcl.lifelong.learner import Learner
from pdcl.lifelong.warning import warn_of_broken, warn_of_event
from pdcl.ranks import ALONE, Ranks
from pdcl.records import checkpoint
from pdcl.records.naming import unlimited
from pdcl.records.record import Record
from pdcl.running.checkpointing import DEFAULT, Keeper, Pace
from pdcl.running.result import Clock, Result, result_of
from pdcl.running.signals import Signals
from pdcl.running.snapshot import write_snapshot
from pdcl.storage.locking import Lock
from pdcl.streams.task import Stream


@dataclass
class Execution:
    """A prepared learner and its stream. `pace`: how often its state is saved within a task."""

    learner: Learner
    stream: Stream
    method: str
    schedule: Schedule
    listeners: Sequence[Listener] = ()
    snapshot: bool = True
    pace: Pace = field(default_factory=lambda: Pace.parse(DEFAULT))
    ranks: Ranks = ALONE

    def __post_init__(self) -> None:
        self.learner.spread_over(self.ranks)

    def unrecorded(self) -> Result:
        """Learn, and leave nothing on disk."""
        loop = Loop(self.learner, self.stream, self.schedule, self._listener(self.listeners))
        self._announce(loop)
        return self._finish(loop, Clock(), None)

    def recorded(self, record: Record) -> Result:
        """Learn from the start, into a new record."""
        with record, Lock(record.path):
            return self._keep_going(record, None)

    def resumed(self, path: Path) -> Result:
        """Go on from the newest checkpoint of an unfinished run; from the start, where it has none."""
        with Lock(path):
            state = checkpoint.read(path)
            with Record.reopen(path, 0 if state is None else state.events) as record:
                return self._keep_going(record, state)

    def followed(self, path: Path, resume: bool = False) -> Result:
        """Learn beside rank 0, which writes and speaks for all. path: where it writes, or goes on."""
        found = self._keep_going(None, checkpoint.read(path) if resume else None)
        return replace(found, path=path)

    def _keep_going(self, record: Record | None, state: checkpoint.Checkpoint | None) -> Result:
        # Rank 0 writes no further checkpoint before all have read this one.
        self.ranks.wait()
        clock = Clock(None if state is None else state.cost)
        heard = [] if record is None else [*self.listeners, record.listener]
        loop = Loop(self.learner, self.stream, self.schedule, self._listener(heard))
        if state is None:
            self._announce(loop)
        else:
            state.restore(loop)
            for problem in state.instead_of:
                loop.listener(Warned(loop.position.task, f"an older checkpoint was taken, since {problem}"))
        with Signals() as signals:
            loop.keep = Keeper(record, self.pace, clock, signals, self.ranks)
            return self._finish(loop, clock, record)

    def _finish(self, loop: Loop, clock: Clock, record: Record | None) -> Result:
        history = loop.run()
        result = result_of(history, self.learner, clock.cost(), None if record is None else record.path)
        loop.listener(RunEnded(result.mean_accuracy, result.mean_forgetting))
        if record is not None:
            if self.snapshot:
                write_snapshot(self.learner, record.path)
            record.write_result(result.as_json())
        return result

    def _announce(self, loop: Loop) -> None:
        own = {each.name: getattr(self.learner, each.name) for each in fields(self.learner) if each.init}
        ran = self.method + unlimited(own)
        about = (self.stream.name, ran, len(self.stream.tasks), self.schedule.epochs, self.learner.seed)
        loop.listener(RunBegan(*about, [str(label) for label in self.stream.spec.labels]))

    def _listener(self, listeners: Sequence[Listener]) -> Listener:
        said: set[tuple[int, str]] = set()

        def listener(event: Event) -> None:
            for each in listeners:
                each(event)
            # Last, so that a user who turns warnings into errors finds the event recorded.
            if not self.listeners and self.ranks.first:
                warn_of_event(event, self.learner, said)
            if isinstance(event, PromisesJudged) and self.ranks.first:
                warn_of_broken(Promises.from_json(event.promises))

        return listener
