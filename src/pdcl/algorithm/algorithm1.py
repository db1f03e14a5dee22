"""Algorithm 1 of the paper, and nothing else: primal steps on the Lagrangian, then a dual step on the slacks.

    line 4    λ starts                                Duals
    line 6    θ ← θ − η_p ∇ L̂(θ, λ)    (× T_p)        draw, weights; the caller descends
    line 7    s_c = L_c(θ) − ε_c                      measure
    line 8    λ_c ← [λ_c + η_d s_c]₊                  ascend, by a dual rule
    line 10   n_k by λ                                PB: partition_rules
    line 11   samples by λ_i                          FB: selection_rules

It knows no network, no memory, no rank and no text of a limit: only sets of sample numbers, their limits, and a
function that says what samples with these numbers have now. Whatever trains (our loop, Trainer, Lightning, a loop by
hand) runs this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from pdcl.algorithm.constraints import Constraints
from pdcl.algorithm.draws import Estimator, Pool, draw_weightless
from pdcl.algorithm.dual_rules import DualRule, Look
from pdcl.algorithm.slacks import Measured, Survey

# Numbers of samples → what they have now: [n, 2], loss and error of each.
LookAt = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Drawn:
    """What to replay: numbers of stored samples, with repeats, and the weight of each: [m], [m]."""

    slots: Tensor
    weights: Tensor

    def at(self, places: slice) -> Drawn:
        """Some of it, with the weights of the whole."""
        return Drawn(self.slots[places], self.weights[places])


class Duals:
    """λ of every constraint, with its limit and its last slack. All: [C], float64 on the CPU."""

    def __init__(self, limits: Tensor, start: Tensor, rule: DualRule, steps: int = 1) -> None:
        self.limits, self.rule, self.steps = limits, rule, steps
        self.values = start.clone()
        self.state = rule.init(self.values)
        self.slacks = torch.full_like(start, torch.nan)

    def ascend(
        self, slacks: Tensor, visited: Tensor | None = None, errors: Tensor | None = None, share: float = 1.0
    ) -> None:
        """Line 8, for the visited constraints (None: all). errors: standard errors of slacks (None: not known)."""
        here: Any = slice(None) if visited is None else visited
        look = Look(slacks, torch.zeros_like(slacks) if errors is None else errors, share, self.steps)
        self.slacks[here] = slacks
        self.state[here], self.values[here] = self.rule.step(self.state[here], look)

    def reset(self) -> None:
        """All duals start again at 0; limits and slacks stay."""
        self.values = torch.zeros_like(self.values)
        self.state = self.rule.init(self.values)

    def join(self, limits: Tensor) -> None:
        """Add constraints with these limits and a dual of 0."""
        blank = torch.zeros_like(limits)
        self.limits, self.values = torch.cat([self.limits, limits]), torch.cat([self.values, blank])
        self.state = torch.cat([self.state, self.rule.init(blank)])
        self.slacks = torch.cat([self.slacks, torch.full_like(blank, torch.nan)])

    def take(self, rows: Tensor) -> None:
        """Keep these constraints, in this order."""
        self.limits, self.values = self.limits[rows], self.values[rows]
        self.state, self.slacks = self.state[rows], self.slacks[rows]

    def state_dict(self) -> dict[str, Any]:
        held = {"tolerances": self.limits, "values": self.values, "state": self.state, "slacks": self.slacks}
        return {name: value.clone() for name, value in held.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state. One saved before 0.2 has a first dimension more, of size 1."""
        old = state["values"].dim() == 2
        named = {**state, "state": state.get("state", state.get("integral"))}
        rows = [named[name][0] if old else named[name] for name in ("tolerances", "values", "state", "slacks")]
        # Copies: dual steps are made in place, and whoever holds the state may take it again.
        self.limits, self.values, self.state, self.slacks = (row.clone() for row in rows)
        if self.slacks.shape != self.values.shape:
            self.slacks = torch.full_like(self.values, torch.nan)


class Algorithm1:
    """min L_t + Σ_c b_c L_c  s.t.  L_c ≤ ε_c, for one task t: what to replay, what it weighs, how duals answer."""

    def __init__(
        self, constraints: Constraints, duals: Duals, estimator: Estimator, survey: Survey, normalise: bool = True
    ) -> None:
        self.constraints, self.duals, self.estimator, self.survey = constraints, duals, estimator, survey
        self.normalise, self.always_replays = normalise, False
        self.weigh()

    def weigh(self) -> None:
        """μ_c = (b_c + λ_c) / divisor_c, what draws and weights need of the duals; computed once a dual step."""
        sets = self.constraints.sets
        masses = (self.constraints.base + self.duals.values) / sets.divisors
        self.norm = float(masses.sum())
        self._weighed: tuple[int, float, Tensor, Tensor] | None = None
        self.pool = Pool(masses, sets.members, sets.offsets, sets.counts)

    def draw(self, m: int, generator: Generator) -> Drawn | None:
        """Line 6, the past: numbers and weights, unbiased for Σ_c (b_c + λ_c) L_c. None: nothing to replay."""
        if not len(self.pool.members) or not (self.norm or self.always_replays):
            return None
        if not self.norm:
            return Drawn(*draw_weightless(self.pool.members, m, generator))
        return Drawn(*self.estimator.draw(self.pool, m, generator))

    def weights(self, n: int, drawn: Drawn) -> Tensor:
        """Line 6, L̂: 1/n for each of n current samples, then the draw's weights; over 1 + Σμ if normalised."""
        scale = 1 / (1 + self.norm) if self.normalise else 1.0
        # Most draws between two dual steps have the very same weights.
        held = self._weighed
        if held is None or held[:2] != (n, scale) or held[2] is not drawn.weights:
            found = torch.cat([drawn.weights.new_full((n,), scale / n), scale * drawn.weights])
            held = self._weighed = (n, scale, drawn.weights, found)
        return held[3]

    def measure(self, look: LookAt) -> Measured:
        """Line 7: the slacks of all constraints, or of a fresh sample of them where there is too much to look at.

        look: numbers of samples → loss and error of each, [n, 2].
        """
        numbers, owners = self.survey.sample(self.constraints.by_sample)
        once, where = self.survey.once(numbers)
        seen = look(once).cpu()
        return self.survey.slacks(self.constraints, numbers, owners, seen if where is None else seen[where])

    def ascend(self, measured: Measured) -> None:
        """Line 8: step the duals of what was measured, and weigh anew."""
        if len(measured.visited):
            self.duals.ascend(measured.slacks, measured.visited, measured.errors, measured.share)
        self.weigh()

    def task_duals(self) -> Tensor:
        """λ_k of every past task: its own, or the mean over its samples where each of these is a constraint."""
        tasks, values = self.constraints.tasks, self.duals.values
        if not self.constraints.by_sample:
            return values[: len(tasks)].clone()
        return (
            torch.zeros(len(tasks), dtype=torch.float64).index_add(0, self.constraints.sets.tasks, values)
            / tasks.counts
        )
