"""Inputs beyond a number of bytes lie in a scratch file, and memory holds what it would hold in RAM, to the bit."""

from __future__ import annotations

import copy
import errno
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

import pdcl
from pdcl.errors import StateError, UsageError
from pdcl.lab.methods.er import ER
from pdcl.past.columns import Rows, Sequences, leaf_state
from pdcl.past.file_rows import FileRows, fetched
from pdcl.past.store import Memory
from pdcl.ragged import Ragged
from pdcl.storage.serialize import same
from pdcl.testing import SITUATIONS, gaussian_stream
from pdcl.trees import flatten

ON_DISK = "1B"
CAPACITY = 60


def rows(count: int, random: torch.Generator, tree: bool) -> dict[str, Any]:
    image = torch.randint(0, 255, (count, 3, 5), generator=random, dtype=torch.uint8)
    lengths = torch.randint(0, 4, (count,), generator=random)
    words = Ragged(torch.randint(0, 99, (int(lengths.sum()),), generator=random), lengths)
    x = {"image": image, "table": torch.rand(count, 2, generator=random), "words": words} if tree else image
    return {"x": x, "y": torch.randint(0, 5, (count,), generator=random), "score": torch.rand(count, generator=random)}


def change(memory: Memory, random: torch.Generator, tree: bool) -> None:
    draw = int(torch.randint(5, (), generator=random))
    some = torch.randperm(len(memory), generator=random)
    if draw == 0:
        # A reservoir is offered more samples only while it holds all it has taken.
        memory.reservoir.seen = len(memory)
        memory.reservoir.forget_decisions()
        memory.add_reservoir(random, **rows(5, random, tree))
    elif draw == 1:
        memory.keep(some[: int(0.8 * len(memory))])
    elif draw == 2:
        memory.append(**rows(min(9, memory.capacity - len(memory)), random, tree))
    elif draw == 3:
        new = min(2, memory.capacity - len(memory))
        memory.replace(some[: len(memory) - 1], **rows(new, random, tree))
    else:
        memory.write(some[:3], **rows(len(some[:3]), random, tree))


def tensors(tree: Any) -> dict[str, torch.Tensor]:
    states = [leaf_state(name, leaf) for name, leaf in flatten(tree, "x").items()]
    return {name: tensor for state in states for name, tensor in state.items()}


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_any_sequence_of_changes_and_undone_ones_leaves_what_ram_would_hold(seed: int, tree: bool) -> None:
    held = [(Memory(CAPACITY, in_ram=in_ram), torch.Generator().manual_seed(seed)) for in_ram in ("1GB", ON_DISK)]
    for memory, random in held:
        memory.add_reservoir(random, **rows(40, random, tree))
    for turn in range(12):
        states = []
        for memory, random in held:
            before = memory.snapshot() if turn % 3 else None
            for _ in range(3):
                change(memory, random, tree)
            if before is not None and turn % 3 == 1:
                memory.restore(before)
            memory.release()
            slots = torch.randint(len(memory), (20,), generator=random)
            drawn, used = tensors(memory.read("x", slots)), tensors(memory["x"])
            states.append({"held": memory.state_dict(), "drawn": drawn, "used": used, "bytes": memory.stored})
        assert same(*states)
    kinds = [{name: type(column) for name, column in memory.columns.items()} for memory, _ in held]
    assert kinds[0]["x.image" if tree else "x"] is Rows
    assert kinds[1]["x.image" if tree else "x"] is FileRows
    assert kinds[1]["y"] is Rows
    assert not tree or kinds[1]["x.words"] is Sequences


def test_inputs_move_to_the_file_when_they_pass_the_bound_and_come_back_when_that_is_undone() -> None:
    memory = Memory(100, in_ram="1KB")
    first = torch.arange(200, dtype=torch.float32).view(20, 10) * 1.5
    memory.append(x=first, y=torch.arange(20))
    assert isinstance(memory.columns["x"], Rows)
    before = memory.snapshot()
    memory.append(x=first[:10] + 1, y=torch.arange(10))
    assert isinstance(memory.columns["x"], FileRows)
    assert torch.equal(memory["x"], torch.cat([first, first[:10] + 1]))
    memory.restore(before)
    assert isinstance(memory.columns["x"], Rows)
    assert torch.equal(memory["x"], first)


def test_dropping_samples_reads_and_writes_none_and_their_room_is_used_again() -> None:
    memory = Memory(1000, in_ram=ON_DISK)
    memory.append(x=torch.rand(1000, 8), y=torch.zeros(1000))
    column = memory.columns["x"]
    assert isinstance(column, FileRows)
    for turn in range(5):
        held = memory["x"].clone()
        kept = torch.randperm(1000)[:900]
        new = torch.full((100, 8), float(turn))
        memory.replace(kept, x=new, y=torch.zeros(100))
        assert torch.equal(memory["x"], torch.cat([held[kept], new]))
        assert len(column.data) == 1000


@pytest.mark.parametrize("bad", [torch.rand(5, 9), torch.rand(5, 8).double()])
def test_rows_of_another_shape_or_dtype_are_refused_and_change_nothing(bad: torch.Tensor) -> None:
    memory = Memory(20, in_ram=ON_DISK)
    memory.append(x=torch.rand(10, 8), y=torch.zeros(10))
    held = memory["x"].clone()
    with pytest.raises(UsageError, match=r"'x' holds \(8,\) torch.float32, got"):
        memory.append(x=bad, y=torch.zeros(5))
    assert torch.equal(memory["x"], held)


def test_a_snapshot_costs_as_many_rows_of_the_file_as_are_written_since() -> None:
    memory = Memory(1000, in_ram=ON_DISK)
    memory.append(x=torch.rand(1000, 8), y=torch.zeros(1000))
    column, held = memory.columns["x"], memory["x"].clone()
    assert isinstance(column, FileRows)
    before = memory.snapshot()
    memory.replace(torch.arange(100, 1000), x=torch.rand(100, 8), y=torch.zeros(100))
    memory.write(torch.arange(50), x=torch.rand(50, 8), y=torch.zeros(50))
    assert len(column.data) == 1150
    # What the journal holds of `y` alone.
    assert before.nbytes < 50 * 8 * 4
    memory.restore(before)
    assert torch.equal(memory["x"], held)


def test_copies_have_files_of_their_own() -> None:
    memory = Memory(50, in_ram=ON_DISK)
    memory.append(x=torch.rand(40, 8), y=torch.zeros(40))
    held = memory["x"].clone()
    copies = [copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))]
    view, state = memory["x"], memory.state_dict()
    memory.write(torch.arange(40), x=torch.zeros(40, 8), y=torch.zeros(40))
    assert not view.any()
    assert torch.equal(state["columns"]["x"], held)
    for each in copies:
        assert isinstance(each.columns["x"], FileRows)
        assert torch.equal(each["x"], held)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float64, torch.bool])
def test_every_dtype_lies_in_the_file_as_it_is(dtype: torch.dtype) -> None:
    memory = Memory(50, in_ram=ON_DISK)
    x = (torch.rand(30, 3) * 9).to(dtype)
    memory.append(x=x, y=torch.zeros(30))
    assert memory["x"].dtype == dtype
    assert torch.equal(memory["x"], x)


def test_what_is_stored_is_fetched_in_pieces_into_a_file() -> None:
    x, y = torch.rand(2500, 4), torch.arange(2500)
    asked: list[int] = []

    def fetch(index: torch.Tensor) -> Any:
        asked.append(len(index))
        return {"a": x[index], "b": x[index] + 1}, y[index]

    positions = torch.randperm(2500)
    memory = Memory(2500, in_ram="10KB")
    memory.allocate(x={"a": x[:1], "b": x[:1]}, y=y[:1])
    few, _ = fetched(memory, fetch, positions[:100])
    assert asked == [100]
    assert torch.equal(few["a"], x[positions[:100]])
    found, targets = fetched(memory, fetch, positions)
    assert asked == [100, 1000, 1000, 500]
    assert torch.equal(found["b"], x[positions] + 1)
    assert torch.equal(targets, positions)


@pytest.mark.parametrize("method", ["pdcl", "er", "er-ring", "derpp", "gss", "gem", "agem", "icarl", "xder"])
def test_a_run_ends_the_same_wherever_inputs_are_held(method: str) -> None:
    stream, found = gaussian_stream(SITUATIONS["plain"]), []
    for in_ram in ("1GB", ON_DISK):
        result = pdcl.run(stream, method, network="mlp:8", memory=12, memory_in_ram=in_ram, epochs=2, batch=8)
        assert result.learner is not None
        assert result.learner.store is not None
        kind = type(result.learner.store.columns["x"])
        assert kind is (Rows if in_ram == "1GB" else FileRows)
        found.append((result.accuracy, result.learner.state_dict()))
    assert found[0][0] == found[1][0]
    assert same(found[0][1], found[1][1])


def test_a_full_disk_is_an_error_that_names_the_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StateError, match=r"no room for 512 bytes.*No space left.*set TMPDIR"):
        Memory(50, in_ram=ON_DISK).append(x=torch.zeros(16, 8), y=torch.zeros(16))


@pytest.mark.parametrize("given", ["12", "much", "1TB"])
def test_a_bound_without_bytes_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=f"memory_in_ram={given!r} is no number of bytes"):
        ER("linear", memory_in_ram=given)


def test_inputs_go_to_a_file_from_the_row_on_that_is_too_much_for_ram_and_stay_there() -> None:
    """Fifteen bytes of image a row, and targets stay in RAM."""
    memory, random = Memory(CAPACITY, in_ram="150B"), torch.Generator().manual_seed(0)
    memory.append(**rows(4, random, tree=False))
    assert [memory.on_disk(count) for count in (10, 11)] == [False, True]
    memory.append(**rows(7, random, tree=False))
    memory.keep(torch.arange(2))
    assert memory.on_disk(1)
    held = memory.columns["x"]
    assert (held.stored(2), held.nbytes) == (30, 15 * len(held.places))
