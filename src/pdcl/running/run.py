"""Run: names and presets to a stream and a learner, then the loop, with a record if asked for."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from pathlib import Path
from typing import Any

import torch

from pdcl.learners.catalog import Method, method
from pdcl.records.naming import run_name
from pdcl.records.record import Record
from pdcl.running.options import Options, check, plain, resolve
from pdcl.running.result import Clock, Result, result_of
from pdcl.running.saving import write_snapshot
from pdcl.streams.catalog import find, load
from pdcl.streams.checks import check_stream
from pdcl.streams.task import Stream
from pdcl.training.events import Listener, RunBegan, RunEnded
from pdcl.training.learner import Learner
from pdcl.training.loop import Loop, Schedule
from pdcl.training.placement import threads, threads_for

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
    **options: Any,
) -> Result:
    """Learn a stream, task after task, and measure every task after each.

    stream, learner: names or objects. preset: an option table of the stream. out: a directory for the record; None
    writes nothing. label: what tables call this variant of the method. Further options by name: those of the method,
    and `epochs` and `batch`.
    """
    stream = load(stream) if isinstance(stream, str) else stream
    check_stream(stream)
    if isinstance(learner, str):
        entry = method(learner)
        resolved = resolve(entry, stream, preset, options, study)
        learner = entry.load()(**resolved.of(entry.load()))
        assert isinstance(learner, Learner)
    else:
        entry, resolved = _given(learner, stream, preset, options)
    learner.prepare(stream.spec)
    record = None if out is None else Record.create(out, *described(stream, entry, resolved, label))
    return _carry_out(learner, stream, entry.name, resolved, record, listeners, snapshot)


def _given(learner: Learner, stream: Stream, preset: str | None, options: Mapping[str, Any]) -> tuple[Method, Options]:
    """A user's own learner: its options are its fields; only the loop's are left to choose."""
    check(type(learner).__name__, list(_SCHEDULE), options)
    name = type(learner).__name__.lower()
    entry = Method(name, type(learner), "given")
    resolved = resolve(entry, stream, preset, options)
    resolved.put({f.name: getattr(learner, f.name) for f in fields(learner) if f.init}, "user")
    return entry, resolved


def _carry_out(
    learner: Learner,
    stream: Stream,
    name: str,
    resolved: Options,
    record: Record | None,
    listeners: Sequence[Listener],
    snapshot: bool,
) -> Result:
    heard = [*listeners, *([record.listener] if record else [])]

    def listener(event: Any) -> None:
        for each in heard:
            each(event)

    schedule = Schedule(**resolved.of(Schedule))
    clock = Clock()
    listener(RunBegan(stream.name, name, len(stream.tasks), schedule.epochs, learner.seed))
    loop = Loop(learner, stream, schedule, listener)
    try:
        with threads(threads_for(learner.model)):
            history = loop.run()
        result = result_of(history, learner, clock.cost(), None if record is None else record.path)
        listener(RunEnded(result.mean_accuracy, result.mean_forgetting))
        if record is not None:
            if snapshot:
                write_snapshot(learner, record.path)
            record.write_result(result.as_json())
        return result
    finally:
        if record is not None:
            record.close()


def described(stream: Stream, entry: Method, resolved: Options, label: str | None = None) -> tuple[str, dict[str, Any]]:
    """The name of a run's directory, and its config.json."""
    values = resolved.values
    memory = values.get("memory")
    changed = {**{name: plain(value) for name, value in resolved.changed().items()}, **_altered(stream)}
    name = run_name(stream.name, label or entry.name, memory, values["seed"], changed)
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
    return name, config


def _altered(stream: Stream) -> dict[str, Any]:
    """Options of a stream that its loader wouldn't have chosen itself."""
    if stream.preset is None:
        return stream.options
    usual = {name: each.default for name, each in signature(find(stream.name)).parameters.items()}
    return {name: value for name, value in stream.options.items() if name not in usual or usual[name] != value}


def versions() -> dict[str, str]:
    """What the numbers depend on."""
    try:
        own = version("pdcl")
    except PackageNotFoundError:
        own = "source"
    return {"pdcl": own, "torch": torch.__version__, "python": platform.python_version()}
