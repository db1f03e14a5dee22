"""A recorded run brought back: its learner, untrained or as it was left, its stream, its schedule."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from pdcl.errors import PdclError, RecordError, StateError, UsageError
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule
from pdcl.lifelong.learner import Learner
from pdcl.methods.catalog import method
from pdcl.networks.named import is_name
from pdcl.records import checkpoint, schema
from pdcl.records.reading import read_config
from pdcl.running.load import effective
from pdcl.streams.catalog import load
from pdcl.streams.checks import check_stream
from pdcl.streams.task import Stream

ANYTHING = (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError, MemoryError, AssertionError)


def described(
    path: str | Path, network: Any = None, data: str | Path | None = None
) -> tuple[Learner, Stream, Schedule]:
    """What a run began with: an untrained learner, the stream and the schedule, by its config.json."""
    place = Path(path)
    config: Any = read_config(place)
    try:
        stream = _stream(place, config, data)
        learner, schedule = _learner(place, config, network)
        learner.prepare(stream.spec)
    except PdclError:
        raise
    except ANYTHING as error:
        text = f"{place / schema.CONFIG} describes no run: {type(error).__name__}: {error}"
        raise StateError(text, place) from error
    return learner, stream, schedule


def recalled(path: str | Path, network: Any = None) -> tuple[Learner, Stream]:
    """The learner as its newest checkpoint has it, lineage included, and the stream."""
    learner, stream, schedule = described(path, network)
    state = checkpoint.read(Path(path))
    if state is None:
        raise StateError(f"{path} holds no checkpoint; run it anew", Path(path))
    state.restore(Loop(learner, stream, schedule))
    return learner, stream


def _stream(path: Path, config: Any, data: str | Path | None) -> Stream:
    """The stream by name and options, if its data is the very data that the run began with."""
    options = {**config.get("stream_options", {}), **({} if data is None else {"data": data})}
    stream = load(config["stream"], **options)
    check_stream(stream)
    if stream.fingerprint != config["data"]:
        text = f"{path} was begun with other data of {config['stream']!r}: {config['data']}, now {stream.fingerprint}"
        raise RecordError(text, path)
    return stream


def _learner(path: Path, config: Any, network: Any) -> tuple[Learner, Schedule]:
    """The learner and schedule of the options in config.json. A file names networks of ours; others are handed in."""
    values = {name: option["value"] for name, option in config["options"].items()}
    if network is not None:
        values["network"] = network
    elif not is_name(str(values.get("network", "auto"))):
        raise UsageError(
            f"{path} was given its own network, {values['network']}; hand it in again: "
            "network=… in Python, --network PACKAGE.MODULE:FUNCTION on the command line"
        )
    kind = method(config["method"]).load()
    own = {f.name for f in fields(kind) if f.init}
    timing = {f.name for f in fields(Schedule)}
    if (gone := kind.gone(values)) is not None:
        raise UsageError(
            f"{path} was run with {gone}, which this version doesn't have; run it anew, or with version 0.1"
        )
    values = kind.translated(values)
    learner: Learner = kind(**effective(kind, {name: value for name, value in values.items() if name in own}))
    return learner, Schedule(**{name: value for name, value in values.items() if name in timing})
