"""Line 6 of Algorithm 1, the past: unbiased estimates of Σ_c μ_c mean_c ℓ from m stored samples.

E[Σ_j weights_j ℓ(slots_j)] = Σ_c μ_c (1/n_c) Σ_{i∈c} ℓ_i, for any m and any number of sets, also where sets overlap,
at a cost per step that doesn't grow with memory. Sets are past tasks with μ = b + λ_k, samples with μ = λ_i / n_k, or
segments. Empty sets contribute nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Generator, Tensor

from pdcl.algorithm.rules import register_rule


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
    def total(self) -> float:
        """Σ μ_c over the sets that hold samples."""
        return float(self.cumulative[-1]) if len(self.cumulative) else 0.0

    @cached_property
    def singles(self) -> bool:
        """Whether every set is one sample."""
        return bool((self.counts == 1).all())


class Estimator:
    """`draw`: slots to replay, with repeats, and the weight of each."""

    def draw(self, pool: Pool, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


@register_rule("estimator", "dual")
@dataclass(frozen=True)
class ByDual(Estimator):
    """Set c with probability μ_c / Σμ, then one of its samples: every weight is Σμ / m."""

    def draw(self, pool: Pool, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
        if pool.singles:
            places, weights = draw_samples_by_dual(pool.cumulative, m, generator)
        else:
            places, weights = draw_by_dual(pool.cumulative, pool.offsets, pool.counts, m, generator)
        return pool.members.index_select(0, places), weights


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


def invert(cumulative: Tensor, u: Tensor) -> Tensor:
    """Inverse CDF: the item whose stretch of the running sum holds u · total. Never an item without mass.

    `right` skips massless items at u = 0 and between others; the minimum does it should u · total round up to total.
    """
    # NumPy, since on a handful of numbers it is several times faster than torch, and a step has ten such operations.
    sums = cumulative.numpy()
    last = np.searchsorted(sums, sums[-1])
    return torch.from_numpy(np.minimum(np.searchsorted(sums, u.numpy() * sums[-1], side="right"), last))


def draw_by_dual(
    cumulative: Tensor, offsets: Tensor, counts: Tensor, m: int, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Task k with probability λ_k / ‖λ‖₁, then one of its samples uniformly: every weight is ‖λ‖₁ / m.

    cumulative: `cumulate(duals, counts)`. All duals zero: nothing to replay, empty tensors.
    """
    total = _total(cumulative)
    if not total or not m:
        return _nothing()
    both = torch.rand((2, m), dtype=torch.float64, generator=generator)
    tasks = invert(cumulative, both[0]).numpy()
    within = (both[1].numpy() * counts.numpy()[tasks]).astype(np.int64)
    return torch.from_numpy(offsets.numpy()[tasks] + within), torch.full((m,), total / m)


def draw_samples_by_dual(cumulative: Tensor, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Sample level: slot i with p ∝ λ_i / n_k, every weight Σ_i (λ_i / n_k) / m.

    cumulative: `cumulate(duals / counts[tasks])`, over the slots.
    """
    total = _total(cumulative)
    if not total or not m:
        return _nothing()
    return invert(cumulative, _uniform((m,), generator)), torch.full((m,), total / m)


def draw_weightless(members: Tensor, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Any samples, each with weight 0: for networks whose batch statistics must cover the past all the same."""
    stored = members.unique()
    slots = stored.index_select(0, (_uniform((m,), generator) * len(stored)).long())
    return slots, torch.zeros(m)


def _uniform(shape: tuple[int, ...], generator: Generator) -> Tensor:
    return torch.rand(shape, dtype=torch.float64, generator=generator)


def _total(cumulative: Tensor) -> float:
    return float(cumulative[-1]) if len(cumulative) else 0.0


def _nothing() -> tuple[Tensor, Tensor]:
    empty = torch.empty(0)
    return empty.long(), empty
