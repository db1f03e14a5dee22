"""Epochs and batch size of a task: as stated, or chosen by the task's size."""

from __future__ import annotations

from dataclasses import dataclass

from pdcl.errors import UsageError
from pdcl.given import whole_of
from pdcl.learning.fields import check_fields

STEPS_PER_TASK = 600
MOST_EPOCHS = 20
# What torch can count to as the size of a part.
MOST = 2**62


@dataclass(frozen=True)
class Schedule:
    """Epochs and batch size of a task.

    epochs: passes over each task's data
    batch: samples of the current task per step
    """

    epochs: int = 1
    batch: int = 10

    def __post_init__(self) -> None:
        check_fields(self)
        if self.epochs < 1 or self.batch < 1:
            raise UsageError(f"epochs={self.epochs} and batch={self.batch} must be at least 1")
        for name in ("epochs", "batch"):
            whole_of(getattr(self, name), name, 1, MOST)

    def steps(self, samples: int, joins: bool = False) -> int:
        """Batches of all passes."""
        return self.epochs * self.per_epoch(samples, joins)

    def per_epoch(self, samples: int, joins: bool = False) -> int:
        """Batches of one pass. joins: a single sample that is left over goes with the batch before it."""
        return -(-samples // self.batch) - (joins and single_left(samples, self.batch))


def single_left(samples: int, batch: int) -> bool:
    """Whether the last of several batches would have one sample, of which there are no batch statistics."""
    return samples > batch > 1 and samples % batch == 1


def portions(samples: float) -> tuple[int, int]:
    """Epochs and batch size that give a task some hundreds of steps."""
    batch = 10 if samples < 2000 else 32
    return min(MOST_EPOCHS, max(1, round(STEPS_PER_TASK * batch / samples))), batch
