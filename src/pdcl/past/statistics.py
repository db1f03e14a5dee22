"""Sufficient statistics as the past: what a linear head on fixed features φ can know of samples, without the samples.

For a set c of samples (a task, a segment, tasks that were merged), with φ ∈ R^m whose last entry is 1:

    n_c,   G_c = Σ φφᵀ,   C_c = Σ φyᵀ (by output),   q_c = Σ ‖y‖²,   n_tk: samples by task and output

All of them are sums: sets are added, merged and subtracted exactly, in any order. Sums are made in float64 and kept in
float32, or in float64 where samples may be erased. G is symmetric, so half of it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pdcl.errors import UsageError

# Rows of G that are made at once, so that little of its lower half is.
STRIP = 256


@dataclass(frozen=True)
class Moments:
    """The statistics of one set. tasks: those it is of, [t]. columns: outputs that it has something of, [k].
    counts: n_tk, [t, k]. gram: G, packed, [⌈m/2⌉, m + 1]. cross: C by output, [k, m]. squares: q."""

    tasks: tuple[int, ...]
    columns: Tensor
    counts: Tensor
    gram: Tensor
    cross: Tensor
    samples: int
    squares: float

    @property
    def width(self) -> int:
        """m: features and the constant."""
        return self.cross.shape[1]

    @property
    def nbytes(self) -> int:
        return sum(each.numel() * each.element_size() for each in (self.columns, self.counts, self.gram, self.cross))

    def full_gram(self) -> Tensor:
        """G, m × m in float64."""
        return unpacked(self.gram.double(), self.width)

    def full_cross(self, outputs: int) -> Tensor:
        """C, m × outputs in float64."""
        found = torch.zeros(outputs, self.width, dtype=torch.float64)
        found[self.columns] = self.cross.double()
        return found.T

    def kept_as(self, dtype: torch.dtype) -> Moments:
        return replace(self, gram=self.gram.to(dtype), cross=self.cross.to(dtype))

    def __deepcopy__(self, memo: dict[int, Any]) -> Moments:
        """Itself: no tensor of a set is ever edited, other sums are other sets. So learning a task copies no G."""
        return self

    def state_dict(self) -> dict[str, Any]:
        return {**vars(self), "tasks": list(self.tasks)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Moments:
        return cls(**{**state, "tasks": tuple(state["tasks"])})


def added(sets: Sequence[Moments], signs: Sequence[int] | None = None) -> Moments:
    """One set of all these samples; with sign −1 its samples are taken out. Sums are made in float64."""
    signs = [1] * len(sets) if signs is None else signs
    tasks = tuple(sorted({task for each in sets for task in each.tasks}))
    columns = torch.cat([each.columns for each in sets]).unique()
    counts = torch.zeros(len(tasks), len(columns), dtype=torch.long)
    gram = torch.zeros(sets[0].gram.shape, dtype=torch.float64)
    cross = torch.zeros(len(columns), sets[0].width, dtype=torch.float64)
    for each, sign in zip(sets, signs, strict=True):
        rows, places = _places(torch.tensor(tasks), each.tasks), _places(columns, each.columns.tolist())
        counts[rows[:, None], places] += sign * each.counts
        gram += sign * each.gram
        cross[places] += sign * each.cross
    samples = sum(sign * each.samples for each, sign in zip(sets, signs, strict=True))
    squares = sum(sign * each.squares for each, sign in zip(sets, signs, strict=True))
    return Moments(tasks, columns, counts, gram, cross, samples, squares)


def _places(known: Tensor, some: Sequence[int]) -> Tensor:
    return torch.searchsorted(known, torch.tensor(some, dtype=torch.long))


def without_empty(found: Moments) -> Moments:
    """The same without outputs and tasks that no sample is left of: as if they had never come."""
    columns = (found.counts > 0).any(0)
    tasks = (found.counts > 0).any(1)
    return replace(
        found,
        tasks=tuple(task for task, there in zip(found.tasks, tasks.tolist(), strict=True) if there),
        columns=found.columns[columns],
        counts=found.counts[tasks][:, columns],
        cross=found.cross[columns],
    )


def add_products(gram: Tensor, block: Tensor) -> None:
    """G += ΦᵀΦ, its upper half: the lower one is never read."""
    for at in range(0, len(gram), STRIP):
        strip = slice(at, at + STRIP)
        gram[strip, at:] += block[:, strip].T @ block[:, at:]


class Running:
    """The statistics of a set while its samples come: sums in float64, products of a block in float32 or float64."""

    def __init__(self, width: int, outputs: int, exact: bool) -> None:
        self.gram = torch.zeros(width, width, dtype=torch.float64)
        self.cross = torch.zeros(outputs, width, dtype=torch.float64)
        self.counts = torch.zeros(outputs, dtype=torch.long)
        self.samples, self.squares, self.exact = 0, 0.0, exact

    def include(self, features: Tensor, targets: Tensor) -> None:
        """features: n × m. targets: classes, [n], or numbers, n × outputs."""
        block = features.double() if self.exact else features.float()
        add_products(self.gram, block)
        if targets.dim() == 1 and not targets.is_floating_point():
            self.cross.index_add_(0, targets, features.double())
            self.counts += torch.bincount(targets, minlength=len(self.counts))
            self.squares += len(targets)
        else:
            self.cross += targets.double().T @ features.double()
            self.counts += len(targets)
            self.squares += float(targets.double().square().sum())
        self.samples += len(targets)

    def moments(self, task: int) -> Moments:
        columns = (self.counts > 0).nonzero().flatten()
        return Moments(
            (task,), columns, self.counts[None, columns].clone(), packed(self.gram), self.cross[columns].clone(),
            self.samples, self.squares,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "exact"}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def packed(symmetric: Tensor) -> Tensor:
    """The upper half of a symmetric matrix as a rectangle: row i, then row m − 1 − i, [⌈m/2⌉, m + 1].

    Row i from its diagonal on begins every m + 1 numbers; the row behind it lies one column further right.
    """
    m, rows = len(symmetric), (len(symmetric) + 1) // 2
    top = torch.cat([symmetric[: rows + 1].flatten(), symmetric.new_zeros(m + 1)])[: rows * (m + 1)].view(rows, m + 1)
    bottom = symmetric.new_zeros(rows, m + 1)
    bottom[: m // 2, 1:] = symmetric[m - m // 2 :].flip(0)
    return torch.where(_of_top(m), top, bottom)


def unpacked(rectangle: Tensor, m: int) -> Tensor:
    """What `packed` was given."""
    found, top = rectangle.new_zeros(m * m + m + 1), _of_top(m)
    found[: rectangle.numel()] = (rectangle * top).flatten()
    found = found[: m * m].view(m, m)
    found[m - m // 2 :] = (rectangle * ~top)[: m // 2, 1:].flip(0)
    return found + found.triu(1).T


def _of_top(m: int) -> Tensor:
    """Which of a rectangle's numbers belong to the upper rows."""
    return torch.arange(m + 1) < m - torch.arange((m + 1) // 2)[:, None]


def gram_bytes(width: int, dtype: torch.dtype) -> int:
    """Bytes of one packed G."""
    return (width + 1) // 2 * (width + 1) * dtype.itemsize


def check_finite(features: Tensor) -> None:
    """Refuse features that would spoil every sum."""
    if not bool(features.isfinite().all()):
        row = int((~features.isfinite().all(1)).nonzero()[0])
        raise UsageError(f"the features of row {row} of a batch are not finite; leave such samples out")
