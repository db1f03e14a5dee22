"""Ranks that divide the inputs of a memory hold together what one process holds, each about its part, at all times."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pdcl.errors import OnAnotherRank, UsageError
from pdcl.past.columns import Rows, Sequences
from pdcl.past.file_rows import FileRows
from pdcl.past.shard_rows import ShardRows, owners
from pdcl.past.store import Memory
from pdcl.ragged import Ragged
from pdcl.ranks import Ranks
from pdcl.trees import flatten, map_leaves

CAPACITY = 60
FEW = "100B"


class Ids:
    """Rows of samples that nobody has seen before."""

    def __init__(self, seed: int, tree: bool) -> None:
        self.random, self.tree, self.next = torch.Generator().manual_seed(seed), tree, 0

    def rows(self, count: int) -> dict[str, Any]:
        image = torch.randint(0, 255, (count, 3, 5), generator=self.random, dtype=torch.uint8)
        x = {"image": image, "table": torch.rand(count, 2, generator=self.random)} if self.tree else image
        self.next += count
        return {"x": x, "y": torch.arange(count), "id": torch.arange(self.next - count, self.next)}


def spread(world: int, in_ram: str = FEW) -> list[Memory]:
    """A memory for each rank; none of them communicates, since nobody reads what it doesn't hold."""
    found = [Memory(CAPACITY, in_ram=in_ram) for _ in range(world)]
    for rank, memory in enumerate(found):
        memory.spread_over(Ranks(rank, world))
    return found


def own_inputs(rows: dict[str, Any], memory: Memory) -> dict[str, Any]:
    """These rows with the inputs of this rank alone."""
    share = memory.share_of(rows["id"])
    return {**rows, "x": map_leaves(share.own, rows["x"])}


def change(memories: list[Memory], ids: Ids) -> None:
    """The same change of the first, which is whole, and of the others; half of them get their own inputs alone."""
    draw, size = int(torch.randint(4, (), generator=ids.random)), len(memories[0])
    some = torch.randperm(size, generator=ids.random)
    count = {0: 5, 1: 0, 2: min(9, CAPACITY - size), 3: len(some[:7])}[draw]
    rows, seed = ids.rows(count), int(torch.randint(1000, (), generator=ids.random))
    for number, memory in enumerate(memories):
        given = own_inputs(rows, memory) if number % 2 else rows
        if draw == 0:
            memory.reservoir.seen = size
            memory.reservoir.forget_decisions()
            memory.add_reservoir(torch.Generator().manual_seed(seed), **given)
        elif draw == 1:
            memory.keep(some[: int(0.8 * size)])
        elif draw == 2:
            memory.append(**given)
        else:
            memory.write(some[:7], **given)


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("to_file", [False, True])
@pytest.mark.parametrize("world", [2, 3, 4])
def test_any_sequence_of_changes_leaves_every_input_on_one_rank(world: int, to_file: bool, tree: bool) -> None:
    whole, ids = Memory(CAPACITY), Ids(world, tree)
    parts = spread(world, FEW if to_file else "900B" if tree else "600B")
    rows = ids.rows(45)
    for memory in (whole, *parts):
        memory.append(**rows)
    for _ in range(40):
        change([whole, *parts], ids)
        slots = torch.arange(len(whole))
        assert all(torch.equal(memory["id"], whole["id"]) for memory in parts)
        masks = [memory.share(slots).mine for memory in parts]
        assert all(mask is not None for mask in masks)
        assert torch.equal(sum(mask.long() for mask in masks if mask is not None), torch.ones(len(whole)).long())
        for rank, (memory, mask) in enumerate(zip(parts, masks, strict=True)):
            assert mask is not None
            assert torch.equal(mask, owners(whole["id"], world) == rank)
            its, all_of_it = (flatten(each.read("x", slots[mask])) for each in (memory, whole))
            assert all(torch.equal(its[name], all_of_it[name]) for name in its)
            assert memory.stored == whole.stored
    column = parts[0].columns["x.image" if tree else "x"]
    assert isinstance(column, ShardRows)
    assert isinstance(column.held, FileRows if to_file else Rows)


def test_a_rank_allocates_its_part_and_shrinks_to_what_it_holds() -> None:
    parts = spread(4, in_ram="800B")
    rows = Ids(0, tree=False).rows(CAPACITY)
    for memory in parts:
        memory.append(**rows)
    columns = [memory.columns["x"] for memory in parts]
    assert all(isinstance(column, ShardRows) for column in columns)
    assert 60 * 15 <= sum(column.nbytes for column in columns) <= 62 * 15
    assert max(column.nbytes for column in columns) <= 17 * 15
    for memory in parts:
        memory.keep(torch.arange(0, CAPACITY, 3))
        before = memory.read("x", torch.arange(20)[memory.share(torch.arange(20)).mine])
        memory.columns["x"].shrink(len(memory))
        assert torch.equal(before, memory.read("x", torch.arange(20)[memory.share(torch.arange(20)).mine]))
    assert sum(memory.columns["x"].nbytes for memory in parts) == 20 * 15


def test_reading_what_another_rank_holds_is_an_error_that_says_where_it_is() -> None:
    memory = spread(2)[1]
    memory.append(**Ids(0, tree=False).rows(30))
    theirs = (~memory.share(torch.arange(30)).mine).nonzero().flatten()  # type: ignore[operator]
    with pytest.raises(OnAnotherRank, match=f"slot {int(theirs[0])} isn't on rank 1: 2 ranks hold a part"):
        memory.read("x", theirs[:2])
    for whole in (lambda: memory["x"], memory.state_dict, memory.snapshot):
        with pytest.raises(OnAnotherRank):
            whole()
    with pytest.raises(UsageError, match="divided among 2 ranks, of which this is number 1"):
        memory.spread_over(Ranks(0, 3))


def test_inputs_stay_on_every_rank_while_they_are_few_or_of_unequal_length() -> None:
    few, uneven = spread(2, in_ram="1KB")[0], spread(2)[0]
    few.append(**Ids(0, tree=False).rows(30))
    words = Ragged(torch.arange(60), torch.full((30,), 2))
    uneven.append(x={"words": words, "image": torch.rand(30, 4)}, y=torch.zeros(30), id=torch.arange(30))
    assert isinstance(few.columns["x"], Rows)
    assert few.share(torch.arange(30)).mine is None
    assert isinstance(uneven.columns["x.words"], Sequences)
    assert isinstance(uneven.columns["x.image"], FileRows)


def test_ids_of_any_stride_are_dealt_out_evenly() -> None:
    for world in (2, 3, 4, 7, 8):
        for stride in (1, 2, 3, 4, 8, 10, 60_000):
            ids = torch.arange(0, 5000 * stride, stride)
            counts = torch.bincount(owners(ids, world), minlength=world)
            assert (counts - 5000 / world).abs().max() <= 60, (world, stride)
