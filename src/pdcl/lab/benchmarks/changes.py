"""Inputs changed task by task: another order of the pixels, another angle, another loudness. Task 0 stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import cos, prod, radians, sin

import numpy as np
import torch
from torch import Tensor

from pdcl.lab.benchmarks.changed_data import Change, ChangedData
from pdcl.streams.checks import BadData
from pdcl.streams.task import Spec, Task
from pdcl.streams.transform import Transform

PERMUTED = 1


@dataclass(frozen=True)
class Reordered:
    """x ↦ x[…, order] over the positions of a sample; channels (the first of several dimensions) stay what they are.

    `order` is a permutation of (positions,).
    """

    order: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        flat = x.flatten(2) if x.dim() > 2 else x
        return flat.index_select(-1, self.order).view(x.shape)


@dataclass(frozen=True)
class Rotated:
    """Images (n, C, H, W) turned counter-clockwise by `degrees` about their centre.

    Output pixel p reads the input pixel nearest to R(p − c) + c, and 0 where that lies outside, so that bytes stay
    bytes. Multiples of 90° are exact for square images.

    >>> Rotated(90.0)(torch.tensor([[[[1, 2], [3, 4]]]])).tolist()
    [[[[2, 4], [1, 3]]]]
    """

    degrees: float

    def __call__(self, x: Tensor) -> Tensor:
        source, inside = self._source(*x.shape[-2:])
        turned = x.flatten(2).index_select(-1, source) * inside.to(x.dtype)
        return turned.view(x.shape)

    def _source(self, height: int, width: int) -> tuple[Tensor, Tensor]:
        """For each output pixel the input pixel it reads, and whether there is one."""
        c, s = cos(radians(self.degrees)), sin(radians(self.degrees))
        down = torch.arange(height, dtype=torch.float64)[:, None] - (height - 1) / 2
        right = torch.arange(width, dtype=torch.float64)[None, :] - (width - 1) / 2
        # A touch off the exact halves, so that rounding doesn't depend on the last bit of a cosine.
        row = (c * down + s * right + (height - 1) / 2 + 1e-6).round().long()
        column = (c * right - s * down + (width - 1) / 2 + 1e-6).round().long()
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        source = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
        return source.flatten(), inside.flatten()


@dataclass(frozen=True)
class Amplified:
    """x ↦ factor · x; whole numbers are rounded and cut off at the ends of their type.

    >>> Amplified(2.0)(torch.tensor([[100, 200]], dtype=torch.uint8)).tolist()
    [[200, 255]]
    """

    factor: float

    def __call__(self, x: Tensor) -> Tensor:
        if x.is_floating_point():
            return x * self.factor
        range_ = torch.iinfo(x.dtype)
        return (x.double() * self.factor).round().clamp(range_.min, range_.max).to(x.dtype)


@dataclass(frozen=True)
class Chain:
    """Changes one after another."""

    links: tuple[Change, ...]

    def __call__(self, x: Tensor) -> Tensor:
        for link in self.links:
            x = link(x)
        return x


def permutation(shape: tuple[int, ...], task: int, seed: int) -> Tensor:
    """The order in which task `task` reads the positions of a sample of this shape; task 0 reads them as they are."""
    positions = shape[0] if len(shape) == 1 else prod(shape[1:])
    if task == 0:
        return torch.arange(positions)
    return torch.from_numpy(np.random.default_rng((seed, PERMUTED, task)).permutation(positions))


def permuted(tasks: Sequence[Task], spec: Spec, seed: int) -> tuple[list[Task], Spec]:
    """Every task reads the positions of its inputs in an order of its own, the same in training and test data."""
    before, transform = _before_permuting(spec)
    orders = [Reordered(permutation(spec.shape, task.index, seed)) for task in tasks]
    changed = [_changed(task, (*before, order)) for task, order in zip(tasks, orders, strict=True)]
    return changed, replace(spec, transform=transform, dtype=torch.float32 if before else spec.dtype)


def _before_permuting(spec: Spec) -> tuple[tuple[Change, ...], Transform]:
    """What must happen before positions move, and the transform that is left for afterwards.

    A feature keeps its own mean and deviation, so vectors with one for each are standardised first; random crops and
    flips of images have no meaning afterwards.
    """
    if len(spec.shape) == 1 and len(spec.transform.mean) > 1:
        return (spec.transform.normalised,), Transform()
    return (), replace(spec.transform, crop_padding=0, flip=False)


def rotated(tasks: Sequence[Task], spec: Spec, degrees: float) -> list[Task]:
    """Task k is turned by k · `degrees`."""
    if len(spec.shape) != 3:
        raise BadData(f"rotated needs images (channels, height, width); the inputs have shape {spec.shape}")
    return [_changed(task, (Rotated(task.index * degrees),)) if task.index else task for task in tasks]


def amplified(tasks: Sequence[Task], gain: float) -> list[Task]:
    """Task k is multiplied by gain to the power of k."""
    return [_changed(task, (Amplified(gain**task.index),)) if task.index else task for task in tasks]


def _changed(task: Task, links: tuple[Change, ...]) -> Task:
    change = links[0] if len(links) == 1 else Chain(links)
    return replace(task, data=ChangedData(task.data, change), test=ChangedData(task.test, change))
