"""What outputs of stored samples are held to: those recorded when they were stored, softened where much is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pdcl.core.layout import Layout
from pdcl.duality.quantities import sharpness
from pdcl.memory.store import Memory


@dataclass(frozen=True, eq=False)
class Recorded:
    """c z_i. sharpness: c of every slot; None where records are taken as they are."""

    memory: Memory
    sharpness: Tensor | None = None

    def of(self, slots: Tensor) -> Tensor:
        recorded: Tensor = self.memory.read("outputs", slots)
        if self.sharpness is None:
            return recorded
        return recorded * self.sharpness[slots].view(-1, *[1] * (recorded.dim() - 1)).to(recorded)


def softened(
    memory: Memory, layout: Layout, samples: Sequence[int], by_heart: Sequence[bool], soften: float
) -> Recorded:
    """Softer records of the tasks whose samples were learned by heart here, which those of adopted tasks weren't.

    samples: how many each task was learned from.
    """
    past = len(layout.tasks)
    learned = [number * own for number, own in zip(samples, by_heart, strict=False)][:past]
    known = torch.tensor([*learned, *[0] * (past - len(learned))], dtype=torch.long)
    return Recorded(memory, sharpness(layout.tasks.counts, known, soften)[layout.task_of] if past else None)
