"""The dual side of the primal-dual learner: what is constrained, how much, and at what price.

Duals are a matrix [quantities, constraints]. A quantity is what a stored sample is held to (its loss, the drift of its
outputs); a constraint is a past task (task level) or a stored sample (sample level).
"""

from __future__ import annotations

import torch
from torch import Tensor

from pdcl.duality.duals import infeasible, nupi


class Duals:
    """λ and its history for one task. All tensors are float64 on the CPU: they are few, and small ones matter."""

    def __init__(self, tolerances: Tensor, start: Tensor, lr: float, gain: float, decay: float) -> None:
        self.tolerances = tolerances
        self.values = start.clone()
        self.integral = start.clone()
        self.lr, self.gain, self.decay = lr, gain, decay
        self.history: list[Tensor] = []
        self.slacks: list[Tensor] = []

    def ascend(self, slacks: Tensor, visited: Tensor | None = None) -> None:
        """One dual step on the visited constraints (all, if None).

        Visiting a share of them, each moves by as much more: every constraint travels as far on average.
        """
        here = slice(None) if visited is None else visited
        share = 1.0 if visited is None else len(visited) / self.values.shape[1]
        self.integral[:, here], self.values[:, here] = nupi(
            self.integral[:, here], slacks, self.lr / share, self.gain, self.decay
        )

    def remember(self, task_duals: Tensor, task_slacks: Tensor) -> None:
        """Keep a task-level account of this dual step (NaN slack: not measured)."""
        self.history.append(task_duals)
        self.slacks.append(task_slacks)

    def infeasible(self) -> list[int]:
        """Past tasks whose dual rose while their tolerance stayed broken."""
        if not self.history:
            return []
        found = infeasible(torch.stack(self.history), torch.stack(self.slacks))
        return [int(k) for k in found.nonzero().flatten()]

    def state(self) -> dict[str, Tensor]:
        past = torch.stack(self.history) if self.history else torch.zeros(0)
        slacks = torch.stack(self.slacks) if self.slacks else torch.zeros(0)
        return {
            "tolerances": self.tolerances,
            "values": self.values,
            "integral": self.integral,
            "history": past,
            "slacks": slacks,
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        self.tolerances, self.values, self.integral = state["tolerances"], state["values"], state["integral"]
        self.history, self.slacks = list(state["history"]), list(state["slacks"])
