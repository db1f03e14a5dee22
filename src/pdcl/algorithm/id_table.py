"""Ids in order, and the group of each: which row of the duals an id has."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


def _integers() -> Tensor:
    return torch.empty(0, dtype=torch.long)


@dataclass
class IdTable:
    """Sorted ids and, beside each, its group: the task that a sample belongs to."""

    ids: Tensor = field(default_factory=_integers)
    groups: Tensor = field(default_factory=_integers)

    def rows(self, ids: Tensor, groups: Tensor | None) -> Tensor:
        """Where these known ids are. groups: their groups from now on (None: as they are)."""
        rows = torch.searchsorted(self.ids, ids)
        if groups is not None:
            self.groups[rows] = groups
        return rows

    def unknown(self, ids: Tensor, groups: Tensor | None) -> tuple[Tensor, Tensor]:
        """Those of the given ids that aren't known yet, once each and sorted, and their groups (0 if None)."""
        new = ~self._known(ids)
        fresh, inverse = torch.unique(ids[new], return_inverse=True)
        given = torch.zeros_like(ids[new]) if groups is None else groups[new]
        # An id may come several times at its first sight; any of its occurrences names its group.
        return fresh, torch.empty_like(fresh).scatter_(0, inverse, given)

    def join(self, ids: Tensor, groups: Tensor) -> Tensor:
        """Add unknown ids behind the others, then sort: the order in which rows stand now."""
        ids, groups = torch.cat([self.ids, ids]), torch.cat([self.groups, groups])
        order = ids.argsort()
        self.ids, self.groups = ids[order], groups[order]
        return order

    def keep(self, ids: Tensor) -> Tensor:
        """Drop all other ids: the rows that stay."""
        stay = torch.isin(self.ids, ids).nonzero().flatten()
        self.ids, self.groups = self.ids[stay], self.groups[stay]
        return stay

    def group_means(self, values: Tensor) -> Tensor:
        """(1/n_k) Σ_{i∈k} values_i, by group; 0 for a group without ids."""
        size = torch.bincount(self.groups)
        return torch.bincount(self.groups, weights=values) / size.clamp(min=1)

    def _known(self, ids: Tensor) -> Tensor:
        # By bisection, since a batch is small and a set of samples large; isin would sort both.
        if not len(self.ids):
            return torch.zeros_like(ids, dtype=torch.bool)
        nearest = torch.searchsorted(self.ids, ids).clamp(max=len(self.ids) - 1)
        return self.ids[nearest] == ids
