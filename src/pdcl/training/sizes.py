"""How long and in what portions a task of a given size is trained, where nobody says."""

from __future__ import annotations

STEPS_PER_TASK = 600
MOST_EPOCHS = 20


def portions(samples: float) -> tuple[int, int]:
    """Epochs and batch size that give a task some hundreds of steps."""
    batch = 10 if samples < 2000 else 32
    return min(MOST_EPOCHS, max(1, round(STEPS_PER_TASK * batch / samples))), batch
