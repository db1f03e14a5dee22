"""Resume: an interrupted run goes on to the result it would have had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pdcl.errors import PdclError, RecordError, RunFinished, StateError
from pdcl.learners.catalog import method
from pdcl.records import schema
from pdcl.records.reading import read_config
from pdcl.running.execution import Execution
from pdcl.running.keeping import DEFAULT, Pace
from pdcl.running.result import Result
from pdcl.streams.catalog import load
from pdcl.streams.checks import check_stream
from pdcl.streams.task import Stream
from pdcl.training.events import Listener
from pdcl.training.learner import Learner
from pdcl.training.loop import Schedule

ANYTHING = (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError, MemoryError, AssertionError)


def resume(
    path: str | Path,
    *,
    data: str | Path | None = None,
    network: Any = None,
    listeners: Sequence[Listener] = (),
    snapshot: bool = True,
    checkpoint_every: str | int = DEFAULT,
) -> Result:
    """Continue the run in this directory, to the bit as if it had never stopped.

    data: where the data of benchmarks lies now. network: the module, where the run was given one. Only streams and
    methods known by name can be found again; for others, `pdcl.run(stream, learner, resume=path)`.
    """
    path = Path(path)
    config: Any = read_config(path)
    if (path / schema.RESULT).exists():
        raise RunFinished(f"{path} is finished", path)
    try:
        stream = stream_of(path, config, data)
        learner, schedule = learner_of(config, network)
        learner.prepare(stream.spec)
    except PdclError:
        raise
    except ANYTHING as error:
        raise StateError(f"{path / schema.CONFIG} describes no run: {type(error).__name__}: {error}", path) from error
    paced = Pace.parse(checkpoint_every)
    return Execution(learner, stream, config["method"], schedule, listeners, snapshot, paced).resumed(path)


def stream_of(path: Path, config: Any, data: str | Path | None) -> Stream:
    """The stream by name and options, if its data is the very data that the run began with."""
    options = {**config.get("stream_options", {}), **({} if data is None else {"data": data})}
    stream = load(config["stream"], **options)
    check_stream(stream)
    if stream.fingerprint != config["data"]:
        text = f"{path} was begun with other data of {config['stream']!r}: {config['data']}, now {stream.fingerprint}"
        raise RecordError(text, path)
    return stream


def learner_of(config: Any, network: Any) -> tuple[Learner, Schedule]:
    """The learner and schedule of the options in config.json."""
    values = {name: option["value"] for name, option in config["options"].items()}
    if network is not None:
        values["network"] = network
    kind = method(config["method"]).load()
    own = {f.name for f in fields(kind) if f.init}
    timing = {f.name for f in fields(Schedule)}
    learner: Learner = kind(**{name: value for name, value in values.items() if name in own})
    return learner, Schedule(**{name: value for name, value in values.items() if name in timing})
