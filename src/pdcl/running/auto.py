"""Options for a stream that nobody made a preset for: sensible by size and shape, the same rules for every stream."""

from __future__ import annotations

import statistics
from typing import Any

from pdcl.streams.task import Stream

STEPS_PER_TASK = 600
MOST_EPOCHS = 20


def auto(stream: Stream) -> dict[str, Any]:
    """Network by input shape; batch and epochs so that a task gets some hundreds of steps; a relative tolerance."""
    samples = statistics.median(len(task.data) for task in stream.tasks)
    batch = 10 if samples < 2000 else 32
    epochs = round(STEPS_PER_TASK * batch / samples)
    return {
        "network": "auto",
        "optimizer": "adam",
        "lr": 0.001,
        "batch": batch,
        "replay": batch,
        "epochs": min(MOST_EPOCHS, max(1, epochs)),
        "tolerance": "1.1x",
    }
