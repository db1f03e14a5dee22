"""Stored samples taken out of a learner, with every trace of what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lifelong.lineage import Hashes
from pdcl.lifelong.owners import memory_hashes

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def forget_samples(learner: Learner, samples: Tensor, names: Tensor) -> int:
    """Take samples out of memory and lineage; how many memory held. samples, names: hashes under the lineage's key."""
    removed = _from_memory(learner, torch.isin(memory_hashes(learner), samples))
    lineage = learner.lineage.settle()
    lineage.owners = lineage.owners.only(lineage.owners.samples[~torch.isin(lineage.owners.samples, samples)])
    lineage.references = lineage.references.only(~torch.isin(lineage.references.hashes, samples))
    lineage.seen = Hashes(_without(lineage.samples, samples))
    lineage.named = Hashes(_without(lineage.groups, names))
    return removed


def _without(hashes: Tensor, some: Tensor) -> Tensor:
    return hashes[~torch.isin(hashes, some)]


def _from_memory(learner: Learner, mask: Tensor) -> int:
    store = learner.store
    if store is None or not mask.any():
        return 0
    if "role" in store.columns:
        store.keep((~mask).nonzero().flatten())
    elif mask.all():
        raise UsageError(f"these are all samples in memory, and {type(learner).__name__} can't go on without any")
    else:
        _overwrite(learner, mask)
    return int(mask.sum())


def _overwrite(learner: Learner, mask: Tensor) -> None:
    """Put copies of other samples over them: places of rings and reservoirs can't be empty.

    A copy is of the same task where there is one.
    """
    store = learner.store
    assert store is not None
    free, tasks = (~mask).nonzero().flatten(), store["task"].cpu()
    for slot in mask.nonzero().flatten().tolist():
        same = free[tasks[free] == tasks[slot]]
        source = (same if len(same) else free)[slot % len(same if len(same) else free)].view(1)
        columns = {name.partition(".")[0] for name in store.columns}
        store.write(torch.tensor([slot]), **{name: store.read(name, source) for name in columns})
