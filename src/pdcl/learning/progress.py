"""Where a task is: its steps, the loss of the new task, its artificial dual, shadow duals, when dual steps are due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pdcl.algorithm.algorithm1 import Duals
from pdcl.algorithm.dual_rules import DualRule
from pdcl.errors import UsageError

# How far the smoothed loss of the new task moves to the newest one, at each dual step.
RECENT = 0.2
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


@dataclass(frozen=True)
class Moved:
    """After a dual step: λ_k and s_k of every past task, their tolerances, and the artificial dual."""

    duals: list[float]
    slacks: list[float]
    tolerances: list[float]
    current: float


class Progress:
    """clock: steps so far, of `steps`. observed: samples. recent: the new task's loss, smoothed over dual steps.
    shadow: duals of its samples, which are not in the Lagrangian: selection needs them."""

    def __init__(self, steps: int, samples: int, rule: DualRule, dual_steps: int) -> None:
        self.clock, self.steps, self.observed = 0, steps, 0
        self.recent: float | None = None
        self.shadow = torch.zeros(samples)
        self.loss_sum, self.loss_count = torch.zeros(()), 0
        self.history: list[Tensor] = []
        self.slacks: list[Tensor] = []
        zero = torch.zeros(1, dtype=torch.float64)
        self.artificial = Duals(zero, zero, rule, dual_steps)

    @property
    def current_dual(self) -> float:
        """The artificial dual of the task being learned: not in the Lagrangian, for partitions alone."""
        return float(self.artificial.values)

    def raise_shadows(self, index: Tensor, losses: Tensor, tolerance: float, lr: float) -> None:
        """λ_i ← [λ_i + η_d (ℓ_i − ε_i)]₊ for samples of the current task."""
        own = index < len(self.shadow)
        index, slack = index[own], losses[own].to(self.shadow.dtype) - tolerance
        self.shadow[index] = (self.shadow[index] + lr * slack).clamp(min=0)

    def step_current(self, tolerance: float | None, place: torch.device) -> None:
        """A dual step: the loss since the last one, for the artificial dual (None: there is no limit in loss)."""
        mean = float(self.loss_sum) / self.loss_count
        self.recent = mean if self.recent is None else self.recent + RECENT * (mean - self.recent)
        self.loss_sum, self.loss_count = torch.zeros((), device=place), 0
        if tolerance is not None:
            self.artificial.ascend(torch.full((1,), mean - tolerance, dtype=torch.float64))

    # State, in parts that files have kept apart from the beginning.

    def numbers(self) -> dict[str, Any]:
        names = ("clock", "steps", "observed", "recent")
        return {**{name: getattr(self, name) for name in names}, "shadow": self.shadow.clone()}

    def take_numbers(self, state: dict[str, Any]) -> None:
        for name, own in self.numbers().items():
            given = state.get(name, own)
            setattr(self, name, given.clone() if isinstance(given, Tensor) else given)

    def histories(self) -> dict[str, Tensor]:
        stacked = [torch.stack(each) if each else torch.zeros(0) for each in (self.history, self.slacks)]
        return dict(zip(("history", "task_slacks"), stacked, strict=True))

    def running(self) -> dict[str, Any]:
        return {"sum": self.loss_sum, "count": self.loss_count, "artificial": self.artificial.state_dict()}

    def take(self, duals: dict[str, Any], running: dict[str, Any]) -> None:
        self.history, self.slacks = list(duals["history"]), list(duals["task_slacks"])
        self.loss_sum, self.loss_count = running["sum"], running["count"]
        self.artificial.load_state_dict(running["artificial"])
