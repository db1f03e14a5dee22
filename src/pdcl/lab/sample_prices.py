"""`pdcl.prices_by_sample`: what the tolerance of a single stored sample costs (Corollary 1).

With duals per sample the Lagrangian is L_t + Σ_k (1/n_k) Σ_i λ_i (ℓ_i − ε_i), so the multiplier of ℓ_i ≤ ε_i, its
price, is λ_i / n_k:   loosening ε_i by γ wins at most about γ λ_i / n_k on the current task
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from pdcl.errors import UsageError
from pdcl.lab.prices import STEP, brought_back, is_moving, task_names
from pdcl.learning.report import Trace
from pdcl.lifelong.learner import Learner
from pdcl.methods.pdcl import PDCL
from pdcl.past.held_back import REPLAY
from pdcl.running.result import Result
from pdcl.streams.task import Stream


@dataclass(frozen=True)
class SamplePrice:
    """λ_i of one stored sample, of n_k samples that its task held while the current one was learned.

    id: counts training samples over all tasks, from 0. label: its class; None where it has none.
    """

    id: int
    task: int
    name: str
    label: int | None
    dual: float
    samples: int

    @property
    def price(self) -> float:
        """λ_i / n_k."""
        return self.dual / self.samples

    def __str__(self) -> str:
        said = f"λ = {self.dual:.3g} of {self.samples} samples, a price of {self.price:.3g}"
        return f"sample {self.id} of {self.name}: {said}; {STEP} looser may win at most about {STEP * self.price:.2g}"


@dataclass(frozen=True)
class SamplePrices(Sequence[SamplePrice]):
    """The prices of past samples that memory still holds, the highest first. `doubts`: reasons not to trust them."""

    current: str
    rows: list[SamplePrice]
    doubts: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def share_of_highest(self, share: float = 0.1) -> float:
        """Which part of all these prices the highest tenth (or another share) of the samples has."""
        total = sum(row.price for row in self.rows)
        count = max(1, round(share * len(self.rows)))
        return sum(row.price for row in self.rows[:count]) / total if total else 0.0

    def __str__(self) -> str:
        lines = [f"While {self.current!r} was learned:", *(f"  {row}" for row in self.rows[:10])]
        return "\n".join([*lines, *(f"    but {doubt}" for doubt in self.doubts)])


def prices_by_sample(run: Result | Learner | str | Path, stream: Stream | None = None) -> SamplePrices:
    """The sample prices of a run of `pdcl-s` (`level="sample"`): a result, its directory, or a learner.

    They are those of past samples that memory still holds after the last task; it kept some of the n_k that it had.
    """
    learner, stream, found = brought_back(run, stream)
    store = learner.store
    if store is None or not isinstance(learner, PDCL) or learner.level != "sample":
        raise UsageError(
            "there are no sample prices: this run's duals are those of tasks, see pdcl.prices; "
            'for one dual per sample use pdcl-s, or level="sample"'
        )
    names = task_names(stream, len(found.tolerances) + 1)
    held = {name: store[name].cpu() for name in ("id", "task", "y", "dual", "role")}
    past = ((held["task"] < len(found.counts)) & (held["role"] == REPLAY)).nonzero().flatten()
    order = past[_prices(held, found.counts)[past].argsort(descending=True, stable=True)]
    rows = [
        SamplePrice(int(held["id"][i]), k, names[k], _label(held["y"][i]), float(held["dual"][i]), found.counts[k])
        for i, k in zip(order.tolist(), held["task"][order].tolist(), strict=True)
    ]
    return SamplePrices(names[-1], rows, _doubts(learner, found, names))


def _prices(held: dict[str, torch.Tensor], counts: list[int]) -> torch.Tensor:
    """λ_i / n_k; of the newest task's samples, which have no price, λ_i."""
    sizes = torch.ones(int(held["task"].max()) + 1 if len(held["task"]) else 1, dtype=torch.float64)
    sizes[: len(counts)] = torch.tensor(counts, dtype=torch.float64)
    return held["dual"].double() / sizes[held["task"]]


def _label(y: torch.Tensor) -> int | None:
    return int(y) if y.ndim == 0 and not y.is_floating_point() else None


def _doubts(learner: Learner, found: Trace, names: list[str]) -> list[str]:
    """Doubts about a task's price are doubts about those of its samples."""
    reason = learner.report().no_price
    weights = [] if reason is None else [f"{reason}, so that duals are weights, no prices"]
    moving = [k for k in range(len(found.tolerances)) if is_moving([step[k] for step in found.duals])]
    return weights + [f"λ of {names[k]}, the mean of its samples', is still moving" for k in moving]
