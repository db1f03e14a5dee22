"""What our networks have in common: features, and one linear head over all classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Network(nn.Module):
    """logits = head(features(x)). Features (n, d) are what herding, nearest means and pictures of memory use."""

    head: nn.Linear

    def features(self, x: Tensor) -> Tensor:
        """The input of the head, (n, d)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(x))
        return logits


def flat(x: Tensor) -> Tensor:
    """(n, …) as (n, d) floats; integer columns, as a table may have, count as numbers."""
    rows = x.flatten(1) if x.dim() > 1 else x[:, None]
    return rows if rows.is_floating_point() else rows.float()


def by_pixel(images: Tensor) -> Tensor:
    """Images (n, channels, height, width) with the channels of a pixel side by side in storage.

    Convolution, normalisation and pooling keep this order, and a CPU takes about half the time for them.
    A copy, since `contiguous` would leave images of one channel as they are: both orders are the same there.
    """
    return images.permute(0, 2, 3, 1).clone(memory_format=torch.contiguous_format).permute(0, 3, 1, 2)
