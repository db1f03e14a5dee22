"""How rank 0 gets at the inputs that ranks divide: it asks for slots, and each of the others sends those it holds.

Only outside of training: for a checkpoint, and at the end of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from pdcl.past.file_rows import FileRows
from pdcl.past.shard_rows import ShardRows, owners
from pdcl.past.store import Memory
from pdcl.ranks import ALONE, Ranks

# What rank 0 asks with: the number of a column, and of how many slots. This column ends it.
_DONE = -1


@contextmanager
def all_rows_on_first(memory: Memory | None) -> Iterator[None]:
    """Within it rank 0 reads the rows of all ranks; the others leave it when rank 0 does. All ranks must enter."""
    shards = [] if memory is None else list(memory.shards.values())
    if memory is None or not shards:
        yield
        return
    ranks = memory.ranks
    if not ranks.first:
        yield
        _lend(shards, ranks)
        return
    for number, shard in enumerate(shards):
        shard.borrow = partial(_borrowed, memory, shard, number)
    try:
        yield
    finally:
        for shard in shards:
            shard.borrow = None
    # Not after an error: rank 0 is about to end then, and that ends the others.
    ranks.told(torch.tensor([_DONE, 0]))


def _borrowed(memory: Memory, shard: ShardRows, number: int, slots: Tensor) -> Tensor:
    """These rows of column `number`, on rank 0."""
    data = shard.held.data
    found = data.new_empty(len(slots), *data.shape[1:])
    for places in torch.arange(len(slots)).split(shard.at_once):
        asked = slots[places].cpu()
        memory.ranks.told(torch.tensor([number, len(asked)]))
        memory.ranks.told(asked)
        theirs = owners(memory.read("id", asked), memory.ranks.world)
        for rank in theirs.unique().tolist():
            at = places[theirs == rank]
            found[at] = shard.read(slots[at]) if rank == 0 else memory.ranks.take(rank, found[at])
    return found


def _lend(shards: Sequence[ShardRows], ranks: Ranks) -> None:
    """Send rank 0 what it asks for, until it is done."""
    while (asked := ranks.told(torch.zeros(2, dtype=torch.int64)).tolist())[0] != _DONE:
        slots = ranks.told(torch.zeros(asked[1], dtype=torch.int64))
        shard = shards[asked[0]]
        own = slots[shard.here(slots)]
        if len(own):
            ranks.give(shard.read(own))


def gather(memory: Memory | None) -> None:
    """Put all rows into a file of rank 0, which is alone with them from now on; other ranks keep theirs."""
    with all_rows_on_first(memory):
        if memory is None or not memory.ranks.first:
            return
        whole = {name: _in_file(memory, shard) for name, shard in memory.shards.items()}
    memory.columns |= whole
    memory.ranks = ALONE


def _in_file(memory: Memory, shard: ShardRows) -> FileRows:
    found = FileRows(shard.held.data[:0], 0)
    found.reserve(len(memory), memory.capacity)
    for slots in torch.arange(len(memory)).split(shard.at_once):
        found.write(slots, shard.read(slots))
    return found
