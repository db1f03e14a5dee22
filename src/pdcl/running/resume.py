"""Resume: an interrupted run goes on to the result it would have had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pdcl.errors import RunFinished
from pdcl.learning.events import Listener
from pdcl.ranks import joined
from pdcl.records.reading import is_finished, read_config
from pdcl.running.checkpointing import DEFAULT, Pace
from pdcl.running.execution import Execution
from pdcl.running.rebuild import described
from pdcl.running.result import Result


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
    config = read_config(path)
    if is_finished(path):
        raise RunFinished(f"{path} is finished", path)
    learner, stream, schedule = described(path, network, data)
    paced = Pace.parse(checkpoint_every)
    with joined() as ranks:
        execution = Execution(learner, stream, config["method"], schedule, listeners, snapshot, paced, ranks)
        return execution.resumed(path) if ranks.first else execution.followed(path, resume=True)
