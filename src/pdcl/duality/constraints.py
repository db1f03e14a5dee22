"""A set of constraints that grows: ids in order, and beside each its dual, tolerance, task and last slack."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields

import torch
from torch import Tensor


def _integers() -> Tensor:
    return torch.empty(0, dtype=torch.long)


def _reals() -> Tensor:
    return torch.empty(0, dtype=torch.float64)


@dataclass
class Constraints:
    """Columns of one length, sorted by id, on the CPU; duals in float64 whatever the losses come in."""

    ids: Tensor = field(default_factory=_integers)
    groups: Tensor = field(default_factory=_integers)
    duals: Tensor = field(default_factory=_reals)
    tolerances: Tensor = field(default_factory=_reals)
    slacks: Tensor = field(default_factory=_reals)

    def rows(self, ids: Tensor, groups: Tensor | None, epsilon: Callable[[int, int], float]) -> Tensor:
        """Where the given ids are; unknown ones join first, with dual 0 and tolerance epsilon(id, group).

        groups: the task of each id; None leaves known ones as they are and puts new ones in group 0.
        """
        new = ~self._known(ids)
        if new.any():
            self._join(ids[new], torch.zeros_like(ids[new]) if groups is None else groups[new], epsilon)
        rows = torch.searchsorted(self.ids, ids)
        if groups is not None:
            self.groups[rows] = groups
        return rows

    def keep(self, ids: Tensor) -> None:
        """Drop every constraint whose id isn't given."""
        self._take(torch.isin(self.ids, ids))

    def mean_duals(self) -> Tensor:
        """λ_k = (1/n_k) Σ_{i∈B_k} λ_i, by group; 0 for a group without constraints."""
        size = torch.bincount(self.groups)
        return torch.bincount(self.groups, weights=self.duals) / size.clamp(min=1)

    def _known(self, ids: Tensor) -> Tensor:
        # By bisection, since a batch is small and a set of samples large; isin would sort both.
        if not len(self.ids):
            return torch.zeros_like(ids, dtype=torch.bool)
        nearest = torch.searchsorted(self.ids, ids).clamp(max=len(self.ids) - 1)
        return self.ids[nearest] == ids

    def _join(self, ids: Tensor, groups: Tensor, epsilon: Callable[[int, int], float]) -> None:
        # An id may come several times at its first sight; any of its occurrences names its group.
        new, inverse = torch.unique(ids, return_inverse=True)
        group = torch.empty_like(new).scatter_(0, inverse, groups)
        values = [epsilon(i, g) for i, g in zip(new.tolist(), group.tolist(), strict=True)]
        tolerances = torch.tensor(values, dtype=torch.float64)
        unset = torch.zeros_like(tolerances)
        columns = (new, group, unset, tolerances, torch.full_like(unset, torch.nan))
        for column, addition in zip(fields(self), columns, strict=True):
            setattr(self, column.name, torch.cat([getattr(self, column.name), addition]))
        self._take(self.ids.argsort())

    def _take(self, where: Tensor) -> None:
        for column in fields(self):
            setattr(self, column.name, getattr(self, column.name)[where])
