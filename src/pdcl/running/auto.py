"""Options for a stream that nobody made a preset for: sensible by size and shape, the same rules for every stream."""

from __future__ import annotations

import statistics
from typing import Any

from pdcl.streams.task import Stream
from pdcl.training.schedule import portions


def auto(stream: Stream) -> dict[str, Any]:
    """Network by input shape; batch and epochs so that a task gets some hundreds of steps; a relative tolerance."""
    samples = statistics.median(len(task.data) for task in stream.tasks)
    epochs, batch = portions(samples)
    return {
        "network": "auto",
        "optimizer": "adam",
        "lr": 0.001,
        "batch": batch,
        "replay": batch,
        "epochs": epochs,
        "tolerance": "1.1x",
    }
