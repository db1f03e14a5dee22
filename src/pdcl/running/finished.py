"""A recorded run brought back: its learner as it was left, its stream, its schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pdcl.errors import PdclError, StateError
from pdcl.records import checkpoint
from pdcl.records.reading import read_config
from pdcl.running.resume import ANYTHING, learner_of, stream_of
from pdcl.streams.task import Stream
from pdcl.training.learner import Learner
from pdcl.training.loop import Loop, Schedule


def described(path: str | Path, network: Any = None) -> tuple[Learner, Stream, Schedule]:
    """What a run began with: an untrained learner, the stream and the schedule, by its config.json."""
    place = Path(path)
    config: Any = read_config(place)
    try:
        stream = stream_of(place, config, None)
        learner, schedule = learner_of(config, network)
        learner.prepare(stream.spec)
    except PdclError:
        raise
    except ANYTHING as error:
        raise StateError(f"{place} describes no run: {type(error).__name__}: {error}", place) from error
    return learner, stream, schedule


def recalled(path: str | Path, network: Any = None) -> tuple[Learner, Stream]:
    """The learner as its newest checkpoint has it, lineage included, and the stream."""
    learner, stream, schedule = described(path, network)
    state = checkpoint.read(Path(path))
    if state is None:
        raise StateError(f"{path} holds no checkpoint; run it anew", Path(path))
    state.restore(Loop(learner, stream, schedule))
    return learner, stream
