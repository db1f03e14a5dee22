"""Samples and groups that come again. A sample that is held back must not be trained on as another row, in its task or
in a later one; and one that was trained on before is no guard or witness. The same holds for groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Generator, Tensor

from pdcl.errors import UsageError
from pdcl.past.held_back import GROUP, REPLAY, Counts, HeldBack, hold_back
from pdcl.past.refill import Source, are_classes
from pdcl.past.store import Memory
from pdcl.streams.data import Data
from pdcl.streams.hashes import CHUNK, sample_hashes
from pdcl.trees import Tree

# Hashes are compared and forgotten, so they need no key of their own.
KEY = bytes(16)


def row_hashes(data: Source) -> Tensor | None:
    """A hash of each input with its target, (n,); None for data in files or a Dataset, which would be read once more.

    The same input with another target is another sample: learning the one doesn't show the other's answer.
    """
    if isinstance(data, Data) and not data.in_memory:
        return None
    parts = [_hashes(*data.fetch(part)) for part in torch.arange(len(data)).split(CHUNK)]
    return torch.cat([torch.zeros(0, dtype=torch.int64), *parts])


def row_hashes_at(data: Source, positions: Tensor) -> Tensor:
    """The same of the samples at these positions, whatever it takes to read them."""
    parts = [_hashes(*data.fetch(part)) for part in positions.split(CHUNK) if len(part)]
    return torch.cat([torch.zeros(0, dtype=torch.int64), *parts])


def held_hashes(memory: Memory) -> Tensor:
    """Hashes of stored guards and witnesses."""
    none = torch.zeros(0, dtype=torch.int64)
    if not len(memory) or "role" not in memory.columns:
        return none
    slots = (memory.read("role") != REPLAY).nonzero().flatten()
    if "hash" in memory.columns:
        known: Tensor = memory.read("hash", slots)
        return known
    return _hashes(memory.read("x", slots), memory.read("y", slots)) if len(slots) else none


def groups_in(memory: Memory | None, replayed: bool) -> Tensor:
    """Groups that stored samples are of: of those replayed, or of guards and witnesses."""
    if memory is None or not len(memory) or GROUP not in memory.columns:
        return torch.zeros(0, dtype=torch.int64)
    found: Tensor = memory.read(GROUP).cpu()[(memory.read("role").cpu() == REPLAY) == replayed].unique()
    return found


class Earlier:
    """The samples of a stream's tasks, each task hashed once, so that a later one can be told what was learned before.

    It depends on the stream alone, so a resumed run gives the same answer.
    """

    def __init__(self, tasks: Sequence[Source]) -> None:
        self._tasks = tasks
        self._hashed = 0
        self._seen = torch.zeros(0, dtype=torch.int64)

    def known(self, task: int, data: Source) -> Tensor | None:
        """Which of a task's samples an earlier task had, by input and target; None: none that is known of."""
        while self._hashed < min(task, len(self._tasks)):
            hashes = row_hashes(self._tasks[self._hashed])
            self._seen = self._seen if hashes is None else torch.cat([self._seen, hashes])
            self._hashed += 1
        own = row_hashes(data) if len(self._seen) else None
        found = None if own is None else torch.isin(own, self._seen)
        return found if found is not None and bool(found.any()) else None


def _hashes(x: Tree, y: Tree) -> Tensor:
    return sample_hashes({"x": x, "y": y}, KEY)


def hold_back_once(
    data: Source, wanted: Counts, generator: Generator, groups: Tensor | None, memory: Memory, known: Tensor | None
) -> HeldBack:
    """Guards and witnesses of a task, so that none of them is trained on. known: which samples were learned before.

    Copies of what is held back are left out of training. Where there would be more of them than guards and witnesses,
    samples are held back with all their copies instead, as groups are. A group that has stored guards or witnesses
    isn't trained on, and one that has replayed samples isn't held back. A class that the draw would leave no sample to
    learn from holds none back.
    """
    if groups is not None and len(trained_on := groups_in(memory, replayed=True)):
        replayed = torch.isin(groups.cpu(), trained_on)
        known = replayed if known is None else known | replayed
    hashes = row_hashes(data)
    found = _drawn(data, wanted, generator, groups, hashes, known, memory)
    while bool((taken := _taken_whole(data, found)).any()):
        known = taken if known is None else known | taken
        found = _drawn(data, wanted, generator, groups, hashes, known, memory)
    if len(data) and not len(found.trained):
        raise UsageError(
            f"all {len(data)} samples of the task are held back as guards or witnesses of earlier ones, or are of "
            "groups that are; there is nothing new to learn"
        )
    return found


def _drawn(
    data: Source, wanted: Counts, generator: Generator, groups: Tensor | None, hashes: Tensor | None,
    known: Tensor | None, memory: Memory,
) -> HeldBack:  # fmt: skip
    """One draw, without the copies of what is held back."""
    found = hold_back(len(data), wanted, generator, groups, known)
    if hashes is not None and groups is None and _copies(found, hashes).sum() > len(data) - len(found.trained):
        found = hold_back(len(data), wanted, generator, hashes, known)
    again = torch.zeros(len(found.trained), dtype=torch.bool)
    if hashes is not None:
        again = _copies(found, hashes) | torch.isin(hashes[found.trained], held_hashes(memory))
    if groups is not None:
        again |= torch.isin(groups.cpu()[found.trained], groups_in(memory, replayed=False))
    return replace(found, trained=found.trained[~again])


def _taken_whole(data: Source, found: HeldBack) -> Tensor:
    """Which samples are of a class that has guards or witnesses, and none that is trained on."""
    held = torch.cat([found.guards, found.witnesses])
    y = data.targets
    if not len(held) or not are_classes(y):
        return torch.zeros(len(data), dtype=torch.bool)
    return torch.isin(y, y[held]) & ~torch.isin(y, y[found.trained])


def _copies(found: HeldBack, hashes: Tensor) -> Tensor:
    """Which of the samples that are trained on look like one that is held back."""
    return torch.isin(hashes[found.trained], hashes[torch.cat([found.guards, found.witnesses])])


def left_out(found: HeldBack | None, samples: int, grouped: bool = False) -> str | None:
    """A sentence where samples are neither trained on nor held back. grouped: whether they came with groups."""
    missing = 0 if found is None else samples - len(found.trained) - len(found.guards) - len(found.witnesses)
    if not missing:
        return None
    verb = "sample is a copy" if missing == 1 else "samples are copies"
    same = ", or of their groups" if grouped else ""
    return f"{missing} of {samples} {verb} of guards or witnesses{same}: not trained on"
