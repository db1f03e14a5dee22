"""A small 2-D convolutional network with batch normalisation and max-pooling."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from pdcl.errors import UsageError
from pdcl.networks.network import Network

SMALLEST_SIDE = 8
LARGEST_MAP = 4


class CNN(Network):
    """Three times (3×3 convolution, BN, ReLU, max-pool 2), then one hidden layer.

    Maps that are still larger than 4×4 are averaged down to it, so any image of at least 8×8 pixels goes in. The place
    in the image is kept, not averaged away: left and right organs differ by little else.
    """

    def __init__(self, channels: int, size: tuple[int, int], outputs: int, width: int = 16, hidden: int = 128) -> None:
        super().__init__()
        widths = [channels, width, 2 * width, 2 * width]
        self.body = nn.Sequential(*(_block(a, b) for a, b in pairwise(widths)))
        sides = [min(side // 8, LARGEST_MAP) for side in size]
        self.pool = nn.AdaptiveAvgPool2d((sides[0], sides[1]))
        self.hidden = nn.Linear(widths[-1] * sides[0] * sides[1], hidden)
        self.head = nn.Linear(hidden, outputs)

    def features(self, x: Tensor) -> Tensor:
        images = x[:, None] if x.dim() == 3 else x
        maps: Tensor = self.pool(self.body(by_pixel(images)))
        return self.hidden(maps.flatten(1)).relu()  # type: ignore[no-any-return]


def _block(inputs: int, outputs: int) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


def image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """(channels, height, width) of an image shape; (height, width) is one channel."""
    full = (1, *shape) if len(shape) == 2 else tuple(shape)
    if len(full) != 3:
        raise UsageError(f"inputs of shape {tuple(shape)} are no images; a CNN wants (channels, height, width)")
    if full[2] in (1, 3, 4) and full[0] > 4:
        raise UsageError(f"images of shape {tuple(shape)} have their channels last; give x.permute(0, 3, 1, 2)")
    if min(full[1:]) < SMALLEST_SIDE:
        raise UsageError(f"images of shape {tuple(shape)} are too small for a CNN (at least 8×8); use network 'mlp'")
    return full[0], full[1], full[2]


def build_cnn(shape: Sequence[int], outputs: int, width: int = 16, hidden: int = 128) -> CNN:
    """A CNN for images of this shape."""
    channels, height, breadth = image_shape(shape)
    return CNN(channels, (height, breadth), outputs, width, hidden)


def by_pixel(images: Tensor) -> Tensor:
    """Images (n, channels, height, width) with the channels of a pixel side by side in storage.

    Convolution, normalisation and pooling keep this order, and a CPU takes about half the time for them.
    A copy, since `contiguous` would leave images of one channel as they are: both orders are the same there.
    """
    return images.permute(0, 2, 3, 1).clone(memory_format=torch.contiguous_format).permute(0, 3, 1, 2)
