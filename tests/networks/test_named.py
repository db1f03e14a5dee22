"""A network as one word of an option."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pdcl.errors import UsageError
from pdcl.networks.named import build_named


def widths(text: str, shape: tuple[int, ...]) -> list[int]:
    layers = build_named(text, shape, 10).modules()
    return [layer.weight.shape[0] for layer in layers if isinstance(layer, nn.Linear | nn.Conv2d)]


def test_sizes_follow_the_colon() -> None:
    assert widths("mlp:100-100", (1, 28, 28)) == [100, 100, 10]
    assert widths("mlp", (7,)) == [256, 256, 10]
    assert widths("cnn:4", (1, 28, 28)) == [4, 8, 8, 128, 10]
    assert widths("resnet18:2", (3, 32, 32))[0] == 2


def test_auto_looks_at_the_shape() -> None:
    assert widths("auto", (7,)) == [256, 256, 10]
    assert build_named("auto", (1, 8000), 3)(torch.zeros(2, 1, 8000)).shape == (2, 3)


@pytest.mark.parametrize("text", ["mlp:", "mlp:a", "mlp:0", "cnn:4-4", "mlp:-5", "nothing:3", "linear:3"])
def test_what_can_not_be_built_is_refused_or_plain(text: str) -> None:
    if text == "mlp:":
        assert widths(text, (7,)) == [256, 256, 10]
        return
    with pytest.raises(UsageError):
        build_named(text, (1, 28, 28), 2)
