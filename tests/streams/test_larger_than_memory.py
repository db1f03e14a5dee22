"""Data in files: read ahead in order, converted row by row, and never held as a whole."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

import pdcl
from pdcl.storage.serialize import same
from pdcl.streams.checks import BadData
from pdcl.streams.data import DatasetData
from pdcl.streams.gathering import collected
from pdcl.streams.readers import read_ahead
from pdcl.trees import joined

STARTED = Path(__file__).parents[1] / "started"
# Learns, evaluates and saves; prints the largest growth of anonymous memory since the data was opened, in MB.
SMALL_MEMORY = """
import sys
import numpy as np, torch
torch.set_num_threads(1)
import pdcl
from own_memory import growth

folder, samples = sys.argv[1], int(sys.argv[2])
learner = pdcl.PDCL("linear", memory=50, lr=0.01)
warm = np.random.default_rng(0).random((64, 1024), dtype=np.float32)
pdcl.PDCL("linear", memory=20).learn(warm, np.arange(64) % 2)
x = np.load(folder + "/x.npy", mmap_mode="r")
y = np.arange(samples) % 4
worst = growth()
audit = {"audit": folder + "/audit", "audit_share": 0.05} if sys.argv[3] == "audit" else {}
for half in range(2):
    part = slice(half * samples // 2, (half + 1) * samples // 2)
    learner.learn(x[part], y[part], epochs=1, batch=250, **audit)
learner.evaluate(x, y)
learner.predict(x)
learner.save(folder + "/model")
print(worst[0])
"""


@pytest.mark.parametrize("audit", ["", "audit"])
def test_memory_stays_small_while_a_large_file_is_learned_evaluated_and_saved(audit: str, tmp_path: Path) -> None:
    samples = 64_000
    x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float64, (samples, 1024))
    block = np.random.default_rng(0).random((1000, 1024))
    for start in range(0, samples, 1000):
        x[start : start + 1000] = block + start / samples
    size = x.nbytes / 2**20
    del x
    words = [sys.executable, "-c", SMALL_MEMORY, str(tmp_path), str(samples), audit]
    done = subprocess.run(words, cwd=STARTED, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert size == 500
    assert float(done.stdout) < 85


@pytest.mark.parametrize("dtype", ["float64", "float16", "float32", "uint8", "uint16"])
def test_a_mapped_array_gives_what_the_array_gives(dtype: str, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 9, (120, 6)).astype(dtype)
    y = np.arange(120) % 4
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    results = []
    for data in (x, mapped):
        learner = pdcl.PDCL("mlp:8", memory=20, seed=3)
        learner.learn(data, y, epochs=1, batch=16)
        results.append((learner.predict(data), learner.model.state_dict()))
    assert np.array_equal(results[0][0], results[1][0])
    assert all(torch.equal(value, results[1][1][name]) for name, value in results[0][1].items())


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8"])
def test_what_is_set_aside_of_a_mapped_array_is_what_is_set_aside_of_the_array(dtype: str, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 250, (2600, 6)).astype(dtype)
    y = np.arange(2600) % 4
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    results: list[dict[str, Any]] = []
    for place, data in (("array", x), ("mapped", mapped)):
        learner, audit = pdcl.PDCL("mlp:8", memory=20, seed=3), tmp_path / place
        for part in (slice(0, 1600), slice(1600, 2600)):
            learner.learn(data[part], y[part], epochs=1, batch=16, audit=audit, audit_share=0.7)
        # Learned again under the same name: nothing is set aside twice.
        learner.learn(data[1600:], y[1600:], epochs=1, batch=16, name="1b", audit=audit, audit_share=0.7)
        with np.load(audit / "samples.npz") as held:
            found = {name: torch.as_tensor(held[name]) for name in ("x", "y")} | {"tasks": held["task"].tolist()}
        weights, references = learner.model.state_dict(), learner.lineage.references
        wrong = references.wrong[references.task.argsort(stable=True)]
        results.append({**found, "weights": weights, "wrong": wrong, "memory": learner.store.state_dict()["columns"]})
    assert len(results[0]["x"]) == 1820
    assert same(*results)


def test_a_row_in_a_file_that_is_not_finite_is_named(tmp_path: Path) -> None:
    x = np.zeros((2500, 3))
    x[2100, 1], x[2300, 0] = np.inf, np.nan
    np.save(tmp_path / "x.npy", x)
    learner = pdcl.PDCL("linear", memory=20)
    with pytest.raises(BadData, match="row 2100 holds NaN or infinite"):
        learner.learn(np.load(tmp_path / "x.npy", mmap_mode="r"), np.arange(2500) % 2, epochs=1)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    with pytest.raises(BadData, match=r"row 2[13]00 holds NaN or infinite"):
        learner.learn(mapped, np.arange(2500) % 2, epochs=1, audit=tmp_path / "audit", audit_share=0.01)
    learner.learn(x[:2000], np.arange(2000) % 2, epochs=1)
    with pytest.raises(BadData, match="row 2100 holds NaN or infinite"):
        learner.predict(np.load(tmp_path / "x.npy", mmap_mode="r"))


def test_results_of_pieces_are_collected_in_order_also_where_their_widths_differ() -> None:
    parts = [torch.rand(3, 100_000), torch.rand(2, 100_000)]
    assert torch.equal(collected(iter(parts), 5), torch.cat(parts))
    uneven = [torch.rand(3, 4, 2), torch.rand(2, 6, 2), torch.rand(1, 5, 2)]
    assert torch.equal(collected(iter(uneven), 6), joined(uneven))


def test_reading_ahead_keeps_order_stays_bounded_and_ends_its_thread() -> None:
    begun: list[int] = []

    def read(number: int) -> int:
        begun.append(number)
        return number

    found = read_ahead(read, range(100), ahead=3)
    assert [next(found) for _ in range(5)] == [0, 1, 2, 3, 4]
    time.sleep(0.05)
    assert max(begun) <= 5 + 3
    found.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pdcl-read-ahead")]


def test_an_error_in_reading_comes_to_the_one_who_reads() -> None:
    with pytest.raises(ZeroDivisionError):
        list(read_ahead(lambda number: 1 / number, [2, 1, 0]))


class Counting(Dataset[Any]):
    """Notes the threads that read it."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.targets = torch.arange(64) % 2

    def __len__(self) -> int:
        return 64

    def __getitem__(self, row: int) -> Any:
        self.threads.add(threading.get_ident())
        time.sleep(0.001)
        return torch.full((4,), float(row)), int(self.targets[row])


def test_the_threads_of_a_dataset_are_made_once() -> None:
    dataset = Counting()
    data = DatasetData(dataset, dataset.targets, workers=3).subset(torch.arange(64))
    for index in torch.arange(64).split(8):
        x, _ = data.fetch(index)
        assert x[:, 0].tolist() == index.tolist()
    assert len(dataset.threads) <= 3


def test_a_dataset_that_reads_whole_batches_is_asked_for_them() -> None:
    class Batched(Counting):
        asked: list[list[int]] = []  # noqa: RUF012

        def __getitems__(self, rows: list[int]) -> list[Any]:
            self.asked.append(rows)
            return [(torch.full((4,), float(row)), 0) for row in rows]

    dataset = Batched()
    x, _ = DatasetData(dataset, dataset.targets).fetch(torch.tensor([5, 3]))
    assert dataset.asked == [[5, 3]]
    assert x[:, 0].tolist() == [5, 3]
