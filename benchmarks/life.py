"""What a long life costs: the time of a task and the size of a saved model, early and late; and the memory of `learn`.

python benchmarks/life.py
"""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import pdcl
from pdcl.methods.catalog import method

TASKS, EARLY = 300, 10
GIGABYTE = 10**9
LARGE = """
import sys; sys.path[:0] = [{here!r}]
import life
print(life.extra_memory_mb())
"""


def task(number: int, features: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """40 samples of two classes, which come back in every task."""
    random = np.random.default_rng(number)
    y = random.integers(0, 2, 40)
    return (random.normal(size=(40, features)) + 2 * y[:, None]).astype(np.float32), y


def life(name: str) -> None:
    learner = method(name).load()("mlp:16", memory=600, lr=0.05, **method(name).defaults)
    seconds, sizes = [], []
    with tempfile.TemporaryDirectory() as place:
        for number in range(TASKS):
            begun = time.process_time()
            learner.learn(*task(number), epochs=2)
            seconds.append(time.process_time() - begun)
            if number + 1 in (EARLY, TASKS):
                learner.save(Path(place) / str(number))
                sizes.append((Path(place) / str(number) / "state.json").stat().st_size)
    early, late = (statistics.median(seconds[end - 5 : end]) for end in (EARLY, TASKS))
    print(f"{name}, learn 40 samples: {1e3 * early:.1f} ms at task {EARLY}, {1e3 * late:.1f} ms at task {TASKS}")
    print(f"{name}, state.json: {sizes[0] / 1e3:.1f} kB at task {EARLY}, {sizes[1] / 1e3:.1f} kB at task {TASKS}")


def extra_memory_mb() -> float:
    """By how much the peak of this process rises while a task is learned into a memory of 1 GB."""
    torch.set_num_threads(1)
    learner = pdcl.PDCL("linear", memory=GIGABYTE // 3072, lr=0.01)
    x = torch.zeros(1, 3072, dtype=torch.uint8).expand(GIGABYTE // 3072, -1)
    learner.learn(x, torch.arange(len(x)) % 10, epochs=1, batch=2048)
    fresh = torch.zeros(500, 3072, dtype=torch.uint8)
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _status_mb("VmRSS")
    learner.learn(fresh, torch.arange(500) % 10, epochs=1)
    assert learner.store is not None
    assert learner.store.counts(2)[1] > 0
    return _status_mb("VmHWM") - before


def _status_mb(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name}:"))) / 2**10


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in ("derpp", "pdcl"):
        life(name)
    if not sys.platform.startswith("linux"):
        sys.exit("the memory of learn is measured on Linux only")
    program = LARGE.format(here=str(Path(__file__).parent))
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    print(f"learn into 1 GB of memory: {float(found):.0f} MB more than before")
