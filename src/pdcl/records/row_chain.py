"""The rows of a large memory in checkpoints: written whole once, then only those that are new.

A link of the chain has, for each row that memory held when it was written, where the row was in the link before (−1: it
is new), and the new rows. The first link has new rows alone. A checkpoint takes over the files of older links, and
begins a new chain where the links together would be half as large as its first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pdcl.past.columns import leaf_state, saved_leaves
from pdcl.past.origins import Origins, bytes_by_row, rows_apart
from pdcl.past.store import Memory
from pdcl.storage.scratch import scratch_rows
from pdcl.storage.serialize import BadState, Part, tensor_bytes, tensors_in
from pdcl.trees import Leaf, cat, take

# A smaller memory is written whole, with everything else: one file less to wait for.
SMALLEST = 2**22
PIECE = 2**26
MOST_LINKS = 50
ORIGIN = "origin"


@dataclass
class RowChain:
    """What the checkpoints of one run have written of memory: the files of each link, and their bytes."""

    links: list[list[str]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    number: int = 0
    noted: Origins | None = None

    def plan(self, memory: Memory | None) -> Planned | None:
        """What a checkpoint has to write of the rows; None where they are few and go with everything else."""
        if memory is None or bytes_by_row(memory) < SMALLEST:
            self.forget()
            return None
        # Changes since a checkpoint of somebody else's aren't those since ours.
        origins = memory.origins if memory.origins is self.noted else None
        if origins is not None and self.links and origins.unchanged:
            return Planned(self, memory, {}, 0)
        new = torch.arange(len(memory)) if origins is None else (origins.rows < 0).nonzero().flatten()
        size = bytes_by_row(memory) * len(new) // len(memory)
        if origins is None or not self.links or self._is_long(size):
            self.forget()
            new, size, origins = torch.arange(len(memory)), bytes_by_row(memory), None
        return Planned(self, memory, self._pieces(memory, new, size, origins), size)

    def _is_long(self, more: int) -> bool:
        return len(self.links) >= MOST_LINKS or 2 * (sum(self.sizes[1:]) + more) > self.sizes[0]

    def _pieces(
        self, memory: Memory, new: Tensor, size: int, origins: Origins | None
    ) -> dict[str, Callable[[], bytes]]:
        """The files of a new link; the first says where older rows were."""
        rows = max(1, PIECE * len(new) // max(1, size))
        found: dict[str, Callable[[], bytes]] = {}
        for slots in new.split(rows) if len(new) else [new]:
            self.number += 1
            more = {ORIGIN: origins.rows} if origins is not None and not found else {}
            found[f"rows-{self.number:06d}.safetensors"] = partial(_content, memory, slots, more)
        return found

    def forget(self) -> None:
        """Write everything the next time."""
        self.links, self.sizes = [], []


def _content(memory: Memory, slots: Tensor, more: dict[str, Tensor]) -> bytes:
    return tensor_bytes({**rows_apart(memory, slots), **more})


@dataclass(frozen=True)
class Planned:
    """`parts` to write, which hold `size` bytes of rows, and those to take over."""

    chain: RowChain
    memory: Memory
    parts: dict[str, Callable[[], bytes]]
    size: int

    @property
    def kept(self) -> list[str]:
        return [name for link in self.chain.links for name in link]

    @property
    def links(self) -> list[list[str]]:
        return [*self.chain.links, *([list(self.parts)] if self.parts else [])]

    def written(self) -> None:
        """The checkpoint is in place: note from now on what changes."""
        self.chain.links, self.chain.sizes = self.links, [*self.chain.sizes, *([self.size] if self.parts else [])]
        self.chain.noted = self.memory.origins = Origins(len(self.memory))


def rows_of(links: Any, parts: Mapping[str, Part]) -> dict[str, Tensor]:
    """The rows that the links describe, in the form of `Memory.state_dict`. Raises BadState where they are none."""
    index, pieces, total = torch.zeros(0, dtype=torch.int64), [], 0
    for number, names in enumerate(links):
        read = [tensors_in(parts[name]) for name in names]
        origin = read[0].pop(ORIGIN, None)
        if (origin is None) != (number == 0):
            raise BadState(f"link {number} of memory's rows doesn't say where they were")
        new = [saved_leaves(piece) for piece in read]
        more = sum(len(next(iter(leaves.values()), ())) for leaves in new)
        pieces += new
        if not pieces[0] or any(leaves.keys() != pieces[0].keys() for leaves in new):
            raise BadState(f"link {number} of memory's rows holds other columns than the first")
        index = torch.arange(more) if origin is None else _moved(index, origin, total, more)
        total += more
    states = [leaf_state(name, _placed([leaves[name] for leaves in pieces], index)) for name in pieces[0]]
    return {name: tensor for state in states for name, tensor in state.items()}


def _moved(index: Tensor, origin: Tensor, before: int, more: int) -> Tensor:
    """Numbers of rows, counted through all links: from `index` where `origin` says so, new ones where it says −1."""
    fresh = origin < 0
    if int(fresh.sum()) != more or (len(origin) and int(origin.max()) >= len(index)):
        raise BadState("the new rows of memory don't fit those before them")
    found = before + fresh.cumsum(0) - 1
    found[~fresh] = index[origin[~fresh]]
    return found


def _placed(pieces: Sequence[Any], index: Tensor) -> Leaf:
    """Rows number `index` of all pieces together. They are taken piece by piece, and many are put on disk."""
    if not isinstance(pieces[0], Tensor):
        return take(cat(pieces), index)  # type: ignore[no-any-return]
    first = pieces[0]
    found, at = scratch_rows(len(index), tuple(first.shape[1:]), first.dtype, PIECE), 0
    for piece in pieces:
        slots = ((index >= at) & (index < at + len(piece))).nonzero().flatten()
        found[slots] = piece[index[slots] - at]
        at += len(piece)
    return found
