"""What every feature map is: a module without parameters, fitted once, that gives n × width numbers of order one.

    φ(x) = (compute(x) − centre) / spread          centre and spread of each feature on the samples it was fitted to

Statistics of φ can then be kept in float32: no feature is far from zero, none is much larger than the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Generator, Tensor, nn

from pdcl.errors import UsageError
from pdcl.trees import Tree, joined, split

# A feature that hardly moved on the first task must not be blown up when it moves later.
LEAST_SPREAD = 0.05


class FeatureMap(ABC, nn.Module):
    """width: numbers per sample. name: as a user writes it, with its size. piece: samples computed at once."""

    centre: Tensor
    spread: Tensor
    fitted: Tensor
    piece = 256

    def __init__(self, name: str, width: int) -> None:
        super().__init__()
        self.name, self.width = name, width
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.register_buffer("fitted", torch.zeros((), dtype=torch.bool))

    @torch.no_grad()
    def fit(self, x: Tree, generator: Generator) -> None:
        """Fit to inputs without labels. Once: a second time would void all statistics."""
        if bool(self.fitted):
            raise UsageError(f"features {self.name} are fitted already; statistics of others would be worth nothing")
        self.prepare(x, generator)
        found = self.raw(x)
        if not bool(found.isfinite().all()):
            raise UsageError(f"features {self.name} give numbers that are not finite; look for NaN or infinite inputs")
        self.centre.copy_(found.mean(0))
        spread = found.std(0, correction=0)
        typical = float(spread.median()) or float(spread.max()) or 1.0
        self.spread.copy_(self.spreads(found, spread.clamp(min=LEAST_SPREAD * typical)))
        self.fitted.fill_(True)

    def prepare(self, x: Tree, generator: Generator) -> None:
        """Choose what `compute` needs, from inputs without labels."""

    def spreads(self, found: Tensor, usual: Tensor) -> Tensor:
        """What each feature is divided by."""
        return usual

    @abstractmethod
    def compute(self, x: Any) -> Tensor:
        """Features of a few inputs before they are centred, n × width."""

    def raw(self, x: Tree) -> Tensor:
        """The same of any number; in small pieces, which stay in the processor's cache."""
        return joined([self.compute(part) for part in split(x, self.piece)])

    @torch.no_grad()
    def forward(self, x: Tree) -> Tensor:
        """φ, n × width, in the precision of its buffers."""
        return self.raw(x).sub_(self.centre).div_(self.spread)

    def train(self, mode: bool = True) -> FeatureMap:
        """It never trains: dropout and batch statistics of a given module stay off."""
        super().train(False)
        return self
