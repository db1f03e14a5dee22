"""A memory goes back to what it was, whatever happened to it, and holds no second copy of itself for that."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pdcl.past import journal
from pdcl.past.columns import Sequences
from pdcl.past.store import Memory
from pdcl.ragged import Ragged
from pdcl.storage.serialize import same


def rows(count: int, random: torch.Generator, form: str = "tensor") -> dict[str, Any]:
    x = torch.randint(0, 255, (count, 3, 4), generator=random, dtype=torch.uint8)
    lengths = torch.randint(0, 6, (count,), generator=random)
    words = Ragged(torch.randint(0, 99, (int(lengths.sum()),), generator=random), lengths)
    return {
        "x": {"tensor": x, "sequences": words, "dict": {"image": x, "words": words}}[form],
        "y": torch.randint(0, 5, (count,), generator=random),
        "score": torch.rand(count, generator=random),
        "outputs": torch.rand(count, 2, generator=random),
    }


def change(memory: Memory, random: torch.Generator, form: str) -> None:
    """One of the things that methods do to a memory, at random."""
    draw = int(torch.randint(6, (), generator=random))
    if draw == 0:
        memory.add_reservoir(random, **rows(7, random, form))
    elif draw == 1:
        slots = torch.randperm(len(memory), generator=random)[: int(0.8 * len(memory))]
        memory.keep(slots)
    elif draw == 2:
        memory.append(**rows(min(3, memory.capacity - len(memory)), random, form))
    elif draw == 3:
        memory.widen("outputs", torch.rand(len(memory), 1, generator=random))
        memory.columns["outputs"].data = memory.columns["outputs"].data[:, :2].contiguous()  # type: ignore[union-attr]
    elif draw == 4:
        memory["score"][: len(memory) // 2] += 1
        memory["outputs"].zero_()
    else:
        slots = torch.randint(len(memory), (5,), generator=random).unique()
        memory.write(slots, **rows(len(slots), random, form))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("strip", [1, 2**22])
@pytest.mark.parametrize("form", ["tensor", "sequences", "dict"])
def test_any_sequence_of_changes_is_undone(seed: int, strip: int, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "STRIP", strip)
    random = torch.Generator().manual_seed(seed)
    memory = Memory(30 if seed % 2 else "1500B")
    memory.add_reservoir(random, **rows(10 + seed, random, form))
    before, held = memory.state_dict(), memory.snapshot()
    for _ in range(12):
        change(memory, random, form)
    memory.restore(held)
    assert same(memory.state_dict(), before)


@pytest.mark.parametrize("form", ["tensor", "dict"])
def test_rings_are_undone(form: str) -> None:
    random = torch.Generator().manual_seed(0)
    memory = Memory(12)
    memory.allocate(**rows(1, random, form))
    memory.start_ring(2)
    memory.add_ring(torch.tensor([0, 1] * 10), **rows(20, random, form))
    before, held = memory.state_dict(), memory.snapshot()
    memory.start_ring(3)
    memory.add_ring(torch.tensor([0, 1, 2] * 5), **rows(15, random, form))
    assert not same(memory.state_dict(), before)
    memory.restore(held)
    assert same(memory.state_dict(), before)


def test_an_empty_memory_bounded_in_bytes_forgets_how_large_a_sample_was() -> None:
    random = torch.Generator().manual_seed(0)
    memory = Memory("1KB")
    held = memory.snapshot()
    memory.add_reservoir(random, **rows(3, random))
    memory.restore(held)
    assert (len(memory), memory.columns) == (0, {})
    memory.add_reservoir(random, x=torch.zeros(2, 100), y=torch.zeros(2), task=torch.zeros(2), id=torch.zeros(2))
    assert memory.capacity == 2


def test_sequences_are_not_copied_for_the_journal() -> None:
    memory, words = Memory(1000), Ragged(torch.zeros(500_000), torch.full((1000,), 500))
    memory.append(x=words, y=torch.zeros(1000))
    column = memory.columns["x"]
    assert isinstance(column, Sequences)
    values = column.values
    held = memory.snapshot()
    memory.replace(torch.arange(990), x=Ragged(torch.ones(50), torch.full((10,), 5)), y=torch.ones(10))
    assert held.nbytes <= 10 * 4
    memory.restore(held)
    assert column.values is values
    assert bool((memory["x"].values == 0).all())


def test_undoing_holds_only_the_rows_that_went(monkeypatch: pytest.MonkeyPatch) -> None:
    random = torch.Generator().manual_seed(0)
    memory = Memory(1000)
    plain: dict[str, Any] = {"x": torch.zeros(1000, 500), "y": torch.zeros(1000)}
    memory.append(**plain)
    held = memory.snapshot()
    memory.replace(torch.arange(990), x=torch.ones(10, 500), y=torch.ones(10))
    assert held.nbytes == 10 * (500 + 1) * 4
    memory.restore(held)
    assert bool((memory["x"] == 0).all())
    del random
