"""Fixed features and a last layer that is solved for, as a network: it predicts, widens and is exported as others."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pdcl.features.feature_map import FeatureMap
from pdcl.trees import Tree


class SolvedNetwork(nn.Module):
    """x ↦ head(φ(x))."""

    def __init__(self, phi: FeatureMap, outputs: int) -> None:
        super().__init__()
        self.phi = phi
        self.head = nn.Linear(phi.width, outputs)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def features(self, x: Tree) -> Tensor:
        found: Tensor = self.phi(x)
        return found

    def forward(self, x: Tree) -> Tensor:
        found: Tensor = self.head(self.phi(x))
        return found

    @torch.no_grad()
    def take(self, W: Tensor) -> None:
        """W: (width + 1) × outputs, the constant's row last."""
        self.head.weight.copy_(W[:-1].T)
        self.head.bias.copy_(W[-1])
