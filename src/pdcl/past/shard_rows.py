"""A memory column of which every rank holds its own rows, for inputs that are more than each should hold.

Whose a sample is follows from its id, which all ranks know: nobody has to ask, and it stays when memory is reordered.
Slot i lies in row `places[i]` of what this rank holds, in RAM or in a file; −1: on another rank.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pdcl.errors import OnAnotherRank
from pdcl.past.columns import Rows, check_like, next_size
from pdcl.past.file_rows import COPIED_AT_ONCE, FileRows
from pdcl.ranks import Ranks
from pdcl.storage.scratch import scratch_rows
from pdcl.trees import Leaf

ELSEWHERE = -1
# 2⁶⁴ / φ as a signed number.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64


def owners(ids: Tensor, world: int) -> Tensor:
    """The rank of each sample, ⌊world · frac(id / φ)⌋: ids in a row are dealt out evenly, and so are even ones.

    >>> torch.bincount(owners(torch.arange(1000, 2000, 2), 4)).tolist()
    [124, 125, 126, 125]
    """
    fraction = (ids.cpu() * _GOLDEN >> 33) & (2**31 - 1)
    return fraction * world >> 31


class ShardRows:
    """Like `Rows`, with the rows of `ranks.rank` alone. in_ram: how many of them may be held in RAM.

    borrow: what reads rows of other ranks, while they lend them (`lent_rows`).
    """

    def __init__(self, like: Tensor, ranks: Ranks, in_ram: int) -> None:
        self.ranks, self.in_ram = ranks, in_ram
        self.held: Rows | FileRows = Rows(like, torch.device("cpu"))
        self.places = torch.zeros(0, dtype=torch.int64)
        self.rows, self.unused = 0, torch.zeros(0, dtype=torch.int64)
        self.most = 0
        self.borrow: Callable[[Tensor], Tensor] | None = None

    def check(self, name: str, rows: Leaf) -> None:
        """Refuse rows of another shape or dtype."""
        check_like(self.held.data, name, rows)

    def here(self, slots: Tensor) -> Tensor:
        """Which of these slots this rank holds: a mask."""
        return self.places[slots.cpu()] != ELSEWHERE

    def read(self, slots: Tensor) -> Tensor:
        places = self.places[slots.cpu()]
        if bool((places == ELSEWHERE).any()):
            if self.borrow is None:
                raise self._elsewhere(int(slots[(places == ELSEWHERE).nonzero()[0]]))
            return self.borrow(slots)
        return self.held.read(places)

    def _elsewhere(self, slot: int) -> OnAnotherRank:
        return OnAnotherRank(
            f"the input in slot {slot} isn't on rank {self.ranks.rank}: {self.ranks.world} ranks hold a part of memory "
            "each; while they train read what `Memory.share` says, after the run use the learner of rank 0"
        )

    def used(self, size: int) -> Tensor:
        """A copy of the rows in use, on disk, while other ranks lend theirs."""
        copied = scratch_rows(size, tuple(self.held.data.shape[1:]), self.held.data.dtype)
        for slots in torch.arange(size).split(self.at_once) if size else ():
            copied[slots[0] : slots[-1] + 1] = self.read(slots)
        return copied

    @property
    def at_once(self) -> int:
        """How many rows are copied at a time."""
        return max(1, COPIED_AT_ONCE // max(1, self.row_bytes()))

    def write(self, slots: Tensor, rows: Tensor, mine: Tensor) -> None:
        """Put the rows of the mask `mine` into these slots. `rows`: those alone, or all."""
        slots = slots.cpu()
        self._leave(slots[~mine])
        self._enter(slots[mine])
        whole = len(rows) == len(mine)
        given = mine.nonzero().flatten() if whole else torch.arange(len(rows))
        for here, part in zip(self.places[slots[mine]].split(self.at_once), given.split(self.at_once), strict=True):
            self.held.write(here, rows[part])

    def _leave(self, slots: Tensor) -> None:
        """These slots are another rank's from now on."""
        places = self.places[slots]
        self.unused = torch.cat([self.unused, places[places != ELSEWHERE]])
        self.places[slots] = ELSEWHERE

    def _enter(self, slots: Tensor) -> None:
        """Give a row to those of these slots that have none here."""
        slots = slots[self.places[slots] == ELSEWHERE]
        again = self.unused[: len(slots)]
        more = len(slots) - len(again)
        self.places[slots] = torch.cat([again, torch.arange(self.rows, self.rows + more)])
        self.unused, self.rows = self.unused[len(again) :], self.rows + more
        if self.rows > self.in_ram and isinstance(self.held, Rows):
            self.held = FileRows(self.held.used(self.rows - more), len(self.held.data))
        self.held.reserve(self.rows, max(self.rows, -(-self.most // self.ranks.world)))

    def keep(self, slots: Tensor) -> None:
        kept = self.places[slots.cpu()]
        self.places[:] = ELSEWHERE
        self.places[: len(slots)] = kept
        free = torch.ones(self.rows, dtype=torch.bool)
        free[kept[kept != ELSEWHERE]] = False
        self.unused = free.nonzero().flatten()

    def mark(self) -> None:
        """Only `learn` takes a change back, and it trains in one process."""
        raise self._elsewhere(0)

    def go_back(self, mark: None) -> None:
        raise AssertionError("there is no mark to go back to")

    def reserve(self, rows: int, most: int) -> None:
        self.most = most
        if (more := next_size(rows, len(self.places), most) - len(self.places)) > 0:
            self.places = torch.cat([self.places, torch.full((more,), ELSEWHERE)])

    def shrink(self, size: int) -> None:
        """Allocate no more than the rows in use need."""
        self.places = self.places[:size].clone()
        own = self.places != ELSEWHERE
        self.held.keep(self.places[own])
        self.rows, self.unused = int(own.sum()), self.unused[:0]
        self.places[own] = torch.arange(self.rows)
        self.held.shrink(self.rows)

    def row_bytes(self, rows: Leaf | None = None) -> int:
        return self.held.row_bytes()

    def stored(self, size: int) -> int:
        """On all ranks together, so that each draws the same conclusions from it."""
        return size * self.row_bytes()

    @property
    def nbytes(self) -> int:
        """What is allocated on this rank."""
        return self.held.nbytes

    def state(self, name: str, size: int) -> dict[str, Tensor]:
        return {name: self.used(size)}
