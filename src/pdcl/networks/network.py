"""What our networks have in common: features, and one linear head over all classes."""

from __future__ import annotations

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
