"""What our networks have in common, features and one linear head over all classes; linear models and MLPs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

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


class MLP(Network):
    """inputs - hidden … - outputs with ReLU between; inputs of any shape are flattened.

    `hidden=(100, 100)` is the paper's network on MNIST; without hidden layers it is one affine map.
    """

    def __init__(self, inputs: int, outputs: int, hidden: Sequence[int] = (256, 256)) -> None:
        super().__init__()
        sizes = [inputs, *hidden]
        layers = [(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(sizes)]
        self.body = nn.Sequential(*(module for pair in layers for module in pair))
        self.head = nn.Linear(sizes[-1], outputs)

    def features(self, x: Tensor) -> Tensor:
        """(n, …) as (n, d) floats, through the hidden layers; integers, as in a table's columns, count as numbers."""
        rows = x.flatten(1) if x.dim() > 1 else x[:, None]
        features: Tensor = self.body(rows if rows.is_floating_point() else rows.float())
        return features


def build_mlp(shape: Sequence[int], outputs: int, hidden: Sequence[int] = (256, 256)) -> MLP:
    """An MLP for inputs of this shape."""
    return MLP(math.prod(shape), outputs, hidden)


def build_glorot_mlp(shape: Sequence[int], outputs: int, hidden: Sequence[int] = (256, 256)) -> MLP:
    """An MLP whose weights start as U(±√(6 / (in + out))) and biases at 0, after Glorot and Bengio.

    Two to three times as large as torch's own start, it learns more in a single pass at a small rate. It is what the
    published numbers on split MNIST were made with.
    """
    model = build_mlp(shape, outputs, hidden)
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    return model


def build_linear(shape: Sequence[int], outputs: int) -> MLP:
    """One affine map: with a convex loss, the problem whose exact solution is known."""
    return build_mlp(shape, outputs, hidden=())
