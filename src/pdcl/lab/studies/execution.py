"""A study carried out: stream by stream where options are tuned, past failures, again from where it stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pdcl.lab.studies.curves import Answered, due, solve_curves
from pdcl.lab.studies.engine import Ended, Engine, Job, Started
from pdcl.lab.studies.expansion import Chosen, expand
from pdcl.lab.studies.local import LocalProcesses
from pdcl.lab.studies.planning import Plan, check_limits, plan
from pdcl.lab.studies.spec import RunSpec
from pdcl.lab.studies.study import Study
from pdcl.lab.studies.tuning import note, search
from pdcl.lab.studies.worker import Streams, plug_in
from pdcl.records.reading import read_result
from pdcl.records.table import TUNING
from pdcl.storage.disk import reported, write_whole
from pdcl.storage.locking import Lock

STUDY = "study.toml"
FAILURES = "failures.txt"


@dataclass(frozen=True)
class Planned:
    """A phase begins: runs of it that are finished already, those to carry out, and those of phases after it."""

    title: str
    done: int
    jobs: tuple[Job, ...]
    later: tuple[RunSpec, ...] = ()


Notice = Planned | Started | Ended | Answered
Listener = Callable[[Notice], None]
Filter = Callable[[RunSpec], bool]


@dataclass
class Outcome:
    """What became of a study, tuning included. `done` were run now, `skipped` before."""

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
    """Carry out every run of the study that `only` lets through and that isn't finished in `out`, then its what-ifs.

    A run that fails doesn't stop the others. Whatever ends this early, calling it again goes on from there.
    """
    out, start = Path(out), time.perf_counter()
    plug_in(study.plugins, set())
    streams = Streams()
    # All that is wrong with the study itself is said before anything is written.
    check_limits(_ahead(study, only), streams)
    with reported(out):
        out.mkdir(parents=True, exist_ok=True)
    own = engine or LocalProcesses()
    try:
        with Lock(out):
            with reported(out / STUDY):
                write_whole(out / STUDY, study.text.encode())
            outcome = _Execution(study, out, own, listener, only, streams, Outcome(out)).carry_out()
            _note_failures(outcome)
    finally:
        if engine is None:
            own.close()
    outcome.seconds = time.perf_counter() - start
    return outcome


def _ahead(study: Study, only: Filter, stream: str | None = None) -> list[RunSpec]:
    """All that a study, or a stream of it, will ask for, tuning first, before anything is chosen."""
    runs = [run for run in expand(study) if only(run) and stream in (None, run.stream)]
    places = dict.fromkeys(run.stream for run in runs) if study.tuning else ()
    searches = [search(study, place, _labels([run for run in runs if run.stream == place])) for place in places]
    return [run for each in searches for run in each.runs] + runs


@dataclass
class _Execution:
    """What the phases of one `execute` share."""

    study: Study
    out: Path
    engine: Engine
    listener: Listener
    only: Filter
    streams: Streams
    outcome: Outcome

    def carry_out(self) -> Outcome:
        """One phase for all, or a search and its runs for each stream in turn."""
        if self.study.tuning is None:
            self._phase("", self._runs({}), self.out, [])
            now = {ended.job.spec: Path(ended.path) for ended in self.outcome.done if ended.path is not None}
            lacking = due(self.study, dict(self.outcome.skipped) | now)
            self.outcome.failures += solve_curves(lacking, self.engine, self.listener)
            return self.outcome
        streams = list(dict.fromkeys(run.stream for run in self._runs({})))
        for place, stream in enumerate(streams):
            later = [run for other in streams[place + 1 :] for run in _ahead(self.study, self.only, other)]
            self._tuned(stream, later)
        return self.outcome

    def _runs(self, chosen: Chosen, stream: str | None = None) -> list[RunSpec]:
        return [run for run in expand(self.study, chosen) if self.only(run) and stream in (None, run.stream)]

    def _tuned(self, stream: str, later: list[RunSpec]) -> None:
        runs = self._runs({}, stream)
        found = search(self.study, stream, _labels(runs))
        reached: dict[RunSpec, float] = {}
        if found.candidates:
            reached = self._phase(f"{stream}, tuning", found.runs, self.out / TUNING, runs + later)
            note(self.out, found, reached)
        chosen = found.choose(reached)
        lost = {label for label in found.candidates if (stream, label) not in chosen}
        runs = self._runs(chosen, stream)
        for run in runs:
            if run.label in lost:
                self._end(Ended(Job(run, str(self.out)), 0.0, cause="no candidate of its tuning came to an end"))
        self._phase(stream, [run for run in runs if run.label not in lost], self.out, later)

    def _phase(self, title: str, runs: Sequence[RunSpec], out: Path, later: Sequence[RunSpec]) -> dict[RunSpec, float]:
        """Carry out what isn't done; the accuracy that each run reached, now or before."""
        found = plan(self.study, runs, out, self.streams)
        self.listener(Planned(title, len(found.done), tuple(found.todo), tuple(later)))
        return reached_before(found) | self._carry(found)

    def _carry(self, found: Plan) -> dict[RunSpec, float]:
        self.outcome.skipped += found.done
        for ended in found.failed:
            self._end(ended)
        reached = {}
        for notice in self.engine.submit(found.todo):
            if isinstance(notice, Ended):
                self._end(notice)
                reached[notice.job.spec] = math.nan if notice.accuracy is None else notice.accuracy
            else:
                self.listener(notice)
        return reached

    def _end(self, ended: Ended) -> None:
        (self.outcome.done if ended.cause is None else self.outcome.failures).append(ended)
        self.listener(ended)


def _labels(runs: Sequence[RunSpec]) -> list[str]:
    return list(dict.fromkeys(run.label for run in runs))


def reached_before(found: Plan) -> dict[RunSpec, float]:
    """The accuracy of every run that was finished."""
    values = {run: read_result(path)["mean_accuracy"] for run, path in found.done}
    return {run: math.nan if value is None else value for run, value in values.items()}


def _note_failures(outcome: Outcome) -> None:
    """Keep the tracebacks: a list of causes may not be enough to mend them."""
    place = outcome.out / FAILURES
    if outcome.failures:
        parts = [f"{ended.job.spec.title}\n{ended.cause}\n\n{ended.trace}" for ended in outcome.failures]
        with reported(place):
            write_whole(place, ("\n" + "-" * 80 + "\n").join(parts).encode(errors="replace"))
    else:
        place.unlink(missing_ok=True)
