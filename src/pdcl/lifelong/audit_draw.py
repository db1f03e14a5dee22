"""Which samples of a task go to the audit set, which are learned, and which do neither.

What is in the audit set, as a row or as a group, is never learned; what was learned before never goes there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pdcl.lifelong.new_task import held_to_spec
from pdcl.streams.audits import Audit
from pdcl.streams.checks import BadData
from pdcl.streams.hashes import data_hashes, name_hashes, sample_hashes
from pdcl.streams.held_out import draw_share
from pdcl.streams.samples import Samples

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner

NONE = torch.zeros(0, dtype=torch.int64)


@dataclass(frozen=True)
class Sides:
    """Masks over a task's samples; a `note` where some are on neither side."""

    aside: Tensor
    rest: Tensor
    note: str | None


def divide(samples: Samples, held: Audit | None, task: str, learner: Learner, share: float, room: int | None) -> Sides:
    """Groups that the audit set has go there, as far as there is room; of what is new, about `share` less that.

    Copies of audit samples are left out. Data in files or a Dataset isn't read once more to find them. Where all that
    comes was there before, an audit set stays as it is.
    """
    lineage, n = learner.lineage.settle(), len(samples)
    rows = _row_hashes(samples, learner)
    groups = None if samples.groups is None else name_hashes(samples.groups.tolist(), lineage.key)
    # What an earlier call has set aside of this very task is drawn again.
    copies, returning = _within(n, rows, groups, *_hashes_of(held, lineage.key, but=task))
    returning &= ~copies
    learned = torch.logical_or(*_within(n, rows, groups, lineage.samples, lineage.groups))
    if groups is not None:
        learned |= torch.isin(groups, groups[learned])
    free = ~(copies | returning | learned)
    there, count = int(returning.sum()), max(1, int(free.sum()))
    left = share - (1 - share) * there / count
    if room is not None:
        left = min(left, (room - there) / count)
    aside = _drawn(samples, free, _group_codes(samples), left, learner.seed)
    if rows is not None and groups is None and _again(rows, aside).sum() > aside.sum():
        # Mostly copies: they go as a whole, as groups do.
        _, first, which = np.unique(rows.numpy(), return_index=True, return_inverse=True)
        aside = _drawn(samples, free, torch.as_tensor(first[which]), left, learner.seed)
    aside |= _at_most(returning, room, learner.seed)
    if held is None and not aside.any():
        known = f"; {int(learned.sum())} of them, or their groups, were learned before" if learned.any() else ""
        raise BadData(f"nothing of {n} samples can be set aside without dividing a group or emptying a class{known}")
    taken = torch.logical_or(*_within(n, rows, groups, *_hashes_of(held, lineage.key)))
    rest = ~(aside | taken | _again(rows, aside))
    if not rest.any():
        raise BadData(f"all {n} samples, or their groups, are in the audit set; there is nothing to learn")
    return Sides(aside, rest, _note(n, n - int((aside | rest).sum()), int((aside & returning).sum())))


def _row_hashes(samples: Samples, learner: Learner) -> Tensor | None:
    """By the input alone, as the learner's lineage has them."""
    data = replace(samples, columns={}).data(torch.zeros(len(samples)))
    if not data.in_memory:
        return None
    return data_hashes(data if learner.spec is None else held_to_spec(learner, data), learner.lineage.key)


def _hashes_of(held: Audit | None, key: bytes, but: str | None = None) -> tuple[Tensor, Tensor]:
    """Of the audit set's inputs and groups, but for those of one task."""
    if held is None:
        return NONE, NONE
    stay = np.flatnonzero(held.columns["task"].astype(str) != but) if but is not None else np.arange(len(held))
    if not len(stay):
        return NONE, NONE
    names = held.columns["group"][stay].tolist() if "group" in held.columns else []
    return sample_hashes(held.x[torch.as_tensor(stay)], key), name_hashes(dict.fromkeys(names), key)


def _within(n: int, rows: Tensor | None, groups: Tensor | None, inputs: Tensor, names: Tensor) -> tuple[Tensor, Tensor]:
    """Which of n samples are among these inputs, and which among these groups."""
    same = torch.zeros(n, dtype=torch.bool) if rows is None else torch.isin(rows, inputs)
    return same, torch.zeros(n, dtype=torch.bool) if groups is None else torch.isin(groups, names)


def _group_codes(samples: Samples) -> Tensor | None:
    """Groups as numbers, by their names: a draw must not depend on the learner's key."""
    if samples.groups is None:
        return None
    return torch.as_tensor(np.unique(samples.groups.astype(str), return_inverse=True)[1])


def _drawn(samples: Samples, free: Tensor, groups: Tensor | None, share: float, seed: int) -> Tensor:
    targets, aside = samples.targets, torch.zeros(len(samples), dtype=torch.bool)
    if share <= 0 or not free.any():
        return aside
    strata = np.unique(targets, return_inverse=True)[1] if targets.ndim == 1 and targets.dtype.kind != "f" else None
    codes = torch.zeros(len(samples), dtype=torch.int64) if strata is None else torch.as_tensor(strata)
    aside[free] = draw_share(codes[free], None if groups is None else groups[free], share, seed)
    return aside


def _again(rows: Tensor | None, aside: Tensor) -> Tensor:
    """Copies of what is set aside."""
    return torch.zeros_like(aside) if rows is None else torch.isin(rows, rows[aside]) & ~aside


def _at_most(mask: Tensor, room: int | None, seed: int) -> Tensor:
    """A random choice of these, if there are more than there is room for."""
    if room is None or int(mask.sum()) <= room:
        return mask
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(mask.numpy()))[:room]
    return torch.zeros_like(mask).index_fill(0, torch.as_tensor(chosen), True)


def _note(samples: int, out: int, returning: int) -> str | None:
    said = []
    if returning:
        said.append(f"{returning} of {samples} samples are of groups in the audit set: set aside, too")
    if out:
        said.append(f"{out} of {samples} samples are copies of audit samples or beyond its budget: not learned")
    return "; ".join(said) or None
