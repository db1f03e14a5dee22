"""Vectors as they are, and random ReLU features of them: φ(x) = max(0, x̃R + b), with x̃ the standardised input.

Random, fixed projections with a non-linearity: McDonnell et al., "RanPAC: Random Projections and Pre-trained Models for
Continual Learning", NeurIPS 2023.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor

from pdcl.features.feature_map import FeatureMap


class Raw(FeatureMap):
    """The inputs themselves, each column centred and divided by its spread.

    one_unit: all columns are in one unit, such as pixels, and are divided by one number.
    """

    def __init__(self, inputs: int, one_unit: bool) -> None:
        super().__init__("raw", inputs)
        self.one_unit = one_unit

    def compute(self, x: Any) -> Tensor:
        return x.flatten(1).to(self.centre.dtype)  # type: ignore[no-any-return]

    def spreads(self, found: Tensor, usual: Tensor) -> Tensor:
        return column_spreads(found, self.one_unit)


class RandomReLU(FeatureMap):
    """max(0, x̃R + b): R from N(0, 1/inputs), b from N(0, 1). one_unit: as in `Raw`."""

    at: Tensor
    directions: Tensor
    biases: Tensor
    piece = 1024

    def __init__(self, inputs: int, width: int, one_unit: bool) -> None:
        super().__init__(f"random:{width}", width)
        self.one_unit = one_unit
        self.register_buffer("at", torch.zeros(inputs))
        self.register_buffer("directions", torch.zeros(inputs, width))
        self.register_buffer("biases", torch.zeros(width))

    def prepare(self, x: Any, generator: Generator) -> None:
        """The standardisation of the inputs is put into R and b, so that one product is all there is to compute."""
        flat = x.flatten(1).to(self.centre.dtype)
        inputs, width = self.directions.shape
        drawn = torch.randn(inputs, width, generator=generator).to(flat) / inputs**0.5
        self.directions.copy_(drawn / column_spreads(flat, self.one_unit)[:, None])
        self.biases.copy_(torch.randn(width, generator=generator).to(flat))
        self.at.copy_(flat.mean(0))

    def compute(self, x: Any) -> Tensor:
        return torch.addmm(self.biases, x.flatten(1).to(self.at.dtype) - self.at, self.directions).relu_()


def column_spreads(x: Tensor, one_unit: bool) -> Tensor:
    """What each column is divided by: its standard deviation, but at least an eighth of its range.

    A rare category has a tiny deviation: divided by it, it would outweigh everything where it comes. A column that is
    constant so far is divided by its size.
    """
    if one_unit:
        return x.var(0, correction=0).mean().sqrt().clamp(min=1e-12).expand(x.shape[1])
    low, high = x.amin(0), x.amax(0)
    spread = torch.maximum(x.std(0, correction=0), (high - low) / 8)
    return torch.where(high > low, spread, low.abs().clamp(min=1.0)).clamp(min=1e-12)
