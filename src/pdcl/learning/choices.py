"""The settings of a core that never change: numbers and rules, checked."""

from __future__ import annotations

from dataclasses import dataclass

from pdcl.algorithm.draws import Estimator
from pdcl.algorithm.levers import Lever
from pdcl.algorithm.rules import between, not_negative
from pdcl.algorithm.selection_rules import SelectionRule
from pdcl.errors import UsageError

# ε_i = 1.1 ε_k: what a single sample may have, relative to its task.
SAMPLE_TOLERANCE = 1.1


@dataclass(frozen=True)
class Choices:
    """As in `pdcl.PDCL`."""

    level: str
    base: float
    base_most: float | None
    drift: float
    soften: float
    slack_samples: int
    start: float
    warm: bool
    normalise: bool
    guard: int | None
    witness: int | None
    estimator: Estimator
    selection: SelectionRule
    lever: Lever | None

    def __post_init__(self) -> None:
        if self.level not in ("task", "sample"):
            raise UsageError(f"level={self.level!r} is unknown; choose one of task, sample")
        not_negative(start=self.start, base=self.base, base_most=self.base_most or 0, drift=self.drift)
        not_negative(guard=self.guard or 0, witness=self.witness or 0)
        between(0, 1, soften=self.soften)
        if self.slack_samples < 1:
            raise UsageError(f"slack_samples={self.slack_samples} must be at least 1")
        if self.guard and self.level == "sample":
            raise UsageError(f"guard={self.guard} has no effect where stored samples steer; leave it out")
