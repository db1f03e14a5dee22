"""How memory is divided among tasks: n_k from duals. The mathematics is in `partition`; these are its choices."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Protocol

from pdcl.duality.partition import affine_partition, generalization_partition, uniform_partition
from pdcl.duality.rules import between, not_negative, register_rule
from pdcl.errors import UsageError

FIVE_POINTS = 0.05


class Undivided(ValueError):
    """This rule can't divide so little memory: it is divided evenly, and the reason is told."""


class PartitionRule(Protocol):
    """n_k for every task so far, the newest last. duals: λ_k, the newest task's artificial one last."""

    def counts(self, duals: list[float], capacity: int, available: list[int]) -> list[int]: ...


@register_rule("partition", "uniform")
@dataclass(frozen=True)
class Even:
    """n_k = |B| / t."""

    def counts(self, duals: list[float], capacity: int, available: list[int]) -> list[int]:
        return uniform_partition(len(duals), capacity, available)


@register_rule("partition", "affine")
@dataclass(frozen=True)
class Affine:
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
class Generalization:
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
class ByRoom:
    """n_k ∝ w_k, by the room that the limit leaves above what was reached, against the median of all tasks' rooms:

        w_k = ((median room + soft) / (room_k + soft))^power,   within [1/most, most]

    A past task's share can only shrink, since its data is gone: places must be kept before a limit breaks. Less room
    than none counts as none. soft: what rooms must differ by to matter much; errors by chance are of that size.
    """

    power: float = 1.0
    most: float = 4.0
    soft: float = FIVE_POINTS
    by_room: ClassVar[bool] = True

    def __post_init__(self) -> None:
        not_negative(power=self.power)
        if self.most < 1:
            raise UsageError(f"most={self.most} must be at least 1: it is a ratio to an even share")
        if not self.soft > 0:
            raise UsageError(f"soft={self.soft} must be above 0: rooms may be 0")

    def counts(self, rooms: list[float], capacity: int, available: list[int]) -> list[int]:
        wide = [max(room, 0.0) + self.soft for room in rooms]
        usual = median(wide)
        weights = [min(self.most, max(1 / self.most, (usual / each) ** self.power)) for each in wide]
        return affine_partition(weights, capacity, 1.0, available)
