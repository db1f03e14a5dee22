"""How memory is divided among tasks: n_k from duals. The mathematics is in `partition`; these are its choices."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pdcl.algorithm.partition import affine_partition, generalization_partition, uniform_partition
from pdcl.algorithm.rules import between, not_negative, register_rule
from pdcl.errors import UsageError

FIVE_POINTS = 0.05


class Undivided(ValueError):
    """This rule can't divide so little memory: it is divided evenly, and the reason is told."""


class PartitionRule(ABC):
    """How memory is divided among tasks.

    by_room: its first argument is the room that each task's limit leaves, not λ_k with the newest task's artificial
    dual last.
    """

    by_room: ClassVar[bool] = False

    @abstractmethod
    def counts(self, duals: list[float], capacity: int, available: list[int]) -> list[int]:
        """n_k for every task so far, the newest last."""


@register_rule("partition", "uniform")
@dataclass(frozen=True)
class Even(PartitionRule):
    """n_k = |B| / t."""

    def counts(self, duals: list[float], capacity: int, available: list[int]) -> list[int]:
        return uniform_partition(len(duals), capacity, available)


@register_rule("partition", "affine")
@dataclass(frozen=True)
class Affine(PartitionRule):
    """PB: n_k = |B| (α λ_k / ‖λ‖₁ + (1 − α) / t).

    current_cap: the most that the newest task gets, in even shares (0: no cap, the paper's rule).
    """

    alpha: float = 0.5
    current_cap: float = 1.0

    def __post_init__(self) -> None:
        between(0, 1, alpha=self.alpha)
        not_negative(current_cap=self.current_cap)

    def counts(self, duals: list[float], capacity: int, available: list[int]) -> list[int]:
        cap = min(1.0, self.current_cap / len(duals)) or None
        return affine_partition(duals, capacity, self.alpha, available, current_cap=cap)


@register_rule("partition", "generalization")
@dataclass(frozen=True)
class Generalization(PartitionRule):
    """BP: min Σ λ_k sqrt(ln n_k / n_k), n_k ≥ minimum; the newest task weighs 1, as its loss does in the Lagrangian."""

    minimum: int = 5

    def __post_init__(self) -> None:
        if self.minimum < 1:
            raise UsageError(f"minimum={self.minimum} must be at least 1 sample a task")

    def counts(self, duals: list[float], capacity: int, available: list[int]) -> list[int]:
        tasks = len(duals)
        if capacity < tasks * self.minimum:
            raise Undivided(f"memory of {capacity} is below {self.minimum} samples for each of {tasks} tasks")
        return generalization_partition([*duals[:-1], 1.0], capacity, self.minimum, available)


@register_rule("partition", "room")
@dataclass(frozen=True)
class ByRoom(PartitionRule):
    """n_k ∝ w_k: w_k = min(most, q_k^power) where q_k > exp(clear / √(t − 1)), else 1; q_k = (median room of the
    others + soft) / (room_k + soft), where a task's room is what its limit leaves.

    A past task's share can only shrink, since its data is gone: places must be kept before a limit breaks. An error
    falls about as 1/√n, hence power 2; what it rises by falls about as 1/n, hence 1 where limits are rises. Limits may
    differ because tasks aren't equally hard, so memory moves only where one is clearly stricter, and few others make
    nothing clear: clear = .85 asks for a factor of 1.8 among three tasks, and of 1.3 among ten. Only strict
    tasks take places from others: a wide limit may belong to a hard task. Less room than none counts as none.
    soft: added to every room, so that differences of the size of sampling noise count little.
    """

    power: float = 2.0
    most: float = 4.0
    soft: float = FIVE_POINTS
    clear: float = 0.85
    by_room: ClassVar[bool] = True

    def __post_init__(self) -> None:
        not_negative(power=self.power, clear=self.clear)
        if self.most < 1:
            raise UsageError(f"most={self.most} must be at least 1: it is a ratio to an even share")
        if not self.soft > 0:
            raise UsageError(f"soft={self.soft} must be above 0: rooms may be 0")

    def counts(self, rooms: list[float], capacity: int, available: list[int]) -> list[int]:
        wide = np.maximum(rooms, 0) + self.soft
        times = medians_of_others(wide) / wide
        clearly = times > math.exp(self.clear / math.sqrt(max(1, len(rooms) - 1)))
        weights = np.where(clearly, np.minimum(self.most, times**self.power), 1.0)
        return affine_partition(weights, capacity, 1.0, available)


def medians_of_others(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The median of all values but each one; of a single value itself.

    >>> medians_of_others(np.array([1.0, 5.0, 2.0, 9.0]))
    array([5., 2., 5., 2.])
    """
    others = len(values) - 1
    if not others:
        return values
    order = np.argsort(values)
    place, ordered = np.empty_like(order), values[order]
    place[order] = np.arange(len(values))
    middle = [each + (each >= place) for each in ((others - 1) // 2, others // 2)]
    found: npt.NDArray[np.float64] = (ordered[middle[0]] + ordered[middle[1]]) / 2
    return found
