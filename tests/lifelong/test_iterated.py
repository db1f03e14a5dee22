"""A run on data that can only be iterated, killed in the middle of a pass, goes on there and ends the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# Prints what came out, and where iterators began. Kills itself while sample number `kill_at` of all is read.
CHILD = """
import hashlib, json, os, signal, sys
import numpy as np, torch
torch.set_num_threads(1)
import pdcl

os.fsync = lambda handle: None
out, resumed, kill_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
x = np.random.default_rng(0).normal(size=(1200, 6)).astype("float32")
y = (x[:, 0] > 0).astype(int)
begun, read = [], [0]

def source(low, high):
    def start(first):
        begun.append(first)
        for row in range(low + first, high):
            read[0] += 1
            if read[0] == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            yield torch.from_numpy(x[row]), int(y[row])
    return pdcl.Iterated(start, targets=y[low:high], buffer=64)

tests = (torch.from_numpy(x[:100]), torch.from_numpy(y[:100]))
tasks = [(source(low, low + 600), torch.utils.data.TensorDataset(*tests)) for low in (0, 600)]
learner = pdcl.learner("pdcl", "mlp:8", memory=220, tolerance="+20pt")
place = {"resume": resumed} if resumed else {"out": out}
found = pdcl.run(pdcl.from_tasks(tasks), learner, epochs=3, batch=8, checkpoint_every=3, **place)
digest = hashlib.sha256()
for value in [*found.learner.model.state_dict().values(), found.learner.store["x"], found.learner.store["role"]]:
    digest.update(value.numpy().tobytes())
print(json.dumps({"results": [found.accuracy, digest.hexdigest()], "begun": begun, "read": read[0]}))
"""


def child(out: Path, resumed: Any = "", kill_at: int = 0) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", CHILD, str(out), str(resumed), str(kill_at)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_killed_in_the_middle_of_a_pass_it_goes_on_there_to_the_bit(tmp_path: Path) -> None:
    done = child(tmp_path / "whole")
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout.splitlines()[-1])
    # Two thirds through the second of three epochs of the second task, which is followed by two more passes.
    killed = child(tmp_path / "cut", kill_at=whole["read"] - 4 * 600 + 420)
    assert killed.returncode == -9, killed.stderr
    (run,) = (tmp_path / "cut").iterdir()
    again = child(tmp_path, run)
    assert again.returncode == 0, again.stderr
    resumed = json.loads(again.stdout.splitlines()[-1])
    assert resumed["results"] == whole["results"]
    assert resumed["read"] < whole["read"] / 2
    middle = [first for first in resumed["begun"] if first]
    assert middle
    assert all(first % 64 == 0 for first in middle)
