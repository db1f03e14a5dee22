"""A study carried out: stream by stream, past failures, and again from where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pdcl.records.writing import write_whole
from pdcl.storage.locking import Lock
from pdcl.studies.engine import Ended, Engine, Job, Started
from pdcl.studies.expansion import expand
from pdcl.studies.local import LocalProcesses
from pdcl.studies.planning import Plan, plan
from pdcl.studies.spec import RunSpec
from pdcl.studies.study import Study
from pdcl.studies.worker import Streams, plug_in

STUDY = "study.toml"
FAILURES = "failures.txt"


@dataclass(frozen=True)
class Planned:
    """What lies ahead: all runs of a study, those that are finished already, and those to carry out."""

    total: int
    done: int
    jobs: tuple[Job, ...]


Notice = Planned | Started | Ended
Listener = Callable[[Notice], None]
Filter = Callable[[RunSpec], bool]


@dataclass
class Outcome:
    """What became of a study. `done` were run now, `skipped` before."""

    out: Path
    done: list[Ended] = field(default_factory=list)
    skipped: list[tuple[RunSpec, Path]] = field(default_factory=list)
    failures: list[Ended] = field(default_factory=list)
    seconds: float = 0.0


def execute(
    study: Study,
    out: str | Path,
    engine: Engine | None = None,
    listener: Listener = lambda notice: None,
    only: Filter = lambda spec: True,
) -> Outcome:
    """Carry out every run of the study that `only` lets through and that isn't finished in `out`.

    A run that fails doesn't stop the others. Whatever ends this early, calling it again goes on from there.
    """
    out, start = Path(out), time.perf_counter()
    plug_in(study.plugins, set())
    specs = [spec for spec in expand(study) if only(spec)]
    out.mkdir(parents=True, exist_ok=True)
    own = engine or LocalProcesses()
    try:
        with Lock(out):
            write_whole(out / STUDY, study.text)
            outcome = _Execution(study, out, own, listener).carry_out(specs)
    finally:
        if engine is None:
            own.close()
    outcome.seconds = time.perf_counter() - start
    _note_failures(outcome)
    return outcome


class _Execution:
    """What the phases of one `execute` share."""

    def __init__(self, study: Study, out: Path, engine: Engine, listener: Listener) -> None:
        self.study, self.out, self.engine, self.listener = study, out, engine, listener
        self.streams = Streams()
        self.outcome = Outcome(out)

    def carry_out(self, specs: Iterable[RunSpec]) -> Outcome:
        found = plan(self.study, specs, self.out, self.streams)
        self.listener(Planned(len(found), len(found.done), tuple(found.todo)))
        self._carry(found)
        return self.outcome

    def _carry(self, found: Plan) -> None:
        self.outcome.skipped += found.done
        for ended in found.failed:
            self._end(ended)
        for notice in self.engine.submit(found.todo):
            self._end(notice) if isinstance(notice, Ended) else self.listener(notice)

    def _end(self, ended: Ended) -> None:
        (self.outcome.done if ended.cause is None else self.outcome.failures).append(ended)
        self.listener(ended)


def _note_failures(outcome: Outcome) -> None:
    """Keep the tracebacks: a list of causes may not be enough to mend them."""
    place = outcome.out / FAILURES
    if outcome.failures:
        parts = [f"{ended.job.spec.title}\n{ended.cause}\n\n{ended.trace}" for ended in outcome.failures]
        write_whole(place, ("\n" + "-" * 80 + "\n").join(parts))
    else:
        place.unlink(missing_ok=True)
