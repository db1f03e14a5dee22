"""From raw samples to what a network sees: scaling, normalisation, augmentation, a whole batch at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pdcl.streams.data import Data, TensorData
from pdcl.trees import Tree

ORDER_ONE = 10.0
SAME_SCALE = 0.1
SMALLEST_SHARE = 0.1
SCALES = {torch.uint8: 1 / 255, torch.int16: 1 / 32768}


@dataclass(frozen=True)
class Transform:
    """x ↦ (scale · x − mean) / std per channel, after an optional random crop and flip of each image.

    Without `scale`, uint8 is scaled by 1/255 and int16 by 1/32768; other types are taken as they are. Augmentation
    happens only where a generator is given, so evaluation is deterministic. `crop_padding` black pixels are put
    around an image before a window of its old size is cut out.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    crop_padding: int = 0
    flip: bool = False
    scale: float | None = None

    @property
    def augments(self) -> bool:
        return self.crop_padding > 0 or self.flip

    def __call__(self, raw: Tensor, generator: torch.Generator | None = None) -> Tensor:
        if generator is not None and self.augments:
            raw = moved(raw, *self.draw(len(raw), generator), padding=self.crop_padding)
        return self.normalised(raw)

    def scaled(self, raw: Tensor) -> Tensor:
        """Raw samples as floats of order one."""
        return replace(self, mean=(), std=()).normalised(raw)

    def draw(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Offsets down and right in 0 … 2 · padding, and whether to flip, for each of `count` images."""
        device = generator.device
        size = (2, count)
        offsets = torch.randint(0, 2 * self.crop_padding + 1, size, generator=generator, device=device)
        flips = torch.randint(0, 1 + self.flip, (count,), generator=generator, device=device).bool()
        return offsets[0], offsets[1], flips

    def normalised(self, raw: Tensor) -> Tensor:
        """(scale · raw − mean) / std, channels being the first dimension of a sample."""
        factor = SCALES.get(raw.dtype) if self.scale is None else self.scale
        x = raw if factor is None else raw * factor if raw.is_floating_point() else raw.float().mul_(factor)
        if self.mean:
            x = x - self._per_channel(self.mean, x)
        return x / self._per_channel(self.std, x) if self.std else x

    @staticmethod
    def _per_channel(values: tuple[float, ...], like: Tensor) -> Tensor:
        return torch.tensor(values, dtype=like.dtype, device=like.device).view(-1, *[1] * (like.dim() - 2))


def moved(images: Tensor, down: Tensor, right: Tensor, flips: Tensor, padding: int) -> Tensor:
    """Each image (n, C, H, W), padded with zeros, cut at its own offsets and mirrored where `flips` says so.

    One gather for the whole batch: output pixel (i, j) is read from (down + i, right + j), or
    from (down + i, right + W−1−j).
    """
    count, channels, height, width = images.shape
    device = images.device
    wide = torch.nn.functional.pad(images, [padding] * 4)
    across = torch.arange(width, device=device)
    columns = torch.where(flips.to(device)[:, None], across.flip(0), across) + right.to(device)[:, None]
    rows = torch.arange(height, device=device) + down.to(device)[:, None]
    pixels = (rows[:, :, None] * wide.shape[-1] + columns[:, None, :]).view(count, 1, -1)
    return wide.flatten(2).gather(2, pixels.expand(-1, channels, -1)).view(images.shape)


def fitted(data: Data) -> Transform:
    """Standardise floats that are not of order one (some |x| > 10); everything else is left as it is.

    Features of a vector that have one scale in common, as pixels have, share one mean and deviation: pixels that hardly
    change in the first task would be blown up in a later one. Features of different scales, as columns of a table, and
    channels of images get their own. Inputs that aren't one tensor are left as they are.
    """
    x = _some(data)
    if not isinstance(x, Tensor) or not x.is_floating_point() or not bool(x.abs().max() > ORDER_ONE):
        return Transform()
    reach = x.abs().flatten(2).amax((0, 2)) if x.dim() > 2 else x.abs().amax(0)
    if x.dim() == 2 and bool(reach.median() >= SAME_SCALE * reach.max()):
        return Transform((float(x.mean()),), (float(x.std()) or 1.0,))
    mean = x.mean(_all_but_channels(x), keepdim=True)
    std = x.std(_all_but_channels(x))
    # A rare feature deviates little on average and much when it appears; its reach bounds what comes out.
    farthest = (x - mean).abs().amax(_all_but_channels(x))
    std = torch.where(farthest > 0, torch.maximum(std, SMALLEST_SHARE * farthest), torch.ones_like(std))
    return Transform(tuple(mean.flatten().tolist()), tuple(std.tolist()))


def _all_but_channels(x: Tensor) -> list[int]:
    return [axis for axis in range(x.dim()) if axis != 1]


def _some(data: Data) -> Tree:
    """Evenly spaced inputs: many of a tensor, few of a Dataset that is slow to read."""
    count = min(4096 if isinstance(data, TensorData) else 64, len(data))
    return data.fetch(torch.linspace(0, len(data) - 1, count).long())[0]
