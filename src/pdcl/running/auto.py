"""Options for a stream without a preset, by size and shape: the same rules for every stream."""

from __future__ import annotations

import statistics
from typing import Any

from pdcl.streams.task import Stream
from pdcl.training.schedule import portions


def auto(stream: Stream) -> dict[str, Any]:
    """Batch and epochs so that a task gets some hundreds of steps. All else is what a learner has by itself."""
    samples = statistics.median(len(task.data) for task in stream.tasks)
    epochs, batch = portions(samples)
    return {"batch": batch, "epochs": epochs}
