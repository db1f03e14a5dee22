"""Which stored samples to replay, and with what weights: unbiased estimates of Σ_k λ_k L_k from m samples.

Memory is a row of partitions: task k holds slots offsets[k], …, offsets[k] + counts[k] − 1. Every draw returns
(slots, weights) with `E[Σ_j weights_j ℓ(slots_j)] = Σ_k λ_k mean_{B_k} ℓ`, for any m and any number of tasks, at a cost
per step that doesn't grow with memory. Empty partitions contribute nothing.
"""

import torch
from torch import Generator, Tensor


def cumulate(masses: Tensor, counts: Tensor | None = None) -> Tensor:
    """Running sum in float64, so that small duals behind large ones aren't lost; what the draws by dual take.

    counts: samples stored of each; one of which nothing is stored has no mass.
    """
    masses = masses.detach().double()
    return (masses if counts is None else torch.where(counts > 0, masses, 0)).cumsum(0)


def invert(cumulative: Tensor, u: Tensor) -> Tensor:
    """Inverse CDF: the item whose stretch of the running sum holds u · total. Never an item without mass.

    `right=True` skips massless items at u = 0 and between others; the clamp does it should u · total round up to total.
    """
    total = cumulative[-1]
    last = torch.searchsorted(cumulative, total)
    return torch.searchsorted(cumulative, u * total, right=True).clamp(max=last)


def draw_by_dual(
    cumulative: Tensor, offsets: Tensor, counts: Tensor, m: int, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Task k with probability λ_k / ‖λ‖₁, then one of its samples uniformly: every weight is ‖λ‖₁ / m.

    cumulative: `cumulate(duals, counts)`. All duals zero: nothing to replay, empty tensors.
    """
    total = _total(cumulative)
    if not total or not m:
        return _nothing(generator)
    u, v = _uniform((2, m), generator)
    tasks = invert(cumulative, u)
    return _within(tasks, offsets, counts, v), torch.full((m,), total / m, device=generator.device)


def draw_stratified(
    duals: Tensor, offsets: Tensor, counts: Tensor, m: int, generator: Generator
) -> tuple[Tensor, Tensor]:
    """m draws spread evenly over the a tasks with λ_k > 0: each gets ⌊m/a⌋ or ⌈m/a⌉, by systematic sampling.

    With m ≥ a every such task is there, c_k times, and its samples weigh λ_k / c_k. With m < a each task is there with
    probability m/a and weighs λ_k a / m.
    """
    active = torch.nonzero((duals > 0) & (counts > 0)).flatten()
    if not len(active):
        return _nothing(generator)
    grid = torch.arange(m, device=active.device) + _uniform((1,), generator)
    rank = (grid * len(active) / max(m, 1)).long().clamp(max=len(active) - 1)
    tasks = active[rank]
    times = torch.bincount(rank)[rank] if m >= len(active) else torch.full_like(rank, m) / len(active)
    return _within(tasks, offsets, counts, _uniform((m,), generator)), _weights(duals[tasks].double() / times)


def draw_samples_by_dual(cumulative: Tensor, m: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Sample level: slot i with p ∝ λ_i / n_k, every weight Σ_i (λ_i / n_k) / m.

    cumulative: `cumulate(duals / counts[tasks])`, over the slots.
    """
    total = _total(cumulative)
    if not total or not m:
        return _nothing(generator)
    return invert(cumulative, _uniform((m,), generator)), torch.full((m,), total / m, device=generator.device)


def _within(tasks: Tensor, offsets: Tensor, counts: Tensor, v: Tensor) -> Tensor:
    return offsets.index_select(0, tasks) + (v * counts.index_select(0, tasks)).long()


def _uniform(shape: tuple[int, ...], generator: Generator) -> Tensor:
    return torch.rand(shape, dtype=torch.float64, generator=generator, device=generator.device)


def _weights(weights: Tensor) -> Tensor:
    return weights.to(torch.get_default_dtype())


def _total(cumulative: Tensor) -> float:
    return float(cumulative[-1]) if len(cumulative) else 0.0


def _nothing(generator: Generator) -> tuple[Tensor, Tensor]:
    empty = torch.empty(0, device=generator.device)
    return empty.long(), empty
