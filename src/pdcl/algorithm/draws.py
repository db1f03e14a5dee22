"""Line 6 of Algorithm 1, the past: unbiased estimates of Σ_c μ_c mean_c ℓ from m stored samples.

E[Σ_j weights_j ℓ(slots_j)] = Σ_c μ_c (1/n_c) Σ_{i∈c} ℓ_i, for any m and any number of sets, also where sets overlap,
at a cost per step that doesn't grow with memory. Sets are past tasks with μ = b + λ_k, samples with μ = λ_i / n_k, or
segments. Empty sets contribute nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor

from pdcl.algorithm.rules import register_rule

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pool:
    """What may be replayed: set c is members[offsets[c] : offsets[c] + counts[c]], and masses[c] is its μ_c."""

    masses: Tensor
    members: Tensor
    offsets: Tensor
    counts: Tensor

    @cached_property
    def cumulative(self) -> Tensor:
        return cumulate(self.masses, self.counts)

    @cached_property
    def ends(self) -> Ends:
        return Ends(self.cumulative)

    @cached_property
    def singles(self) -> bool:
        """Whether every set is one sample."""
        return bool((self.counts == 1).all())

    @cached_property
    def evens(self) -> dict[int, Tensor]:
        """Equal weights of m draws, Σμ / m each, by m: made once, as every draw has the same."""
        return {}

    def even(self, m: int) -> Tensor:
        if m not in self.evens:
            self.evens[m] = torch.full((m,), self.ends.total / m)
        return self.evens[m]


class Estimator(ABC):
    """How the Lagrangian is estimated from some of the stored samples."""

    @abstractmethod
    def draw(self, pool: Pool, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """Slots to replay, with repeats, and the weight of each."""


@register_rule("estimator", "dual")
@dataclass(frozen=True)
class ByDual(Estimator):
    """Set c with probability μ_c / Σμ, then one of its samples: every weight is Σμ / m."""

    def draw(self, pool: Pool, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
        if not m or not pool.ends.total:
            return _nothing()
        if pool.singles:
            places = pool.ends.invert(_uniform((m,), generator))
        else:
            places = _within(pool.ends, pool.offsets, pool.counts, m, generator)
        return pool.members.index_select(0, torch.from_numpy(places)), pool.even(m)


@register_rule("estimator", "whole")
@dataclass(frozen=True)
class Whole(Estimator):
    """Every sample of every set, with weight μ_c / n_c: no estimate but the sum itself, whatever m says."""

    def draw(self, pool: Pool, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
        weights = torch.repeat_interleave(pool.masses / pool.counts.clamp(min=1), pool.counts)
        return pool.members, weights.to(torch.get_default_dtype())


def cumulate(masses: Tensor, counts: Tensor | None = None) -> Tensor:
    """Running sum in float64, so that small duals behind large ones aren't lost; what the draws by dual take.

    counts: samples stored of each; one of which nothing is stored has no mass.
    """
    masses = masses.detach().double()
    return (masses if counts is None else torch.where(counts > 0, masses, 0)).cumsum(0)


class Ends:
    """A running sum, to look items up in.

    NumPy, since on a handful of numbers it is several times faster than torch, and a step has ten such operations.
    """

    def __init__(self, cumulative: Tensor) -> None:
        self.sums = cumulative.numpy()
        self.total = float(self.sums[-1]) if len(self.sums) else 0.0
        self.last = self.sums.searchsorted(self.total)

    def invert(self, u: Numbers) -> Places:
        """Inverse CDF: the item whose stretch of the running sum holds u · total. Never an item without mass.

        `right` skips massless items at u = 0 and between others; the minimum does it should u · total become total.
        """
        return np.minimum(self.sums.searchsorted(u * self.total, side="right"), self.last)


def _within(ends: Ends, offsets: Tensor, counts: Tensor, m: int, generator: Generator) -> Places:
    """m sets by their mass, and of each one of its places, uniformly."""
    u = _uniform((2, m), generator)
    sets = ends.invert(u[0])
    found: Places = offsets.numpy()[sets] + (u[1] * counts.numpy()[sets]).astype(np.int64)
    return found


def draw_by_dual(
    cumulative: Tensor, offsets: Tensor, counts: Tensor, m: int, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Task k with probability λ_k / ‖λ‖₁, then one of its samples uniformly: every weight is ‖λ‖₁ / m.

    cumulative: `cumulate(duals, counts)`. All duals zero: nothing to replay, empty tensors.
    """
    ends = Ends(cumulative)
    if not ends.total or not m:
        return _nothing()
    return torch.from_numpy(_within(ends, offsets, counts, m, generator)), torch.full((m,), ends.total / m)


def draw_samples_by_dual(cumulative: Tensor, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Sample level: slot i with p ∝ λ_i / n_k, every weight Σ_i (λ_i / n_k) / m.

    cumulative: `cumulate(duals / counts[tasks])`, over the slots.
    """
    ends = Ends(cumulative)
    if not ends.total or not m:
        return _nothing()
    return torch.from_numpy(ends.invert(_uniform((m,), generator))), torch.full((m,), ends.total / m)


def draw_weightless(members: Tensor, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Any samples, each with weight 0: for networks whose batch statistics must cover the past all the same."""
    stored = members.unique()
    places = (_uniform((m,), generator) * len(stored)).astype(np.int64)
    return stored.index_select(0, torch.from_numpy(places)), torch.zeros(m)


def _uniform(shape: tuple[int, ...], generator: Generator) -> Numbers:
    found: Numbers = torch.rand(shape, dtype=torch.float64, generator=generator).numpy()
    return found


def _nothing() -> tuple[Tensor, Tensor]:
    empty = torch.empty(0)
    return empty.long(), empty
