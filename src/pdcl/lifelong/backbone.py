"""A frozen backbone in front of a learner: memory then holds features instead of inputs, and it must not change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from pdcl.errors import UsageError
from pdcl.lifelong.inputs import fitting
from pdcl.streams.data import Data, TensorData, everything
from pdcl.trees import Tree, call, logits_of, split, to

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

CHUNK = 256


def fingerprint(backbone: nn.Module) -> str:
    """sha256 of all parameters and buffers, by name."""
    return tensors_hash(backbone.state_dict())


def tensors_hash(tensors: Mapping[str, Tensor]) -> str:
    """sha256 of names, shapes and values."""
    digest = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def unchanged(learner: Learner) -> Callable[[Tree], Tree]:
    """The map from raw inputs to the learner's: the identity, or the backbone, checked to be unchanged."""
    if learner.backbone is None:
        return lambda raw: raw
    now = fingerprint(learner.backbone)
    if learner.backbone_hash is None:
        learner.backbone_hash = now
    if now != learner.backbone_hash:
        raise UsageError(
            "the backbone has changed since the first task, so the stored features are no longer its own; "
            "hand in the backbone that was used then"
        )
    return lambda raw: _through(learner, raw)


@torch.no_grad()
def _through(learner: Learner, raw: Tree) -> Tensor:
    assert learner.backbone is not None
    learner.backbone.eval()
    device = next((p.device for p in learner.backbone.parameters()), torch.device("cpu"))
    backbone, reading = learner.backbone, learner.reading

    def features() -> Tensor:
        read = [reading(part) if isinstance(part, Tensor) else part for part in split(raw, CHUNK)]
        return torch.cat([logits_of(call(backbone, to(part, device))).float().cpu() for part in read])

    return fitting("backbone", raw, features)


def features_of(learner: Learner, data: Data) -> Data:
    """The data as the learner sees it."""
    if learner.backbone is None:
        return data
    through = unchanged(learner)
    pieces = [through(data.fetch(index)[0]) for index in everything(data).split(CHUNK)]
    return TensorData(torch.cat(pieces), data.targets, groups=data.groups, columns=data.columns)
