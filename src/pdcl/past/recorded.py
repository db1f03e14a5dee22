"""What outputs of stored samples are held to: those recorded when they were stored, softened where much is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pdcl.algorithm.drift import drift_of, sharpness
from pdcl.past.layout import Layout
from pdcl.past.store import Memory


@dataclass(frozen=True, eq=False)
class Recorded:
    """c z_i. sharpness: c of every slot, shaped to multiply records; None where they are taken as they are. whole:
    every output of every sample has a record."""

    memory: Memory
    whole: bool
    sharpness: Tensor | None = None

    def of(self, slots: Tensor) -> Tensor:
        recorded: Tensor = self.memory.read("outputs", slots)
        if self.sharpness is None:
            return recorded
        return recorded * self.sharpness.index_select(0, slots.to(self.sharpness.device))

    def drift(self, outputs: Tensor, held_to: Tensor) -> Tensor:
        """The drift of outputs from what they are held to, by sample; in fewer operations where nothing is missing."""
        if not self.whole:
            return drift_of(outputs, held_to)
        return (outputs - held_to).square().flatten(1).mean(1)


def recorded_in(memory: Memory) -> Recorded:
    """Records as they are."""
    return Recorded(memory, "outputs" not in memory.columns or not bool(memory["outputs"].isnan().any()))


def softened(memory: Memory, layout: Layout, learned: Sequence[int], soften: float) -> Recorded:
    """Records times c_k, for tasks of which much is stored and which the network has therefore memorised.

    learned: how many samples each task was trained on here; 0 for adopted tasks, which are held as recorded.
    """
    plain, past = recorded_in(memory), len(layout.tasks)
    if not past or "outputs" not in memory.columns:
        return plain
    known = torch.tensor([*learned[:past], *[0] * (past - len(learned))], dtype=torch.long)
    each, outputs = sharpness(layout.tasks.counts, known, soften)[layout.task_of], memory["outputs"]
    return replace(plain, sharpness=each.view(-1, *[1] * (outputs.dim() - 1)).to(outputs))
