"""When dual steps are due."""

from __future__ import annotations

from dataclasses import dataclass

from pdcl.errors import UsageError

DUAL_STEPS = 60


@dataclass(frozen=True)
class Pace:
    """So many dual steps a task, spread evenly over it (60, if nothing is said), or one every T_p primal steps."""

    dual_steps: int | None = None
    primal_steps: int | None = None

    def __post_init__(self) -> None:
        if self.dual_steps is not None and self.primal_steps is not None:
            raise UsageError(
                f"dual_steps={self.dual_steps} has no effect beside primal_steps={self.primal_steps}; give one of them"
            )
        if any(steps is not None and steps < 1 for steps in (self.dual_steps, self.primal_steps)):
            raise UsageError("dual_steps and primal_steps must be at least 1")

    def longer(self, factor: int) -> Pace:
        """So many times the dual steps, for a task that is trained so many times as long."""
        return self if self.primal_steps else Pace((self.dual_steps or DUAL_STEPS) * factor)

    def dual_steps_of(self, steps: int) -> int:
        """How many dual steps a task of so many steps gets: as many as asked for, at most one a step."""
        if self.primal_steps is not None:
            return max(1, steps // self.primal_steps)
        return min(max(steps, 1), self.dual_steps or DUAL_STEPS)

    def due(self, clock: int, steps: int) -> bool:
        """Whether a dual step follows step number `clock` (from 1): every T_p steps, or S times, evenly spread.

        >>> sum(Pace(dual_steps=60).due(clock, 115) for clock in range(1, 116))
        60
        """
        if self.primal_steps is not None:
            return clock % self.primal_steps == 0
        wanted = self.dual_steps_of(steps)
        return clock * wanted // max(steps, 1) > (clock - 1) * wanted // max(steps, 1)
