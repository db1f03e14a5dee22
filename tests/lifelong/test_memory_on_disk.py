"""A memory on disk: own memory stays small, killed runs go on to the bit, models are saved and read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from pdcl.storage.serialize import BadState, tensors_in
from pdcl.storage.tensor_file import TensorFile

STARTED = Path(__file__).parents[1] / "started"
SAMPLES, WIDTH, HELD = 20_000, 1536, 16_000
# Learns two tasks from a file, in a run that may end half-way through writing a file of rows; then saves and loads.
# Prints the largest growth of anonymous memory in MB, and what came out.
CHILD = """
import hashlib, json, os, signal, sys
import numpy as np, torch
torch.set_num_threads(1)
import pdcl
from own_memory import growth
from pdcl.records import row_chain
from pdcl.storage import disk

row_chain.PIECE = 2**23
os.fsync = lambda handle: None
method, folder, in_ram, out, resumed, kill_at, saved = sys.argv[1:]

write, files = disk.write, [0]
def dying(path, content):
    if path.name.startswith("rows-"):
        files[0] += 1
        if files[0] == int(kill_at):
            write(path, content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
    write(path, content)
disk.write = dying

warm = pdcl.from_tasks([(np.zeros((40, 8), "float32"), np.arange(40) % 2)] * 2)
pdcl.run(warm, method, network="linear", memory=20, epochs=1)
x, y = np.load(folder + "/x.npy", mmap_mode="r"), np.arange(SAMPLES) % 4
half, tested = SAMPLES // 2, x[:1000]
tasks = [(x[part], y[part], tested, y[:1000]) for part in (slice(0, half), slice(half, SAMPLES))]
stream = pdcl.from_tasks(tasks)
worst = growth()
learner = pdcl.learner(method, "linear", memory=HELD, memory_in_ram=in_ram, lr=0.01)
place = {"resume": resumed} if resumed else {"out": out}
found = pdcl.run(stream, learner, epochs=1, batch=500, checkpoint_every=7, **place)

def held(store):
    digest = hashlib.sha256()
    for slots in torch.arange(len(store)).split(500):
        digest.update(store.read("x", slots).numpy().tobytes() + store.read("y", slots).numpy().tobytes())
    return digest.hexdigest()

if saved:
    learner = pdcl.PDCL("linear", memory=HELD, memory_in_ram=in_ram, lr=0.01)
    learner.learn(x[:half], y[:half], epochs=1, batch=500)
    learner.learn(x[half:], y[half:], epochs=1, batch=500)
    own = held(learner.store)
    learner.save(saved)
    assert held(pdcl.load(saved).store) == own
weights = b"".join(value.numpy().tobytes() for value in found.learner.model.state_dict().values())
kind = type(found.learner.store.columns["x"]).__name__
results = [found.accuracy, hashlib.sha256(weights).hexdigest(), held(found.learner.store)]
print(json.dumps({"worst": worst[0], "kind": kind, "size": len(found.learner.store), "results": results}))
""".replace("SAMPLES", str(SAMPLES)).replace("HELD", str(HELD))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data")
    x = np.lib.format.open_memmap(place / "x.npy", "w+", np.float32, (SAMPLES, WIDTH))
    for start in range(0, SAMPLES, 1000):
        x[start : start + 1000] = np.random.default_rng(start).random((1000, WIDTH), dtype=np.float32)
    return place


def child(
    method: str, folder: Path, in_ram: str, out: Path, resumed: Any = "", kill_at: int = 0, saved: Any = ""
) -> subprocess.CompletedProcess[str]:
    words = [method, str(folder), in_ram, str(out), str(resumed), str(kill_at), str(saved)]
    words = [sys.executable, "-c", CHILD, *words]
    return subprocess.run(words, cwd=STARTED, capture_output=True, text=True, check=False)


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def in_ram(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return told(child("pdcl", folder, "1GB", tmp_path_factory.mktemp("whole")))


def test_own_memory_stays_small_and_results_are_the_same(folder: Path, in_ram: dict[str, Any], tmp_path: Path) -> None:
    on_disk = told(child("pdcl", folder, "1MB", tmp_path / "disk", saved=tmp_path / "model"))
    assert (in_ram["kind"], on_disk["kind"]) == ("Rows", "FileRows")
    assert on_disk["size"] == HELD
    held = HELD * WIDTH * 4 / 2**20
    assert in_ram["worst"] > held
    assert on_disk["worst"] < 0.8 * held
    assert on_disk["results"] == in_ram["results"]


@pytest.mark.parametrize("kill_at", [5, pytest.param(14, marks=pytest.mark.slow)])
def test_killed_in_the_middle_of_a_file_of_rows_a_run_goes_on_to_the_bit(
    kill_at: int, folder: Path, in_ram: dict[str, Any], tmp_path: Path
) -> None:
    killed = child("pdcl", folder, "1MB", tmp_path / "cut", kill_at=kill_at)
    assert killed.returncode == -9, killed.stderr
    (run,) = (tmp_path / "cut").iterdir()
    resumed = told(child("pdcl", folder, "1MB", tmp_path, resumed=run))
    assert resumed["kind"] == "FileRows"
    assert resumed["results"] == in_ram["results"]
    assert resumed["worst"] < 0.8 * HELD * WIDTH * 4 / 2**20


def test_a_file_in_pieces_is_what_safetensors_reads() -> None:
    tensors = {
        "flags": torch.rand(7) > 0.5, "x": torch.rand(3, 5), "y": torch.arange(11), "none": torch.zeros(0, 4),
        "half": torch.rand(2, 3).bfloat16(), "one": torch.tensor(2.5, dtype=torch.float64),
    }  # fmt: skip
    found = safetensors.torch.load(b"".join(TensorFile(tensors)))
    assert found.keys() == tensors.keys()
    assert all(
        torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in tensors.items()
    )


def test_a_mapped_file_is_read_as_it_was_written_and_a_damaged_one_refused(tmp_path: Path) -> None:
    import mmap

    def mapped(content: bytes) -> mmap.mmap:
        (tmp_path / "file").write_bytes(content)
        with (tmp_path / "file").open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    tensors = {"x": torch.rand(3, 5), "y": torch.arange(11), "none": torch.zeros(0, 4)}
    good = safetensors.torch.save(tensors)
    found = tensors_in(mapped(good))
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    random = np.random.default_rng(0)
    bad = [
        good[:-1],
        good + b"x",
        good[:5],
        b"\xff" * 20,
        good.replace(b"[3,5]", b"[3,6]"),
        good.replace(b"I64", b"X64"),
    ]
    bad += [good.replace(b'"shape"', b'"shapf"'), good.replace(b"[3,5]", b"[-3,-5]")]
    for _ in range(200):
        cut = bytearray(good)
        cut[int(random.integers(0, 100))] = int(random.integers(0, 256))
        bad.append(bytes(cut))
    refused = 0
    for content in bad:
        try:
            known = safetensors.torch.load(content)
        except Exception:
            refused += 1
            with pytest.raises(BadState):
                tensors_in(mapped(content))
        else:
            read = tensors_in(mapped(content))
            assert all(torch.equal(read[name], tensor) for name, tensor in known.items())
    assert refused > 50
