"""How replay estimates Σ_c μ_c mean_c ℓ, the weighted losses of sets of stored samples, from m of them.

Every estimator is unbiased: E[Σ_j weights_j ℓ(slots_j)] = Σ_c μ_c (1/n_c) Σ_{i∈c} ℓ_i, for any m, also where sets
overlap. Sets are past tasks with μ = b + λ_k, samples with μ = λ_i / n_k, or segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Generator, Tensor

from pdcl.duality.replay import cumulate, draw_by_dual, draw_samples_by_dual, draw_stratified
from pdcl.duality.rules import register_rule


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

    @cached_property
    def slots(self) -> Tensor:
        """Every slot that is in a set, once."""
        found: Tensor = self.members.unique()
        return found

    @cached_property
    def slot_masses(self) -> Tensor:
        """Σ_{c∋i} μ_c / n_c, by slot."""
        each = torch.repeat_interleave(self.masses / self.counts.clamp(min=1), self.counts)
        size = int(self.members.max()) + 1 if len(self.members) else 0
        return torch.zeros(size, dtype=torch.float64).index_add_(0, self.members, each)


class Estimator(Protocol):
    """Slots to replay, with repeats, and the weight of each."""

    def draw(self, pool: Pool, m: int, generator: Generator) -> tuple[Tensor, Tensor]: ...


@register_rule("estimator", "dual")
@dataclass(frozen=True)
class ByDual:
    """Set c with probability μ_c / Σμ, then one of its samples: every weight is Σμ / m."""

    def draw(self, pool: Pool, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
        if pool.singles:
            places, weights = draw_samples_by_dual(pool.cumulative, m, generator)
        else:
            places, weights = draw_by_dual(pool.cumulative, pool.offsets, pool.counts, m, generator)
        return pool.members.index_select(0, places), weights


@register_rule("estimator", "uniform")
@dataclass(frozen=True)
class Uniformly:
    """Any of the N samples alike: weight N / m · Σ_{c∋i} μ_c / n_c."""

    def draw(self, pool: Pool, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
        stored = len(pool.slots)
        u = torch.rand(m, dtype=torch.float64, generator=generator, device=generator.device)
        slots = pool.slots.index_select(0, (u * stored).long())
        return slots, (stored * pool.slot_masses[slots] / m).to(torch.get_default_dtype())


@register_rule("estimator", "stratified")
@dataclass(frozen=True)
class Stratified:
    """The m draws spread evenly over the sets with μ_c > 0; a sample of a set that is drawn n times weighs μ_c / n."""

    def draw(self, pool: Pool, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
        places, weights = draw_stratified(pool.masses, pool.offsets, pool.counts, m, generator)
        return pool.members.index_select(0, places), weights


@register_rule("estimator", "whole")
@dataclass(frozen=True)
class Whole:
    """Every sample of every set, with weight μ_c / n_c: no estimate but the sum itself, whatever m says."""

    def draw(self, pool: Pool, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
        return pool.members, torch.repeat_interleave(pool.masses / pool.counts.clamp(min=1), pool.counts)
