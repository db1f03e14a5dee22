"""Images by their patches: each patch normalised in contrast, whitened, compared with K filters, pooled on a grid.

    z = Aᵀ(u − ū)/√(var u + c) − b,     φ = pooled [max(0, z − t), max(0, −z − t)]

u: a patch of 6 × 6 pixels; A: filters (patches of the first task, whitened) times the whitening (ZCA); t = .25.
Subtracting a patch's mean is a linear map, so it is part of A, and z is one convolution.

Coates, Lee, Ng, "An Analysis of Single-Layer Networks in Unsupervised Feature Learning", AISTATS 2011.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import functional

from pdcl.features.feature_map import FeatureMap

SIDE, GRID = 6, 4
THRESHOLD, CONTRAST, WHITENING = 0.25, 0.01, 0.1
LOOKED_AT, PATCHES = 400, 20_000
LARGEST = 64


class Patches(FeatureMap):
    """shape: channels × height × width. filters: K. draws: filters from N(0, I) instead of samples of the first task,
    and no whitening, so that nothing of a sample is kept. Larger images are made smaller first."""

    filters: Tensor
    above: Tensor
    below: Tensor
    unit: Tensor
    pooling: Tensor
    piece = 50

    def __init__(self, shape: tuple[int, int, int], filters: int, stride: int, draws: bool = False) -> None:
        super().__init__(f"patches:{filters}", 2 * filters * GRID * GRID)
        channels, height, width = shape
        self.shrink, self.stride, self.draws = max(1, -(-max(height, width) // LARGEST)), stride, draws
        rows, columns = (((side // self.shrink) - SIDE) // stride + 1 for side in (height, width))
        self.register_buffer("filters", torch.zeros(filters, channels, SIDE, SIDE))
        self.register_buffer("above", torch.zeros(filters, 1))
        self.register_buffer("below", torch.zeros(filters, 1))
        self.register_buffer("unit", torch.ones(()))
        self.register_buffer("pooling", _pooling(rows, columns))

    def prepare(self, x: Any, generator: Generator) -> None:
        some = x[torch.randperm(len(x), generator=generator)[:LOOKED_AT].to(x.device)].to(self.unit.dtype)
        low, high = torch.quantile(_thinned(some), torch.tensor([0.01, 0.99]).to(some))
        # The contrast constant is meant for pixels in [0, 1].
        self.unit.copy_(1 / (high - low) if high > low else torch.ones(()))
        filters, offsets = self._random(generator) if self.draws else self._sampled(self._read(some), generator)
        self.filters.copy_(filters.reshape(self.filters.shape))
        self.above.copy_((offsets + THRESHOLD)[:, None])
        self.below.copy_((offsets - THRESHOLD)[:, None])

    def _random(self, generator: Generator) -> tuple[Tensor, Tensor]:
        drawn = torch.randn(len(self.filters), self.filters[0].numel(), generator=generator)
        drawn = drawn - drawn.mean(1, keepdim=True)
        return drawn / drawn.norm(dim=1, keepdim=True), torch.zeros(len(drawn))

    def _sampled(self, images: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """Aᵀ, K × pixels, and b = Aᵀ(mean patch): filters are whitened patches of length one."""
        patches = functional.unfold(images.cpu(), SIDE).transpose(1, 2).flatten(0, 1)
        patches = patches[torch.randperm(len(patches), generator=generator)[:PATCHES]]
        patches = patches - patches.mean(1, keepdim=True)
        patches = patches / (patches.var(1, keepdim=True) + CONTRAST).sqrt()
        mean = patches.mean(0)
        values, vectors = torch.linalg.eigh(torch.cov(patches.T))
        whitening = vectors @ torch.diag((values.clamp(min=0) + WHITENING).rsqrt()) @ vectors.T
        chosen = patches[torch.randint(len(patches), (len(self.filters),), generator=generator)]
        chosen = (chosen - mean) @ whitening
        found = functional.normalize(chosen, dim=1) @ whitening
        return found - found.mean(1, keepdim=True), found @ mean

    def _read(self, x: Tensor) -> Tensor:
        x = x.to(self.unit.dtype) * self.unit
        x = x[:, None] if x.dim() == 3 else x
        return functional.avg_pool2d(x, self.shrink) if self.shrink > 1 else x

    def compute(self, x: Any) -> Tensor:
        images = self._read(x)
        size = self.filters[0].numel()
        found = functional.conv2d(images, self.filters, stride=self.stride)
        moments = torch.stack([images.mean(1), images.square().mean(1)], 1)
        means = moments.new_full((2, 1, SIDE, SIDE), SIDE**-2)
        mean, square = functional.conv2d(moments, means, stride=self.stride, groups=2).unbind(1)
        variance = (square - mean.square()).clamp_(min=0) * (size / (size - 1))
        found = found.mul_((variance + CONTRAST).rsqrt_()[:, None]).flatten(2)
        # max(0, z − t) is max(z, t) − t: one pass less over the largest array.
        above = torch.maximum(found, self.above) @ self.pooling - self.above
        below = self.below - torch.minimum(found, self.below) @ self.pooling
        return torch.cat([above, below], 1).flatten(1)


def _pooling(rows: int, columns: int) -> Tensor:
    """Means over a grid of 4 × 4 parts of a map of rows × columns: a matrix, [rows · columns, 16]."""
    maps = torch.eye(rows * columns).reshape(-1, 1, rows, columns)
    return functional.adaptive_avg_pool2d(maps, GRID).flatten(1).contiguous()


def _thinned(values: Tensor) -> Tensor:
    """At most a million of them: quantiles take no more."""
    flat = values.flatten()
    return flat[:: max(1, len(flat) // 10**6)]
