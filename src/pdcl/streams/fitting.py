"""A transform for inputs of unknown scale, from the first task alone: later tasks and test data are not looked at."""

from __future__ import annotations

import torch
from torch import Tensor

from pdcl.streams.data import Data, TensorData
from pdcl.streams.transform import Transform

ORDER_ONE = 10.0
SAME_SCALE = 0.1
SMALLEST_SHARE = 0.1


def fitted(data: Data) -> Transform:
    """Standardise floats that are not of order one (some |x| > 10); everything else is left as it is.

    Features of a vector that have one scale in common, as pixels have, share one mean and deviation: pixels that hardly
    change in the first task would be blown up in a later one. Features of different scales, as columns of a table, and
    channels of images get their own.
    """
    x = _some(data)
    if not x.is_floating_point() or not bool(x.abs().max() > ORDER_ONE):
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


def _some(data: Data) -> Tensor:
    """Evenly spaced inputs: many of a tensor, few of a Dataset that is slow to read."""
    count = min(4096 if isinstance(data, TensorData) else 64, len(data))
    return data.fetch(torch.linspace(0, len(data) - 1, count).long())[0]
