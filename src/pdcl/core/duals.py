"""Constraints and their prices: a tolerance, a dual and the last slack for each, and the rule that moves the duals.

A matrix [quantities, constraints]: a quantity is what a stored sample is held to (its loss, the drift of its outputs).
All tensors are float64 on the CPU: they are few, and small ones matter.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pdcl.duality.dual_rules import DualRule, Look


class Duals:
    """λ of every constraint under one rule. `tolerances`, `values`, `slacks`: [Q, C]."""

    def __init__(self, tolerances: Tensor, start: Tensor, rule: DualRule, steps: int = 1) -> None:
        self.tolerances = tolerances
        self.values = start.clone()
        self.state = start.clone()
        self.slacks = torch.full_like(start, torch.nan)
        self.rule, self.steps = rule, steps

    def ascend(
        self, slacks: Tensor, visited: Tensor | None = None, errors: Tensor | None = None, share: float | None = None
    ) -> None:
        """One dual step on the visited constraints (None: all). slacks, errors: [Q, visited].

        share: as in `Look`; if nothing is said, that of the visited constraints among all.
        """
        here = slice(None) if visited is None else visited
        if share is None:
            share = 1.0 if visited is None else len(visited) / max(self.values.shape[1], 1)
        unknown = torch.zeros_like(slacks) if errors is None else errors
        self.slacks[:, here] = slacks
        self.state[:, here], self.values[:, here] = self.rule.step(
            self.state[:, here], Look(slacks, unknown, share, self.steps)
        )

    def reset(self) -> None:
        """All duals start again at 0; tolerances and slacks stay."""
        self.values, self.state = torch.zeros_like(self.values), torch.zeros_like(self.state)

    def take(self, rows: Tensor) -> None:
        """Keep these constraints, in this order."""
        for name in ("tolerances", "values", "state", "slacks"):
            setattr(self, name, getattr(self, name)[:, rows])

    def join(self, tolerances: Tensor) -> None:
        """Add constraints with a dual of 0. tolerances: [Q, new]."""
        blank = torch.zeros_like(tolerances)
        self.tolerances = torch.cat([self.tolerances, tolerances], 1)
        self.values, self.state = torch.cat([self.values, blank], 1), torch.cat([self.state, blank], 1)
        self.slacks = torch.cat([self.slacks, torch.full_like(blank, torch.nan)], 1)

    def state_dict(self) -> dict[str, Any]:
        names = ("tolerances", "values", "state", "slacks")
        return {name: getattr(self, name).clone() for name in names}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.tolerances, self.values = state["tolerances"], state["values"]
        self.state = state["state"] if "state" in state else state["integral"]
        self.slacks = state["slacks"]
        if self.slacks.shape != self.values.shape:
            self.slacks = torch.full_like(self.values, torch.nan)
