"""Where slacks s = L − ε are measured, and how noisy ones are smoothed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from pdcl.duality.rules import between, register_rule
from pdcl.errors import UsageError

ENOUGH = 16


class SlackRule(Protocol):
    """`from_batches`: slacks are made of what is replayed anyway, and nothing is measured besides."""

    from_batches: ClassVar[bool]
    smoothing: float

    def looks(self, counts: Tensor) -> Tensor:
        """How many samples of each set one measurement looks at; counts: [C] held of each."""
        ...


@register_rule("slack", "memory")
@dataclass(frozen=True)
class OnMemory:
    """All stored samples in eval mode, if at most `samples`; else a fresh stratified sample of about so many."""

    samples: int = 512
    smoothing: float = 1.0
    from_batches: ClassVar[bool] = False

    def __post_init__(self) -> None:
        between(0, 1, smoothing=self.smoothing)
        if self.samples < 1:
            raise UsageError(f"slack_samples={self.samples} must be at least 1")

    def looks(self, counts: Tensor) -> Tensor:
        stored = int(counts.sum())
        if stored <= self.samples:
            return counts
        wanted = (counts * self.samples / max(stored, 1)).round().long().clamp(min=1)
        return torch.minimum(wanted, counts)


@register_rule("slack", "ema")
@dataclass(frozen=True)
class Smoothed(OnMemory):
    """As memory, with an exponential mean over dual steps: s̄ ← s̄ + a (s − s̄), a = `smoothing`."""

    smoothing: float = 0.3


@register_rule("slack", "batch")
@dataclass(frozen=True)
class OnBatches:
    """The losses of what was replayed since the last dual step: no extra forward pass, and draws are uniform."""

    from_batches: ClassVar[bool] = True
    smoothing: ClassVar[float] = 1.0

    def looks(self, counts: Tensor) -> Tensor:
        return torch.zeros_like(counts)


def smoothing_weights(smoothing: float, looked_at: Tensor, counts: Tensor) -> Tensor:
    """How far each smoothed slack moves to the new one: less where a task shows too few samples to trust one look."""
    trust = (looked_at / ENOUGH).clamp(max=1).clamp(max=smoothing)
    trust[looked_at >= counts] = smoothing
    return trust
