"""Data that can only be iterated is learned as data in RAM is, in an order of blocks, and never held as a whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

import pdcl
from pdcl.errors import UsageError
from pdcl.learning.batches import epoch_order, in_blocks
from pdcl.storage.serialize import same
from pdcl.streams.checks import BadData

STARTED = Path(__file__).parents[1] / "started"
X = np.random.default_rng(0).normal(size=(900, 6)).astype("float32")
Y = (X[:, 0] > 0).astype(int) + 2 * (np.arange(900) % 2)


class Source:
    """Notes where it was begun, and how many samples were read."""

    def __init__(self, x: Any = X, y: Any = Y) -> None:
        self.x, self.y, self.begun, self.read = x, y, list[int](), 0

    def __call__(self, first: int) -> Iterator[Any]:
        self.begun.append(first)
        for x, y in zip(self.x[first:], self.y[first:], strict=True):
            self.read += 1
            yield x, y


class InRam(Dataset[Any]):
    """The oracle: read by index, with the same blocks."""

    def __init__(self, x: Any, y: Any, buffer: int) -> None:
        self.x, self.targets, self.blocks = x, y, torch.arange(len(x)) // buffer

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int) -> Any:
        return torch.as_tensor(self.x[row]), self.targets[row]


def outcome(learner: Any) -> dict[str, Any]:
    lineage = learner.lineage.state_dict()
    return {
        "state": learner.state_dict(), "hashes": [entry["data"] for entry in learner.lineage.entries],
        "seen": {name: value for name, value in lineage.items() if isinstance(value, torch.Tensor)},
    }  # fmt: skip


def learned(make: Any, buffer: int, **more: Any) -> Any:
    learner = pdcl.PDCL("mlp:8", memory=220, tolerance="+20pt", seed=2)
    learner.lineage.key = "00" * 16 if isinstance(learner.lineage.key, str) else b"\0" * 16
    for part in (slice(0, 500), slice(500, 900)):
        learner.learn(make(X[part], Y[part], buffer), epochs=2, batch=16, **more)
    return learner


def iterated(x: Any, y: Any, buffer: int) -> Any:
    return pdcl.Iterated(Source(x, y), buffer=buffer)


def tensors(x: Any, y: Any, _: int) -> Any:
    return TensorDataset(torch.tensor(x), torch.tensor(y))


@pytest.mark.parametrize("buffer", [64, 10_000])
def test_learning_gives_what_data_in_ram_gives_with_witnesses_memory_and_hashes(buffer: int) -> None:
    one, other = (learned(make, buffer) for make in (iterated, InRam))
    assert bool((one.store["role"] == 2).any())
    assert same(outcome(one), outcome(other))


def test_one_block_is_the_order_of_arrays() -> None:
    found = learned(iterated, 10_000)
    assert same(
        outcome(found), outcome(learned(lambda x, y, _: torch.utils.data.TensorDataset(*map(torch.tensor, (x, y))), 0))
    )


def test_what_is_set_aside_is_the_same(tmp_path: Path) -> None:
    found = []
    for name, make in (
        ("iterated", iterated),
        ("ram", lambda x, y, _: torch.utils.data.TensorDataset(*map(torch.tensor, (x, y)))),
    ):
        learner = learned(make, 10_000, audit=tmp_path / name)
        with np.load(tmp_path / name / "samples.npz") as held:
            found.append({"audit": torch.as_tensor(held["x"]), **outcome(learner)["state"]})
    assert same(*found)


def test_blocks_come_in_order_and_each_is_shuffled() -> None:
    data = pdcl.Iterated(Source(), buffer=100)
    order = in_blocks(epoch_order(900, 0, 0, 0), data)  # type: ignore[arg-type]
    for number, block in enumerate(order.split(100)):
        assert block.sort().values.tolist() == list(range(100 * number, 100 * (number + 1)))
        assert block.tolist() != sorted(block.tolist())


def test_at_most_two_blocks_are_held_and_a_pass_reads_each_sample_once() -> None:
    source = Source()
    data = pdcl.Iterated(source, targets=Y, buffer=50)
    assert source.read == 0
    most = 0
    for rows in in_blocks(epoch_order(900, 0, 0, 0), data).split(16):  # type: ignore[arg-type]
        samples = data.__getitems__(rows.tolist())
        assert all(np.array_equal(x, X[row]) for (x, _), row in zip(samples, rows.tolist(), strict=True))
        most = max(most, len(data._reader.held))
    assert most <= 100
    assert (source.read, source.begun) == (900, [0])


def test_in_the_middle_of_a_pass_it_begins_at_the_block_there() -> None:
    source = Source()
    data = pdcl.Iterated(source, targets=Y, buffer=50)
    rows = in_blocks(epoch_order(900, 0, 0, 0), data)[430:]  # type: ignore[arg-type]
    for part in rows.split(16):
        data.__getitems__(part.tolist())
    assert source.begun == [400]
    assert source.read == 500


def test_an_object_that_can_be_iterated_anew_is_read_from_its_beginning() -> None:
    class Endless(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            return iter(zip(torch.tensor(X[:60]), Y[:60], strict=True))

    data = pdcl.Iterated(Endless(), buffer=10)
    assert len(data) == 60
    assert torch.equal(data[45][0], torch.tensor(X[45]))
    assert torch.equal(data[3][0], torch.tensor(X[3]))
    with pytest.raises(BadData, match=r"Endless can't be read by index; give pdcl.Iterated\(dataset\)"):
        pdcl.PDCL("linear", memory=20).learn(Endless())


def test_what_can_be_read_only_once_is_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError, match=r"generator can be read only once.*give a function start\(first\)"):
        pdcl.Iterated(pair for pair in zip(X, Y, strict=True))
    with pytest.raises(BadData, match=r"generator can be read only once; give pdcl.Iterated\(start\)"):
        pdcl.PDCL("linear", memory=20).learn(pair for pair in zip(X, Y, strict=True))


def test_other_samples_in_a_later_pass_are_refused() -> None:
    passes = [0]

    def shuffled(first: int) -> Iterator[Any]:
        passes[0] += 1
        order = np.random.default_rng(passes[0]).permutation(900)[first:]
        return zip(X[order], Y[order], strict=True)

    with pytest.raises(BadData, match=r"sample 0 is another one than it was.*same samples every time"):
        pdcl.PDCL("linear", memory=20).learn(pdcl.Iterated(shuffled), epochs=1)
    data = pdcl.Iterated(lambda first: iter(list(zip(X, Y, strict=True))[first:800]), targets=Y)
    with pytest.raises(BadData, match="ended at sample 800; there were 900"):
        data.__getitems__([850])


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="buffer=0 must be"):
        pdcl.Iterated(Source(), buffer=0)
    with pytest.raises(BadData, match="gave no sample"):
        pdcl.Iterated(lambda first: iter(()))
    with pytest.raises(BadData, match=r"gave float.*pair \(input, target\)"):
        pdcl.Iterated(lambda first: iter([1.0]))  # type: ignore[arg-type,list-item]
    stream = pdcl.from_tasks([(pdcl.Iterated(Source()), pdcl.Iterated(Source()))] * 2)
    with pytest.raises(UsageError, match="this method mixes stored samples into each pass"):
        pdcl.run(stream, "icarl", network="linear", memory=20, epochs=1)


# Learns from samples made one by one, 188 MB of them; prints the largest growth of anonymous memory, in MB.
SMALL_MEMORY = """
import sys
import numpy as np, torch
torch.set_num_threads(1)
import pdcl
from own_memory import growth

noise = np.random.default_rng(0).random(4096, dtype=np.float32)
def start(first):
    for number in range(first, 32_000):
        yield torch.from_numpy(np.roll(noise, number)[:1536].copy()), number % 4

pdcl.PDCL("linear", memory=20).learn(np.zeros((64, 8), "float32"), np.arange(64) % 2)
worst = growth()
learner = pdcl.PDCL("linear", memory=300, tolerance="+9pt")
learner.learn(pdcl.Iterated(start, buffer=int(sys.argv[1])), epochs=1, batch=200)
print(worst[0])
"""


def test_own_memory_follows_the_buffer_and_not_the_data() -> None:
    found = {}
    for buffer in (500, 100_000):
        words = [sys.executable, "-c", SMALL_MEMORY, str(buffer)]
        done = subprocess.run(words, cwd=STARTED, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found[buffer] = float(done.stdout)
    assert found[500] < 110
    assert found[100_000] > 180
