"""Which samples memory keeps: weights for a draw without replacement. The mathematics is in `selection`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from pdcl.algorithm.rules import between, register_rule
from pdcl.algorithm.selection import robust_weights
from pdcl.errors import UsageError

FEWEST_CANDIDATES = 1000


class SelectionRule(ABC):
    """Which samples stay: as many as the partition says, drawn without replacement.

    by_dual: weights depend on duals, so candidates of the newest task are scored before the draw; without it their
    duals count as 0. balance: as many samples of each class. rescore: score candidates again at the task's end.
    """

    by_dual: ClassVar[bool] = True
    balance: bool = True
    rescore: bool = True

    @abstractmethod
    def weights(self, duals: Tensor) -> Tensor:
        """One per sample; it is drawn with a probability proportional to it."""

    def pool(self, total: int, places: int) -> int:
        """How many of a task's samples are scored for so many places; if nothing is said, all."""
        return total


@register_rule("selection", "uniform")
@dataclass(frozen=True)
class Uniform(SelectionRule):
    """Every sample alike."""

    balance: bool = True
    by_dual: ClassVar[bool] = False

    def weights(self, duals: Tensor) -> Tensor:
        return torch.ones(len(duals))


@register_rule("selection", "dual")
@dataclass(frozen=True)
class ByDual(SelectionRule):
    """FB: p_i ∝ λ_i, clipped at a quantile and mixed with uniform, so that mislabelled samples can't dominate.

    clip: the quantile (1: no clipping). drop: the share of largest duals that is left out as outliers, unless places
    would stay empty (0: none). uniform_share: how much is uniform (0: none). balance: as many of each class.
    candidates: scored per place in memory, at least 1000 (0: all of the task's data). rescore: re-score
    candidates at the task's end. After one pass a shadow dual reflects the loss at first sight, so only the new score
    counts; after several passes it is added to the dual. The paper's rule, by the accumulated dual, is
    `dual:clip=1,uniform_share=0,balance=false,candidates=0,rescore=false`.
    """

    clip: float = 0.9
    uniform_share: float = 0.5
    balance: bool = True
    candidates: int = 4
    rescore: bool = True
    drop: float = 0.0

    def __post_init__(self) -> None:
        between(0, 1, clip=self.clip, uniform_share=self.uniform_share, drop=self.drop)
        if self.candidates < 0:
            raise UsageError(f"candidates={self.candidates} must not be negative: 0 scores all of the task's data")

    def weights(self, duals: Tensor) -> Tensor:
        weights = robust_weights(duals, self.clip, self.uniform_share)
        outliers = duals > duals.quantile(1 - self.drop) if self.drop and len(duals) else torch.zeros(len(duals)).bool()
        return weights.masked_fill(outliers, 0.0)

    def pool(self, total: int, places: int) -> int:
        """How many of a task's samples are scored for so many places."""
        return min(total, max(FEWEST_CANDIDATES, self.candidates * places)) if self.candidates else total
