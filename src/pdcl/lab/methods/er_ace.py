"""Asymmetric cross-entropy: the current batch competes only among its own classes, replayed samples among all.

    L = ℓ(f(x)|_{C(y)}, y) + ℓ(f(x′), y′)

C(y) are the classes that occur in the current batch: new classes then don't push past ones away, which would undo what
memory has to restore.

Caccia, Aljundi, Asadi, Tuytelaars, Pineau, Belilovsky, "New Insights on Reducing Abrupt Representation Change in Online
Continual Learning", ICLR 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pdcl.lab.methods.er import ER
from pdcl.lab.methods.refusals import only_classification
from pdcl.learning.batches import Batch, Step
from pdcl.streams.task import Spec


@dataclass(eq=False)
class ERACE(ER):
    """ER-ACE: experience replay in which new classes don't push the past ones away."""

    def prepare(self, spec: Spec) -> None:
        only_classification("er-ace", spec)
        super().prepare(spec)

    def step(self, batch: Batch) -> Step:
        n = len(batch)
        x, y = self.with_replayed(batch)
        outputs = self.outputs(x)
        losses = self.losses(among_present(outputs[:n], batch.y), batch.y)
        replayed = self.losses(outputs[n:], y[n:])
        self.descend(losses.mean() + replayed.mean() if len(replayed) else losses.mean())
        self.remember(batch)
        return Step(losses.detach())


def among_present(outputs: Tensor, targets: Tensor) -> Tensor:
    """Outputs with every class that doesn't occur in `targets` ruled out."""
    absent = torch.ones(outputs.shape[1], dtype=torch.bool, device=outputs.device)
    absent[targets] = False
    return outputs.masked_fill(absent, -torch.inf)
