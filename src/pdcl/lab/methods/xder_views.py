"""Strong random views of images for contrastive learning, a whole batch at a time."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor
from torch.nn.functional import affine_grid, grid_sample

# From RGB to luminance and two colour axes, in whose plane hue is an angle (YIQ).
YIQ = ((0.299, 0.587, 0.114), (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))
SMALLEST_AREA = 0.2
JITTER, HUE = 0.4, 0.1
JITTERED, GREYED = 0.8, 0.2


def strong_views(images: Tensor, flip: bool, generator: Generator) -> Tensor:
    """Images (n, C, H, W) in [0, 1], each cut, mirrored (if `flip`) and recoloured at random.

    A window of 20 to 100 % of the area is blown up to the full size; with probability 0.8 brightness, contrast,
    saturation and hue change; with 0.2 the image turns grey. What needs three channels is left out otherwise.
    """
    images = resized_crops(images, flip, generator)
    jittered = recoloured(images, generator)
    some = _uniform(len(images), 0, 1, generator).to(images)[:, None, None, None] < JITTERED
    return torch.where(some, jittered, images).clamp(0, 1)


def resized_crops(images: Tensor, flip: bool, generator: Generator) -> Tensor:
    """A random window of each image, of random area and an aspect ratio from 3/4 to 4/3, at full size."""
    n = len(images)
    side = _uniform(n, SMALLEST_AREA, 1, generator).sqrt()
    stretch = _uniform(n, math.log(3 / 4), math.log(4 / 3), generator).mul(0.5).exp()
    width, height = (side * stretch).clamp(max=1), (side / stretch).clamp(max=1)
    across, down = (_uniform(n, -1, 1, generator) * (1 - size) for size in (width, height))
    mirrored = _uniform(n, 0, 1, generator) < 0.5
    width = torch.where(mirrored & flip, -width, width)
    zero = torch.zeros(n)
    rows = [torch.stack([width, zero, across], 1), torch.stack([zero, height, down], 1)]
    grid = affine_grid(torch.stack(rows, 1).to(images), list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def recoloured(images: Tensor, generator: Generator) -> Tensor:
    """Brightness and contrast, and for three channels saturation, hue and sometimes no colour at all."""
    n = len(images)
    brightness, contrast, saturation = (
        _uniform(n, 1 - JITTER, 1 + JITTER, generator)[:, None, None, None].to(images) for _ in range(3)
    )
    images = images * brightness
    mean = images.mean((1, 2, 3), keepdim=True)
    images = mean + contrast * (images - mean)
    if images.shape[1] != 3:
        return images
    grey = _uniform(n, 0, 1, generator).to(images)[:, None, None, None] < GREYED
    angle = 2 * math.pi * _uniform(n, -HUE, HUE, generator).to(images)
    return _turned(images, angle, torch.where(grey, 0, saturation).flatten())


def _turned(images: Tensor, angle: Tensor, saturation: Tensor) -> Tensor:
    """Colour turned by an angle and scaled in the plane of constant luminance."""
    yiq = torch.tensor(YIQ).to(images)
    turn = torch.zeros(len(images), 3, 3).to(images)
    turn[:, 0, 0] = 1
    turn[:, 1, 1] = turn[:, 2, 2] = saturation * angle.cos()
    turn[:, 2, 1] = saturation * angle.sin()
    turn[:, 1, 2] = -turn[:, 2, 1]
    return torch.einsum("nij,njhw->nihw", torch.linalg.inv(yiq) @ turn @ yiq, images)


def _uniform(n: int, low: float, high: float, generator: Generator) -> Tensor:
    return low + (high - low) * torch.rand(n, generator=generator)
