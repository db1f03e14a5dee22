"""The Lagrangian of somebody else's loop and memory: losses in, a scalar to descend and duals out.

A small face of Algorithm 1: its duals and its dual step (`Duals`); memory and draws are the user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from pdcl.algorithm.algorithm1 import Duals
from pdcl.algorithm.constraints import task_means
from pdcl.algorithm.dual_rules import Ascent
from pdcl.algorithm.id_table import IdTable
from pdcl.limits.tolerance import Fixed, PerTask, Relative, Rise, Written, as_tolerance

CURRENT = -1


class Lagrangian:
    """The Lagrangian without a loop: weigh losses by duals, raise duals by slacks, in your own training code.

    ```python
    lagrangian = Lagrangian(tolerance=0.05, dual_lr=0.1)
    for x, y, ids in batches:  # ids: -1 for a sample of the current task, else the past task it belongs to
        losses = cross_entropy(network(x), y, reduction="none")
        lagrangian.loss(losses, ids).backward()
        ...
        lagrangian.ascend(losses, ids)
    lagrangian.end_task()
    ```

    tolerance: ε, as `as_tolerance` reads it, or a mapping from id to ε; an error-rate tolerance wants 0–1 errors in
    `ascend`. dual_lr: η_d. level: "task" (ids are tasks) or "sample" (ids are samples). decay: κ. normalise: divide
    the loss by 1 + ‖λ‖₁, which keeps a learning rate meaningful as duals grow.
    A constraint exists from the first sight of its id on, with a dual of 0.
    """

    def __init__(
        self,
        tolerance: Written | Mapping[int, float],
        dual_lr: float = 0.1,
        level: str = "task",
        decay: float = 0.0,
        normalise: bool = False,
    ) -> None:
        if level not in ("task", "sample"):
            raise ValueError(f'level must be "task" or "sample", not {level!r}')
        if not (dual_lr >= 0 and decay >= 0):
            raise ValueError(f"dual_lr and decay must not be negative, but are {dual_lr} and {decay}")
        self.tolerance = _checked(tolerance) if isinstance(tolerance, Mapping) else as_tolerance(tolerance)
        self.level, self.normalise = level, normalise
        self.task = 0
        self._current_tolerance: float | None = None
        self._table = IdTable()
        rule = Ascent(dual_lr, decay)
        none, one = torch.zeros(0, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
        self._duals, self._current = Duals(none, none, rule), Duals(one, one, rule)

    @property
    def ids(self) -> Tensor:
        """The ids seen so far, in order: [C]."""
        return self._table.ids

    @property
    def duals(self) -> Tensor:
        """λ, aligned with `ids`."""
        return self._duals.values

    @property
    def slacks(self) -> Tensor:
        """The last measured L − ε, aligned with `ids`; NaN where nothing was measured yet."""
        return self._duals.slacks

    @property
    def tolerances(self) -> Tensor:
        """ε, aligned with `ids`."""
        return self._duals.limits

    @property
    def current_dual(self) -> float:
        """The artificial dual of the current task, which only partitions use."""
        return float(self._current.values)

    def loss(self, losses: Tensor, ids: Tensor, weights: Tensor | None = None, groups: Tensor | None = None) -> Tensor:
        """The scalar to back-propagate: the Lagrangian up to −λε, which has no gradient. losses, ids: [n].

        Without weights, the batch's mean over each task stands for its L_k; with the weights of a draw (one per past
        sample, or one per sample of the batch), the past is Σ_j w_j ℓ_j. groups: the task of each sample, at level
        "sample" (default: all of one task).
        """
        past, rows = self._locate(losses, ids, groups)
        if weights is None:
            kin = self._table.groups[rows] if self.level == "sample" else rows
            weights = self.duals[rows] / torch.bincount(kin)[kin]
        else:
            weights = _of_past(weights, past, "weights")
        objective = losses[~past].sum() / max(int((~past).sum()), 1)
        total = objective + (weights.to(losses) * losses[past]).sum()
        return total / (1 + self.mass) if self.normalise else total

    @property
    def mass(self) -> float:
        """‖λ‖₁; at level "sample" Σ_k (1/n_k) Σ_i λ_i, the same for equal duals."""
        return float(self.duals.sum() if self.level == "task" else self._table.group_means(self.duals).sum())

    @torch.no_grad()
    def ascend(self, losses: Tensor, ids: Tensor, groups: Tensor | None = None) -> None:
        """Measure slacks s = L − ε of the ids present and step λ ← [λ + η_d (s − κλ)]₊ for these.

        Samples of the current task (id −1) move `current_dual`, the artificial dual that only partitions use.
        """
        past, rows = self._locate(losses, ids, groups)
        present, inverse = torch.unique(rows, return_inverse=True)
        means = task_means(losses[past].to("cpu", torch.float64), inverse, len(present))
        slacks = means - self.tolerances[present]
        current = losses[~past].to("cpu", torch.float64)
        current_slack = current.mean() - self._current_epsilon() if len(current) else torch.zeros(())
        if not (slacks.isfinite().all() and current_slack.isfinite()):
            raise ValueError("some losses aren't finite, so no dual was changed: look at the training step before")
        # Every id present moves by a whole step, however few are present: the caller decides whom to measure.
        self._duals.ascend(slacks, present)
        if len(current):
            self._current.ascend(current_slack.view(1))

    def end_task(self, warm: bool = False) -> None:
        """Close the current task: all duals start at 0 for the next one, or stay as they are if `warm`."""
        self.task += 1
        self._current_tolerance = None
        if not warm:
            self._duals.reset()
            self._current.reset()

    def set_tolerance(self, id: int, value: float | None = None, *, reached: float | None = None) -> None:
        """Give ε of one id (−1: the current task), or what it reached, for a relative tolerance to be taken of."""
        epsilon = self._reached(id, reached) if value is None else Fixed(value).value
        if value is not None and reached is not None:
            raise ValueError(f"set_tolerance({id}) got the tolerance {value} and reached={reached}: give one of them")
        if id == CURRENT:
            self._current_tolerance = epsilon
            return
        row = self._rows(torch.tensor([id]), None, lambda *_: epsilon)
        self.tolerances[row] = epsilon

    def keep(self, ids: Tensor) -> None:
        """Drop the constraints of samples (or tasks) that memory no longer holds: all but the given ids."""
        self._duals.take(self._table.keep(ids.cpu()))

    def state_dict(self) -> dict[str, Any]:
        """Tensors and JSON values only."""
        duals = {"duals" if name == "values" else name: row for name, row in self._duals.state_dict().items()}
        table = {"ids": self._table.ids.clone(), "groups": self._table.groups.clone()}
        scalars = {"level": self.level, "task": self.task, "current_dual": self.current_dual}
        return {**table, **duals, **scalars, "current_tolerance": self._current_tolerance}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        if state["level"] != self.level:
            raise ValueError(f"the state is of level {state['level']!r}, this Lagrangian of level {self.level!r}")
        self._table = IdTable(state["ids"].clone(), state["groups"].clone())
        held = {"values": state["duals"], "state": state.get("state", state["duals"])}
        held |= {name: state[name] for name in ("tolerances", "slacks")}
        self._duals.load_state_dict({name: row.clone() for name, row in held.items()})
        self._current.values.fill_(state["current_dual"])
        self._current.state.fill_(state["current_dual"])
        self.task, self._current_tolerance = state["task"], state["current_tolerance"]

    def _rows(self, ids: Tensor, groups: Tensor | None, epsilon: Callable[[int, int], float]) -> Tensor:
        """Where the given ids are; unknown ones join first, with dual 0 and tolerance epsilon(id, group)."""
        new, group = self._table.unknown(ids, groups)
        if len(new):
            values = [epsilon(i, g) for i, g in zip(new.tolist(), group.tolist(), strict=True)]
            self._duals.join(torch.tensor(values, dtype=torch.float64))
            self._duals.take(self._table.join(new, group))
        return self._table.rows(ids, groups)

    def _locate(self, losses: Tensor, ids: Tensor, groups: Tensor | None) -> tuple[Tensor, Tensor]:
        """Which samples are of the past, and the rows of their constraints."""
        if losses.ndim != 1 or losses.shape != ids.shape:
            raise ValueError(f"one loss and one id per sample, not shapes {list(losses.shape)} and {list(ids.shape)}")
        if len(ids) and int(ids.min()) < CURRENT:
            raise ValueError(f"ids must be {CURRENT} (current task) or not negative, but one is {int(ids.min())}")
        if groups is not None and self.level == "task":
            raise ValueError('groups have no effect at level "task", where ids are the tasks: leave them out')
        past = ids != CURRENT
        tasks = None if groups is None else _of_past(groups, past, "groups").cpu()
        return past, self._rows(ids[past].cpu(), tasks, self._epsilon)

    def _epsilon(self, id: int, group: int) -> float:
        """ε of an id seen for the first time."""
        if isinstance(self.tolerance, Mapping) and id in self.tolerance:
            return self.tolerance[id]
        if isinstance(self.tolerance, (Mapping, Relative, Rise)):
            what = "it isn't in the mapping" if isinstance(self.tolerance, Mapping) else "a relative one needs a value"
            raise ValueError(f"no tolerance for id {id}: {what}; call set_tolerance({id}, value) before")
        return self.tolerance.of(id if self.level == "task" else group)

    def _reached(self, id: int, reached: float | None) -> float:
        if not isinstance(self.tolerance, (Relative, Rise)):
            raise ValueError(f"reached={reached} has no effect on {self.tolerance}: only a relative tolerance uses it")
        return self.tolerance.of(id, reached)

    def _current_epsilon(self) -> float:
        """ε of the current task, for the artificial dual."""
        if self._current_tolerance is not None:
            return self._current_tolerance
        if isinstance(self.tolerance, (Fixed, PerTask)):
            return self.tolerance.of(self.task)
        if isinstance(self.tolerance, Mapping) and CURRENT in self.tolerance:
            return self.tolerance[CURRENT]
        by_number = isinstance(self.tolerance, Mapping) and self.level == "task" and self.task in self.tolerance
        return self._epsilon(self.task if by_number else CURRENT, self.task)


def _checked(tolerance: Mapping[int, float]) -> dict[int, float]:
    return {int(id): Fixed(value).value for id, value in tolerance.items()}


def _of_past(values: Tensor, past: Tensor, what: str) -> Tensor:
    """Values given for the whole batch or for its past samples alone, as the latter."""
    if values.shape == past.shape:
        return values[past]
    if len(values) != int(past.sum()):
        raise ValueError(
            f"{len(values)} {what} for a batch of {len(past)} with {int(past.sum())} past samples: "
            "give one per sample, or one per past sample"
        )
    return values
