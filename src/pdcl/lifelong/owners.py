"""Whose the stored samples are: which group (a patient) and which segments each sample in memory belongs to.

Kept as keyed hashes of the sample and of `column=value`, for samples in memory alone, so that what belongs to somebody
can be counted and taken out, and nobody can read who it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdcl.streams.data import Data
from pdcl.streams.hashes import data_hashes, name_hashes, sample_hashes
from pdcl.streams.samples import Samples

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

# What the groups of `learn(…, groups=)` are called here: their column has no name there.
GROUP = "group"
_none = partial(torch.zeros, 0, dtype=torch.int64)


@dataclass(frozen=True)
class Owners:
    """Pairs: the hash of a sample, and of one thing that it belongs to."""

    samples: Tensor = field(default_factory=_none)
    names: Tensor = field(default_factory=_none)

    def __len__(self) -> int:
        return len(self.samples)

    def of(self, names: Tensor) -> Tensor:
        """Hashes of the samples that belong to any of these."""
        found: Tensor = self.samples[torch.isin(self.names, names)].unique()
        return found

    def only(self, samples: Tensor) -> Owners:
        """The pairs of these samples."""
        there = torch.isin(self.samples, samples)
        return Owners(self.samples[there], self.names[there])


def memory_hashes(learner: Learner) -> Tensor:
    """A hash per stored sample under the lineage's key: [size] int64."""
    store = learner.store
    return _none() if store is None or not len(store) else sample_hashes(store["x"], learner.lineage.key)


def note_owners(learner: Learner, data: Data, samples: Samples) -> None:
    """Remember whose the samples are that memory keeps of a task just learned. data: its raw inputs."""
    lineage = learner.lineage
    if samples.groups is not None:
        lineage.note_groups(samples.groups.tolist())
    named = {GROUP: samples.groups, **samples.columns} if samples.groups is not None else dict(samples.columns)
    if learner.store is None or (not named and not len(lineage.owners)):
        return
    held = memory_hashes(learner)
    own = data_hashes(data, lineage.key) if named else _none()
    kept = torch.isin(own, held).nonzero().flatten()
    pairs = [lineage.owners.only(held)]
    for column, values in named.items():
        texts = [f"{column}={value}" for value in values[kept.numpy()].tolist()]
        pairs.append(Owners(own[kept], name_hashes(texts, lineage.key)))
    lineage.owners = Owners(torch.cat([p.samples for p in pairs]), torch.cat([p.names for p in pairs]))


def belonging(learner: Learner, *names: str) -> Tensor:
    """Which stored samples belong to any of `column=value`: mask [size]."""
    lineage = learner.lineage
    return torch.isin(memory_hashes(learner), lineage.owners.of(name_hashes(names, lineage.key)))
