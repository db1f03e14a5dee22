"""ResNet-18 for small images: a 3×3 stem without pooling, at any width."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from pdcl.networks.cnn import by_pixel, image_shape
from pdcl.networks.network import Network

# With two to seven channels side by side in storage a 1×1 convolution that skips pixels writes outside of its memory
# when it goes backwards (torch 2.13, processors with AVX2 alone). There pixels are skipped before it: the same result.
NARROW = 8


class Block(nn.Module):
    """relu(shortcut(x) + BN(conv(relu(BN(conv(x)))))); the shortcut is a 1×1 convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        self.skip = stride if inputs < NARROW else 1
        if stride != 1 or inputs != outputs:
            projection = nn.Conv2d(inputs, outputs, 1, stride // self.skip, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.norm1(self.conv1(x)))
        seen = x if self.skip == 1 else x[:, :, :: self.skip, :: self.skip]
        return F.relu(self.norm2(self.conv2(inner)) + self.shortcut(seen))


class ResNet18(Network):
    """He et al. 2016, four stages of two blocks, widths w, 2w, 4w, 8w: w = 64 in the paper, 20 for a CPU."""

    def __init__(self, outputs: int, channels: int = 3, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        stages = [
            nn.Sequential(Block(a, b, 1 if stage == 0 else 2), Block(b, b, 1))
            for stage, (a, b) in enumerate(pairwise(widths))
        ]
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(8 * width, outputs)

    def features(self, x: Tensor) -> Tensor:
        images = x[:, None] if x.dim() == 3 else x
        maps: Tensor = self.stages(self.stem(by_pixel(images)))
        return maps.mean((2, 3))


def build_resnet18(shape: Sequence[int], outputs: int, width: int = 64) -> ResNet18:
    """A ResNet-18 for images of this shape."""
    return ResNet18(outputs, image_shape(shape)[0], width)
