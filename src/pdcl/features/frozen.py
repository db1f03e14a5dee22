"""Any module as a feature map: its `features`, or what it gives. It must stay as it is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pdcl.errors import UsageError
from pdcl.features.feature_map import FeatureMap
from pdcl.networks import features_of
from pdcl.trees import Tree, call, logits_of


class Frozen(FeatureMap):
    """module: gives n × d numbers, or has a method `features` that does."""

    piece = 64

    def __init__(self, module: nn.Module, example: Tree) -> None:
        module.eval()
        with torch.no_grad():
            width = _features(module, example).shape[1]
        super().__init__(type(module).__name__, width)
        self.module = module
        self.eval()

    def _apply(self, fn: Any, recurse: bool = True) -> Frozen:
        """A module in another precision would give other features: only where they end up changes."""
        before = {name: each.dtype for name, each in self.module.state_dict().items()}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, each in (*self.module.named_parameters(), *self.module.named_buffers()):
            each.data = each.data.to(before.get(name, each.dtype))
        return self

    def compute(self, x: Tree) -> Tensor:
        found = _features(self.module, x)
        if found.shape[1] != self.width:
            raise UsageError(
                f"the module of features gave {self.width} numbers a sample at first and gives {found.shape[1]} now: "
                "all statistics are void; hand in the module as it was then, or begin a new learner"
            )
        return found.to(self.centre.dtype)


def _features(module: nn.Module, x: Tree) -> Tensor:
    return logits_of(call(features_of(module) or module, x)).flatten(1).float()
