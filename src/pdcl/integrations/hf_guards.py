"""What dual steps see of capabilities: the guards' change since before training, and only where it may matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pdcl.learning.primal_dual import PrimalDual
from pdcl.past.held_back import GUARD, REPLAY

# Numbers of samples to their losses and errors now, [n, 2].
Look = Callable[[Tensor], Tensor]
# Dual steps that a capability far within its limit is not looked at, at most; and how much sooner than it would reach
# the limit at its pace.
LONGEST_REST, SOONER = 3, 2
STATE = ("resting", "seen", "slacks", "pace")


class Guards:
    """first: the number of each capability's first sample, [K]. What is seen last, [K, 2], slacks then, and a pace:
    the change from one look to the next, of which half is forgotten at each look, [K]. Error rates jump where
    losses move, so their pace is at least one guard.

    A capability with a dual of 0 and much room rests: its guards aren't looked at, and count as they did last.
    """

    def __init__(self, core: PrimalDual, first: Tensor) -> None:
        self.core, self.first = core, first
        self.resting = torch.zeros(len(first), dtype=torch.long)
        self.seen = torch.full((len(first), 2), torch.nan, dtype=torch.float64)
        self.slacks = torch.full((len(first),), torch.nan, dtype=torch.float64)
        self.pace = torch.zeros(len(first), dtype=torch.float64)
        self._changes: Tensor | None = None

    def measure(self, look: Look) -> None:
        """A dual step by what the guards show."""
        self.core.measure(lambda numbers: self._look(numbers, look))
        self._rest()

    def _look(self, numbers: Tensor, look: Look) -> Tensor:
        """Each sample's loss and error now, less what it had before training, plus the mean of that over its set.

        The mean over a set is the same, but its standard error is that of the change: much smaller, since samples
        differ from each other more than each does from what it was. A part of the set drawn anew is as good.
        """
        owners = torch.searchsorted(self.first, numbers, right=True) - 1
        awake = self.resting[owners] == 0
        found = self.seen[owners]
        if bool(awake.any()):
            found[awake] = look(numbers[awake]) - self._change()[numbers[awake]]
        for k in owners[awake].unique():
            self.seen[k] = found[owners == k].mean(0)
        return found

    def _change(self) -> Tensor:
        """What each sample had before training less the mean of its capability's measured ones: [samples, 2]."""
        if self._changes is None:
            memory = self.core.memory
            had = torch.stack([memory["reference"], memory["wrong"]], 1).double().cpu()
            role, owners = memory["role"].cpu(), memory["task"].cpu()
            for k in range(len(self.first)):
                mine = owners == k
                guards = mine & (role == GUARD)
                measured = guards if bool(guards.any()) else mine & (role == REPLAY)
                had[mine] -= had[measured].mean(0)
            self._changes = torch.zeros_like(had)
            self._changes[memory["x"].cpu()] = had
        return self._changes

    def _rest(self) -> None:
        """How many dual steps each capability rests: half of those that it would take to its limit at its pace."""
        core, slacks = self.core, self.core.progress.slacks[-1].double()
        if core.choices.level == "sample":
            return
        awake = self.resting == 0
        before = torch.where(self.slacks.isnan(), self._at_start(), self.slacks)
        survey, constraints = core.algorithm.survey, core.algorithm.constraints
        least = torch.where(constraints.in_error, 1 / survey.looked_at.clamp(min=1), 1e-12)
        pace = torch.maximum(self.pace / 2, (slacks - before).abs())
        self.pace = torch.where(awake, torch.maximum(pace, least), self.pace)
        steps = (-slacks / (SOONER * self.pace) - 1).nan_to_num().floor().clamp(0, LONGEST_REST).long()
        steps[core.task_duals() > 0] = 0
        self.resting = torch.where(awake, steps, self.resting - 1)
        self.slacks[awake] = slacks[awake]

    def _at_start(self) -> Tensor:
        """Slacks before the first step: what capabilities had, less their limits."""
        count, tolerances = len(self.first), self.core.tolerances
        in_error = [tolerances.unit(k) == "error" for k in range(count)]
        held, limits = self.core.past.references(count, in_error), tolerances.now(count)
        return torch.tensor(held, dtype=torch.float64) - torch.tensor(limits, dtype=torch.float64)

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in STATE}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in STATE:
            setattr(self, name, state[name].clone())
        self._changes = None
