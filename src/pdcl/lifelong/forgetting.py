"""Stored samples taken out of a learner.

What stays is a tombstone: the keyed hash by which the lineage knows a sample, or a group, that the weights were trained
on. Without it the gate would take forgotten training data for audit data. It isn't marked as forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdcl.errors import UsageError
from pdcl.lifelong.owners import memory_hashes

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def forget_samples(learner: Learner, samples: Tensor) -> int | None:
    """Take samples out of memory, and what the lineage says of them; how many memory held, None where nothing changed.

    samples: hashes under the lineage's key.
    """
    lineage = learner.lineage.settle()
    owned, compared = (torch.isin(held, samples) for held in (lineage.owners.samples, lineage.references.hashes))
    stored = torch.isin(memory_hashes(learner), samples)
    if not any(bool(mask.any()) for mask in (owned, compared, stored)):
        return None
    removed = _from_memory(learner, stored)
    lineage.owners = lineage.owners.only(lineage.owners.samples[~owned])
    lineage.references = lineage.references.only(~compared)
    return removed


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
