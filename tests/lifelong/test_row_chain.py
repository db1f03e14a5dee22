"""Checkpoints of a large memory write the rows that are new, and give back what was held, to the bit."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import pdcl
from pdcl.errors import StateError
from pdcl.learning.loop import Position
from pdcl.past.store import Memory
from pdcl.ragged import Ragged
from pdcl.records import checkpoint, row_chain
from pdcl.records.row_chain import RowChain
from pdcl.storage import disk
from pdcl.storage.serialize import same
from pdcl.testing import SITUATIONS, gaussian_stream

STREAM = gaussian_stream(SITUATIONS["plain"])
RUN: Any = {"epochs": 2, "batch": 8, "checkpoint_every": 1}


@pytest.fixture(autouse=True)
def every_memory_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_chain, "SMALLEST", 1)
    monkeypatch.setattr(row_chain, "PIECE", 300)


class Learning:
    """As much of a learner as a checkpoint asks for."""

    def __init__(self, memory: Memory) -> None:
        self.store = memory

    def check_finite(self) -> None: ...

    def state_dict(self) -> dict[str, Any]:
        return {"network": {"w": torch.zeros(1)}, "memory": self.store.state_dict()}


def loop_of(memory: Memory) -> Any:
    return SimpleNamespace(learner=Learning(memory), stream=STREAM, position=Position(), state_dict=dict)


def rows(count: int, random: torch.Generator, ragged: bool) -> dict[str, Any]:
    lengths = torch.randint(0, 6, (count,), generator=random)
    words = Ragged(torch.randint(0, 99, (int(lengths.sum()),), generator=random), lengths)
    image = torch.randint(0, 255, (count, 3, 4), generator=random, dtype=torch.uint8)
    return {
        "x": {"image": image, "words": words} if ragged else image,
        "y": torch.randint(0, 5, (count,), generator=random),
        "score": torch.rand(count, generator=random),
    }


def change(memory: Memory, random: torch.Generator, ragged: bool) -> None:
    draw = int(torch.randint(5, (), generator=random))
    if draw == 0:
        memory.add_reservoir(random, **rows(5, random, ragged))
    elif draw == 1:
        memory.keep(torch.randperm(len(memory), generator=random)[: int(0.9 * len(memory))])
    elif draw == 2:
        memory.append(**rows(min(3, memory.capacity - len(memory)), random, ragged))
    elif draw == 3:
        memory["score"][: len(memory) // 2] += 1
    else:
        slots = torch.randint(len(memory), (3,), generator=random).unique()
        memory.write(slots, **rows(len(slots), random, ragged))


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_of_changes_is_given_back(seed: int, ragged: bool, tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(seed)
    memory, chain, lengths = Memory(60), RowChain(), set()
    memory.add_reservoir(random, **rows(50, random, ragged))
    for _ in range(12):
        for _ in range(int(torch.randint(3, (), generator=random))):
            change(memory, random, ragged)
        checkpoint.write(tmp_path, loop_of(memory), 0, {}, chain)
        found = checkpoint.read(tmp_path)
        assert found is not None
        held = found.state["learner"]["memory"]
        assert same(held, memory.state_dict())
        assert list(held["columns"]) == list(memory.state_dict()["columns"])
        other = Memory(60)
        other.load_state_dict(held)
        assert same(other.state_dict(), memory.state_dict())
        lengths.add(len(chain.links))
    # There were chains of several links, and new ones were begun.
    assert 1 in lengths
    assert max(lengths) > 1


@pytest.mark.parametrize("method", ["pdcl", "er", "er-ring", "derpp"])
def test_a_run_that_was_stopped_goes_on_to_the_same_end(method: str, tmp_path: Path) -> None:
    def learner() -> Any:
        return pdcl.learner(method, "linear", memory=12)

    whole = pdcl.run(STREAM, learner(), out=tmp_path / "whole", **RUN)
    seen: list[object] = []

    def stop(event: object) -> None:
        seen.append(event)
        if len(seen) == 25:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pdcl.run(STREAM, learner(), out=tmp_path / "cut", listeners=[stop], **RUN)
    (path,) = (tmp_path / "cut").iterdir()
    found = checkpoint.read(path)
    assert found is not None
    assert list((path / "checkpoint").glob("rows-*"))
    again = pdcl.run(STREAM, learner(), resume=path, **RUN)
    assert again.accuracy == whole.accuracy
    assert same(again.learner.state_dict(), whole.learner.state_dict())  # type: ignore[union-attr]


def large_memory() -> Memory:
    memory = Memory(1000)
    memory.append(x=torch.zeros(1000, 500), y=torch.zeros(1000), score=torch.zeros(1000))
    return memory


def test_only_new_rows_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_chain, "PIECE", 2**20)
    memory, chain, spent = large_memory(), RowChain(), [0]
    real = disk.write

    def counted(path: Path, content: bytes) -> None:
        spent[0] += len(content)
        real(path, content)

    monkeypatch.setattr(disk, "write", counted)

    def cost() -> int:
        spent[0] = 0
        checkpoint.write(tmp_path, loop_of(memory), 0, {}, chain)
        return spent[0]

    whole = cost()
    assert whole > memory.stored
    assert cost() < whole / 100
    memory.write(torch.arange(0, 20, 2), x=torch.ones(10, 500), y=torch.ones(10), score=torch.ones(10))
    assert cost() < whole / 30
    memory.replace(torch.arange(1, 1000), x=torch.ones(1, 500), y=torch.ones(1), score=torch.ones(1))
    assert cost() < whole / 30
    assert len(chain.links) == 3
    memory.write(torch.arange(600), x=torch.ones(600, 500), y=torch.ones(600), score=torch.ones(600))
    assert cost() > memory.stored
    assert len(chain.links) == 1


@pytest.mark.parametrize("ending", ["crash", "full"])
def test_whatever_fails_the_old_state_or_the_new_is_there(ending: str, tmp_path: Path, faults: Any) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    point, ended = 0, False
    while not ended:
        point += 1
        memory, chain, place = Memory(40), RowChain(), tmp_path / str(point)
        place.mkdir()
        random = torch.Generator().manual_seed(0)
        memory.append(**rows(40, random, False))
        faults.arm(None, OSError)
        checkpoint.write(place, loop_of(memory), 1, {}, chain)
        memory.write(torch.arange(4), **rows(4, random, False))
        checkpoint.write(place, loop_of(memory), 2, {}, chain)
        states = {2: memory.state_dict()}
        memory.write(torch.arange(6, 8), **rows(2, random, False))
        states[3] = memory.state_dict()
        faults.arm(point, faults.error_of_a_crash if ending == "crash" else lambda: full)
        try:
            checkpoint.write(place, loop_of(memory), 3, {}, chain)
            ended = faults.count < point
        except (faults.error_of_a_crash, StateError):
            pass
        faults.arm(None, OSError)
        found = checkpoint.read(place)
        assert found is not None
        assert same(found.state["learner"]["memory"], states[found.events]), point
        checkpoint.write(place, loop_of(memory), 4, {}, chain)
        found = checkpoint.read(place)
        assert found is not None
        assert same(found.state["learner"]["memory"], states[3]), point
    assert point > 15


def test_where_files_cannot_have_two_names_everything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(old: Path, new: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(disk, "link", refuse)
    memory, chain = large_memory(), RowChain()
    for value in (1.0, 2.0):
        memory.write(torch.arange(3), x=torch.full((3, 500), value), y=torch.ones(3), score=torch.ones(3))
        checkpoint.write(tmp_path, loop_of(memory), 0, {}, chain)
        found = checkpoint.read(tmp_path)
        assert found is not None
        assert same(found.state["learner"]["memory"], memory.state_dict())


def test_a_file_that_is_gone_is_written_again(tmp_path: Path) -> None:
    memory, chain = large_memory(), RowChain()
    checkpoint.write(tmp_path, loop_of(memory), 0, {}, chain)
    next((tmp_path / "checkpoint").glob("rows-*")).unlink()
    checkpoint.write(tmp_path, loop_of(memory), 1, {}, chain)
    found = checkpoint.read(tmp_path)
    assert found is not None
    assert found.events == 1
    assert same(found.state["learner"]["memory"], memory.state_dict())


def test_a_checkpoint_that_somebody_else_writes_between_is_no_part_of_the_chain(tmp_path: Path) -> None:
    memory, chain = large_memory(), RowChain()
    checkpoint.write(tmp_path, loop_of(memory), 0, {}, chain)
    memory.write(torch.arange(3), x=torch.ones(3, 500), y=torch.ones(3), score=torch.ones(3))
    checkpoint.write(tmp_path, loop_of(memory), 1, {})
    memory.write(torch.arange(5, 8), x=torch.ones(3, 500), y=torch.ones(3), score=torch.ones(3))
    checkpoint.write(tmp_path, loop_of(memory), 2, {}, chain)
    found = checkpoint.read(tmp_path)
    assert found is not None
    assert same(found.state["learner"]["memory"], memory.state_dict())
