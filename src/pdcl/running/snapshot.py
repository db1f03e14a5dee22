"""What a run leaves behind besides its numbers: what memory held at the end."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from pdcl.learning.batches import EVALUATION_BATCH
from pdcl.lifelong.learner import Learner
from pdcl.networks import eval_mode, features_of
from pdcl.storage.disk import reported, write_whole
from pdcl.storage.scratch import scratch_rows
from pdcl.storage.serialize import tensor_content
from pdcl.storage.tensor_file import LARGE
from pdcl.trees import Tree, length, split, to

SNAPSHOT = "memory.safetensors"
COLUMNS = ("x", "y", "task", "id", "dual")


def write_snapshot(learner: Learner, path: Path) -> None:
    """`memory.safetensors` in the run's directory; a method without memory has none."""
    if learner.store is not None and len(learner.store):
        with reported(path / SNAPSHOT):
            write_whole(path / SNAPSHOT, tensor_content(snapshot(learner)))


def snapshot(learner: Learner) -> dict[str, Tensor]:
    """x, y, task, id, dual (0 where a method has none) and what the last layer sees, one row per stored sample."""
    store = learner.store
    assert store is not None
    held: dict[str, Tensor] = {}
    for name, column in store.columns.items():
        if name.partition(".")[0] in COLUMNS:
            held |= column.state(name, len(store))
    held.setdefault("dual", torch.zeros(len(store)))
    if features_of(learner.model) is not None:
        held["features"] = _features(learner, store["x"])
    return held


@torch.no_grad()
def _features(learner: Learner, x: Tree) -> Tensor:
    """Of a linear network they are as large as the inputs, so many are put on disk."""
    count, at = length(x), 0
    with eval_mode(learner.model):
        for part in split(x, EVALUATION_BATCH):
            found = learner.penultimate(to(part, learner.place)).float()
            if not at:
                features = scratch_rows(count, tuple(found.shape[1:]), found.dtype, LARGE)
            features[at : at + len(found)] = found
            at += len(found)
    return features
