"""What of a study is done, what was begun and what is left, found out before any work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pdcl.errors import PdclError, RecordError, RunFinished, RunUnfinished, UsageError
from pdcl.lab.studies.engine import Ended, Job
from pdcl.lab.studies.spec import RunSpec
from pdcl.lab.studies.study import Study
from pdcl.lab.studies.worker import Streams


@dataclass
class Plan:
    """Jobs to carry out, runs that are finished, and those that can't even begin."""

    todo: list[Job] = field(default_factory=list)
    begun: set[RunSpec] = field(default_factory=set)
    done: list[tuple[RunSpec, Path]] = field(default_factory=list)
    failed: list[Ended] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.todo) + len(self.done) + len(self.failed)


def plan(study: Study, specs: Iterable[RunSpec], out: Path, streams: Streams) -> Plan:
    """Look every run up in `out`: by its name and by all that its config would say."""
    found = Plan()
    for spec in specs:
        job = Job(spec, str(out), study.plugins, study.snapshot)
        try:
            obstacle = _obstacle(spec, out, streams)
        except PdclError as error:
            obstacle = error
        match obstacle:
            case None:
                found.todo.append(job)
            case RunUnfinished():
                found.todo.append(job)
                found.begun.add(spec)
            case RunFinished():
                found.done.append((spec, obstacle.path))
            case _:
                found.failed.append(Ended(job, 0.0, cause=str(obstacle)))
    return found


def check_limits(specs: Iterable[RunSpec], streams: Streams) -> None:
    """Raise UsageError for limits that don't fit their stream: misspelt, they would cost all other runs first.

    A stream that can't be loaded, since its data isn't there, is no error yet: its runs will say so.
    """
    from pdcl.learning.stated import check_against
    from pdcl.limits.tolerance import PerTask
    from pdcl.limits.tolerances import read_limits

    missing = set()
    for spec in specs:
        place, limits = (spec.stream, repr(spec.stream_options)), read_limits(spec.options.get("tolerance"))
        # Limits that name tasks or columns, or are a list, fit some streams only; for others none has to be loaded.
        narrow = limits and (limits.tasks or limits.segments or isinstance(limits.rest, PerTask))
        if place in missing or not narrow:
            continue
        try:
            stream = streams.get(replace(spec, held_out=None))
        except (PdclError, OSError):
            missing.add(place)
            continue
        try:
            check_against(spec.options["tolerance"], stream.tasks)
        except UsageError as error:
            raise UsageError(f"{spec.label} on {spec.stream}: {error}") from error


def _obstacle(spec: RunSpec, out: Path, streams: Streams) -> RecordError | PdclError | None:
    from pdcl.methods.catalog import method
    from pdcl.records.record import Record
    from pdcl.running.options import resolve
    from pdcl.running.run import described

    entry, stream = method(spec.method), streams.get(spec)
    label = None if spec.label == spec.method else spec.label
    name, config = described(stream, entry, resolve(entry, stream, spec.preset, {}, spec.given), label, out)
    return Record.obstacle(out, name, config)
