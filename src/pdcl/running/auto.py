"""The default of every run: options by the size of a stream's tasks, the same rules for all."""

from __future__ import annotations

import statistics
from typing import Any

from pdcl.learning.schedule import portions
from pdcl.streams.task import Stream


def auto(stream: Stream) -> dict[str, Any]:
    """Batch and epochs so that a task gets some hundreds of steps. All else is what a learner has by itself."""
    samples = statistics.median(len(task.data) for task in stream.tasks)
    epochs, batch = portions(samples)
    return {"batch": batch, "epochs": epochs}
