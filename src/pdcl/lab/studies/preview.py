"""What a study would do, without doing any of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pdcl.lab.studies.curves import asked_of, due
from pdcl.lab.studies.estimating import Estimator
from pdcl.lab.studies.execution import Filter, reached_before
from pdcl.lab.studies.expansion import expand
from pdcl.lab.studies.planning import Plan, plan
from pdcl.lab.studies.spec import RunSpec
from pdcl.lab.studies.study import Study
from pdcl.lab.studies.tuning import Search, search
from pdcl.lab.studies.worker import Streams, plug_in
from pdcl.records.table import TUNING

DONE, BEGUN, TODO, WAITS = "finished", "begun", "to run", "after tuning"


@dataclass
class Preview:
    """Every run with how it stands: finished, begun, to run, after tuning, or why it can't begin.

    `curves` counts the what-if curves that are asked for and not there.
    """

    out: Path
    runs: list[tuple[RunSpec, str]] = field(default_factory=list)
    estimator: Estimator = field(default_factory=Estimator)
    curves: int = 0

    @property
    def todo(self) -> list[RunSpec]:
        return [spec for spec, state in self.runs if state in (BEGUN, TODO, WAITS)]


def look_ahead(study: Study, out: Path, only: Filter = lambda spec: True) -> Preview:
    """All runs, tuning among them, and what is there of them already."""
    plug_in(study.plugins, set())
    found, streams = Preview(out, estimator=Estimator.from_records(out)), Streams()
    runs = [run for run in expand(study) if only(run)]
    if study.tuning is None:
        over = plan(study, runs, out, streams)
        found.runs = _states(over, runs)
        finished = dict(over.done)
        waiting = [run for run in asked_of(study) if run in runs and run not in finished]
        found.curves = len(waiting) + len(due(study, finished))
        return found
    for stream in study.streams:
        labels = dict.fromkeys(run.label for run in runs if run.stream == stream)
        here = search(study, stream, labels)
        found.runs += _states(plan(study, here.runs, out / TUNING, streams), here.runs)
        found.runs += _after(study, here, only, out, streams)
    return found


def _after(study: Study, here: Search, only: Filter, out: Path, streams: Streams) -> list[tuple[RunSpec, str]]:
    """The runs of a stream, with the options that its search chose, as far as it is over."""
    over = plan(study, here.runs, out / TUNING, streams)
    chosen = here.choose(reached_before(over))
    waiting = {job.spec.label for job in over.todo}
    runs = [run for run in expand(study, chosen) if run.stream == here.stream and only(run)]
    ready = [run for run in runs if run.label not in waiting]
    states = dict(_states(plan(study, ready, out, streams), ready))
    return [(run, states.get(run, WAITS)) for run in runs]


def _states(found: Plan, runs: list[RunSpec]) -> list[tuple[RunSpec, str]]:
    state = {run: DONE for run, _ in found.done}
    state |= {job.spec: BEGUN if job.spec in found.begun else TODO for job in found.todo}
    state |= {ended.job.spec: f"can't begin: {ended.cause}" for ended in found.failed}
    return [(run, state[run]) for run in runs]
