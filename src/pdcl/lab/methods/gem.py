"""Gradient episodic memory: a step raises no past task's loss on memory, to first order.

With G = [g_1; …; g_{t−1}], the gradients on the stored samples of each past task, and g that of the current batch,

    min_z ½‖z − g‖²  s.t.  G z ≥ 0      solved in its dual      min_v ½ vᵀ(GGᵀ + ρI)v + (Gg)ᵀv  s.t.  v ≥ m

and the step is along g̃ = Gᵀv + g. A margin m > 0 leans the step further towards the past.

Lopez-Paz, Ranzato, "Gradient Episodic Memory for Continual Learning", NeurIPS 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lab.methods.even_shares import check_filling, check_fixed, share_evenly, share_fixed
from pdcl.lab.methods.parameters import flat_gradient, set_gradient
from pdcl.learning.batches import Batch, Step
from pdcl.methods.replay import Remembering
from pdcl.streams.task import Spec, Task
from pdcl.trees import split

FILLINGS = ("task", "fixed")


@dataclass(eq=False)
class GEM(Remembering):
    """GEM: one constraint on the gradient per past task, over all of its stored samples.

    margin: m, the least weight of a past task's gradient where any constraint binds
    ridge: ρ, added to the quadratic program's diagonal
    filling: memory shared evenly by the tasks so far (task), or by all to come (fixed)
    """

    margin: float = 0.5
    ridge: float = 1e-3
    filling: str = "task"

    # A gradient is edited as a whole, before each update.
    unused: ClassVar[tuple[str, ...]] = ("accumulate",)
    persistent: ClassVar[tuple[str, ...]] = ("samples_seen",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.margin < 0 or self.ridge < 0:
            raise UsageError(f"margin={self.margin} and ridge={self.ridge} must not be negative")
        check_filling(self.filling, FILLINGS)

    def prepare(self, spec: Spec) -> None:
        if self.filling == "fixed":
            check_fixed("gem", spec)
        super().prepare(spec)

    def step(self, batch: Batch) -> Step:
        past = self.past_gradients(batch.task) if len(self.held) else None
        losses = self.losses(self.outputs(batch.x), batch.y)
        self.backward(losses)
        if past is not None:
            gradient = flat_gradient(self.model)
            if bool((past @ gradient < 0).any()):
                set_gradient(self.model, combined(past, gradient, self.margin, self.ridge))
        self.update()
        return Step(losses.detach())

    def past_gradients(self, past: int) -> Tensor:
        """G, a row per past task; memory is sorted by task."""
        counts = [count for count in self.held.counts(past) if count]
        rows = []
        for x, y in zip(split(self.held["x"], counts), split(self.held["y"], counts), strict=True):
            self.backward(self.losses(self.outputs(x), y))
            rows.append(flat_gradient(self.model))
        return torch.stack(rows)

    def end(self, task: Task) -> None:
        (share_fixed if self.filling == "fixed" else share_evenly)(self, task)
        super().end(task)


def combined(past: Tensor, gradient: Tensor, margin: float, ridge: float) -> Tensor:
    """g̃ = Gᵀv + g with the exact v of the quadratic program."""
    wide, own = past.double(), gradient.double()
    v = solve((wide @ wide.T).cpu().numpy(), (wide @ own).cpu().numpy(), margin, ridge)
    return (wide.T @ torch.from_numpy(v).to(wide.device) + own).to(gradient.dtype)


def solve(gram: NDArray[np.float64], linear: NDArray[np.float64], margin: float, ridge: float) -> NDArray[np.float64]:
    """argmin_v ½ vᵀQv + cᵀv over v ≥ m, with Q = gram + ρI, as non-negative least squares in w = v − m.

    With Q = AᵀA it is min_w ½‖Aw − b‖² for Aᵀb = −(c + mQ1). A comes from Q's eigenvectors, so that parallel
    gradients, a singular Q, do no harm.
    """
    from scipy.optimize import nnls

    quadratic = gram + ridge * np.eye(len(gram))
    values, vectors = np.linalg.eigh(quadratic)
    real = values > len(values) * np.finfo(np.float64).eps * max(values.max(), 0.0)
    root = np.sqrt(values[real])
    target = -(vectors[:, real].T @ (linear + margin * quadratic.sum(1))) / root
    solution: NDArray[np.float64] = nnls(root[:, None] * vectors[:, real].T, target)[0]
    return solution + margin
