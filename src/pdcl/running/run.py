"""Run: names and presets to a stream and a learner, then the loop, with a record if asked for."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import torch

from pdcl.errors import RunUnfinished, UsageError
from pdcl.given import path_of, short
from pdcl.laboratory import lab
from pdcl.learning.events import Listener
from pdcl.learning.schedule import Schedule
from pdcl.learning.stated import check_against, check_kind
from pdcl.lifelong.learner import Learner
from pdcl.methods.catalog import Method, method
from pdcl.ranks import joined
from pdcl.records.naming import run_name, safe
from pdcl.records.reading import TUNED
from pdcl.records.record import Record
from pdcl.running.checkpointing import DEFAULT, Pace
from pdcl.running.execution import Execution
from pdcl.running.options import Options, check, plain, resolve
from pdcl.running.result import Result
from pdcl.storage.version import own_commit, own_version
from pdcl.streams.catalog import find, load
from pdcl.streams.checks import check_stream
from pdcl.streams.task import Stream

_SCHEDULE = tuple(f.name for f in fields(Schedule))


def run(
    stream: Stream | str,
    learner: Learner | str,
    *,
    preset: str | None = None,
    out: str | Path | None = None,
    listeners: Sequence[Listener] = (),
    study: Mapping[str, Any] | None = None,
    label: str | None = None,
    snapshot: bool = True,
    checkpoint_every: str | int = DEFAULT,
    resume: str | Path | None = None,
    **options: Any,
) -> Result:
    """Learn a stream task by task, and measure every task after each.

    stream: a stream, or its name
    learner: a learner, or the name of a method
    preset: an option table of the stream: tuned, paper, equal, …; nothing: auto, by the size and shape of its data
    out: a directory for the record; None writes nothing
    listeners: functions that hear every event
    study: options that rank between the preset's and yours
    label: what tables call this variant of the method
    snapshot: keep what memory holds at the end
    checkpoint_every: steps (500) or time (30s) after which a recorded run saves its state
    resume: the directory of an interrupted run, to go on with

    Further options by name: those of the method, `epochs` and `batch`.
    """
    stream = load(stream, **lab("presets").stream_options(stream, preset)) if isinstance(stream, str) else stream
    _check_kinds(stream, learner, listeners)
    out, resume = (None if place is None else path_of(place, "out or resume") for place in (out, resume))
    check_stream(stream)
    if isinstance(learner, str):
        entry = method(learner)
        resolved = resolve(entry, stream, preset, options, study)
        learner = entry.load()(**resolved.of(entry.load()))
        assert isinstance(learner, Learner)
        _tell_what_auto_chose(resolved)
    else:
        entry, resolved = _given(learner, stream, preset, options)
    if learner.backbone is not None:
        raise UsageError("backbone= has no effect in run; use learner.learn, or a stream of the backbone's features")
    learner.prepare(stream.spec)
    if (width := learner.output_width()) < stream.spec.outputs:
        raise UsageError(
            f"the network gives {width} outputs, but the stream has {stream.spec.outputs} classes; "
            f"give it a last layer of {stream.spec.outputs}"
        )
    schedule = Schedule(**resolved.of(Schedule))
    about = described(stream, entry, resolved, label, out)
    pace = Pace.parse(checkpoint_every)
    with joined() as ranks:
        execution = Execution(learner, stream, entry.name, schedule, listeners, snapshot, pace, ranks)
        if resume is not None:
            return _go_on(execution, _unfinished(resume, *about))
        if out is None:
            return execution.unrecorded()
        if ranks.alone:
            return execution.recorded(Record.create(out, *about))
        return _begin_together(execution, out, *about)


def _check_kinds(stream: Any, learner: Any, listeners: Any) -> None:
    if not isinstance(stream, Stream):
        raise UsageError(f"stream={short(stream)} must be a stream or the name of one, such as 'digits'")
    if not isinstance(learner, Learner | str):
        raise UsageError(f"learner={short(learner)} must be a learner, such as PDCL(), or the name of a method")
    if not isinstance(listeners, Sequence) or not all(map(callable, listeners)):
        raise UsageError(f"listeners={short(listeners)} must be a list of functions that hear events")


def _go_on(execution: Execution, path: Path) -> Result:
    return execution.resumed(path) if execution.ranks.first else execution.followed(path, resume=True)


def _begin_together(execution: Execution, out: str | Path, name: str, config: dict[str, Any]) -> Result:
    """What is in the way stops every rank; then rank 0 makes the record."""
    obstacle = Record.obstacle(out, name, config)
    execution.ranks.wait()
    if obstacle is not None:
        raise obstacle
    if execution.ranks.first:
        return execution.recorded(Record.create(out, name, config))
    return execution.followed(Path(out) / safe(name))


def _unfinished(path: Path, name: str, config: dict[str, Any]) -> Path:
    """The directory, if it holds this very run without a result."""
    found = Record.obstacle(path.parent, path.name, config)
    if isinstance(found, RunUnfinished):
        return path
    raise found or UsageError(f"resume={str(path)!r}: there is no such run; leave resume out to begin one ({name})")


def _tell_what_auto_chose(resolved: Options) -> None:
    """Nobody stated these: say them once, where results don't go."""
    chosen = [f"{name}={value}" for name, value in resolved.values.items() if resolved.sources[name] == "auto"]
    if chosen:
        print(f"auto: {', '.join(chosen)}", file=sys.stderr)


def _given(learner: Learner, stream: Stream, preset: str | None, options: Mapping[str, Any]) -> tuple[Method, Options]:
    """A user's own learner: its options are its fields; only the loop's are left to choose."""
    check(type(learner).__name__, list(_SCHEDULE), options)
    name = type(learner).__name__.lower()
    entry = Method(name, type(learner), "given")
    resolved = resolve(entry, stream, preset, options)
    own = [f.name for f in fields(learner) if f.init and f.name not in learner.unused]
    resolved.put({name: getattr(learner, name) for name in own}, "user")
    resolved.settle(type(learner).settled(resolved.values))
    check_against(resolved.values.get("tolerance"), stream.tasks)
    check_kind(resolved.values.get("tolerance"), stream.spec.kind, resolved.values.get("objective"))
    return entry, resolved


def described(
    stream: Stream, entry: Method, resolved: Options, label: str | None = None, out: str | Path | None = None
) -> tuple[str, dict[str, Any]]:
    """The name of a run's directory (in `out`, if version 0.1 began it there), and its config.json."""
    values = resolved.values
    memory = values.get("memory")
    changed = {**{name: plain(value) for name, value in resolved.changed().items()}, **_altered(stream)}
    named = partial(run_name, stream.name, label or entry.name, memory, values["seed"])
    config = {
        "stream": stream.name,
        "stream_options": stream.options,
        "method": entry.name,
        "label": label or entry.name,
        "preset": resolved.preset,
        "memory": memory,
        "seed": values["seed"],
        "options": resolved.as_config(),
        "versions": versions(),
        "data": stream.fingerprint,
    }
    if out is not None and resolved.preset == TUNED:
        # Names of version 0.1 had no word of this preset.
        before = named({option: value for option, value in changed.items() if option != "preset"})
        if Record.holds(out, before, config):
            return before, config
    return named(changed), config


def _altered(stream: Stream) -> dict[str, Any]:
    """Options of a stream that its loader wouldn't have chosen itself."""
    if stream.preset is None:
        return stream.options
    usual = {name: each.default for name, each in signature(find(stream.name)).parameters.items()}
    return {name: value for name, value in stream.options.items() if name not in usual or usual[name] != value}


def versions() -> dict[str, str]:
    """What the numbers depend on; from a checkout also its commit, with `-dirty` where files were changed since."""
    known = {"pdcl": own_version(), "torch": torch.__version__, "python": platform.python_version()}
    return known | ({"commit": found} if (found := own_commit()) else {})
