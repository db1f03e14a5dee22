"""A learner that lives through many processes is the learner that lived in one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.errors import StateError
from pdcl.methods.catalog import method
from pdcl.storage.serialize import same
from pdcl.streams.hashes import sample_hashes

TASKS = 24


def _classes(task: int) -> list[str]:
    """Every other task brings a class that nobody knew of; the others bring back two that are known."""
    return [f"c{task // 2}", f"c{task // 2 + 1}"] if task % 2 == 0 else [f"c{task // 4}", f"c{task // 2 + 1}"]


def _new_learner(name: str) -> Any:
    entry = method(name)
    return entry.load()("mlp:12", memory=40, replay=5, lr=0.05, **entry.defaults)


ONE_MONTH = """
import numpy, pdcl
from pathlib import Path
from pdcl.methods.catalog import method
model, data, name, title = args
entry = method(name)
learner = pdcl.load(model) if Path(model).exists() else entry.load()(
    "mlp:12", memory=40, replay=5, lr=0.05, **entry.defaults)
with numpy.load(data) as held:
    learner.learn(held["x"], held["y"], name=title, epochs=1, batch=8)
learner.save(model)
"""


@pytest.mark.parametrize("name", ["pdcl", "derpp"])
def test_24_tasks_in_24_processes_equal_24_tasks_in_one(name: str, tmp_path: Path, blobs: Any, forks: Any) -> None:
    whole, model, data = _new_learner(name), str(tmp_path / "model"), str(tmp_path / "data.npz")
    for task in range(TASKS):
        x, y = blobs(_classes(task), 12, seed=task)
        np.savez(data, x=x, y=y)
        assert forks.execute(ONE_MONTH, model, data, name, f"month {task}") == 0, forks.log.read_text()
        whole.learn(x, y, name=f"month {task}", epochs=1, batch=8)
    scattered = pdcl.load(model)
    assert same(scattered.state_dict(), whole.state_dict())
    assert scattered.spec == whole.spec
    assert len(scattered.spec.labels) == TASKS // 2 + 1
    assert [entry["data"] for entry in scattered.lineage.entries] == [e["data"] for e in whole.lineage.entries]
    assert len(scattered.lineage.samples) == len(whole.lineage.samples)


@pytest.mark.slow
def test_real_processes_live_the_same_life(tmp_path: Path, blobs: Any) -> None:
    program = f"import sys, torch; torch.set_num_threads(1); args = sys.argv[1:]\n{ONE_MONTH}"
    whole = pdcl.PDCL("mlp:12", memory=40, replay=5, lr=0.05)
    for task in range(TASKS):
        x, y = blobs(_classes(task), 12, seed=task)
        np.savez(tmp_path / "data.npz", x=x, y=y)
        words = [str(tmp_path / "model"), str(tmp_path / "data.npz"), "pdcl", f"month {task}"]
        subprocess.run([sys.executable, "-c", program, *words], check=True)
        whole.learn(x, y, name=f"month {task}", epochs=1, batch=8)
    assert same(pdcl.load(tmp_path / "model").state_dict(), whole.state_dict())


def test_a_saved_model_says_what_it_is(tmp_path: Path, blobs: Any) -> None:
    learner = pdcl.PDCL("linear", memory=10)
    learner.learn(*blobs(["cat", "dog"]), name="spring", epochs=1, test=blobs(["cat", "dog"], seed=1))
    learner.save(tmp_path / "model")
    text = (tmp_path / "model" / "MODEL.md").read_text()
    for word in ("spring", "cat", "dog", "PDCL", "| 0 | cat | 5 |"):
        assert word in text


def test_weights_load_with_torch_alone(tmp_path: Path, blobs: Any) -> None:
    from safetensors.torch import load_file

    learner = pdcl.PDCL("mlp:7", memory=10)
    learner.learn(*blobs([1, 2, 3]), epochs=1)
    learner.save(tmp_path / "model")
    weights = load_file(tmp_path / "model" / "network.safetensors")
    assert same(weights, dict(learner.model.state_dict()))


def test_every_sample_ever_learned_is_known_again_and_no_other(tmp_path: Path, blobs: Any) -> None:
    learner = pdcl.PDCL("linear", memory=10)
    x, y = blobs(["a", "b"])
    learner.learn(x, y, epochs=1, groups=[f"patient {i}" for i in range(len(x))])
    learner.save(tmp_path / "model")
    lineage = pdcl.load(tmp_path / "model").lineage
    seen = set(lineage.samples.tolist())
    assert set(sample_hashes(torch.as_tensor(x), lineage.key).tolist()) == seen
    other = torch.as_tensor(blobs(["a", "b"], seed=9)[0])
    assert not seen & set(sample_hashes(other, lineage.key).tolist())
    assert len(lineage.groups) == len(x)


def test_save_never_overwrites_another_state(tmp_path: Path, blobs: Any) -> None:
    one, other = pdcl.PDCL("linear", memory=10), pdcl.PDCL("linear", memory=10, seed=1)
    for learner in (one, other):
        learner.learn(*blobs(["a", "b"]), epochs=1)
    one.save(tmp_path / "model")
    with pytest.raises(StateError, match="another state"):
        other.save(tmp_path / "model")
    stale = pdcl.load(tmp_path / "model")
    one.learn(*blobs(["c"]), epochs=1)
    one.save(tmp_path / "model")
    with pytest.raises(StateError, match="another state"):
        stale.save(tmp_path / "model")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-mum.txt").write_text("dear mum")
    with pytest.raises(StateError, match="something else"):
        one.save(tmp_path / "letters")
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["to-mum.txt"]


def test_a_damaged_model_is_refused_and_the_one_before_still_loads(tmp_path: Path, blobs: Any) -> None:
    learner = pdcl.PDCL("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    learner.save(tmp_path / "model")
    learner.learn(*blobs(["c"]), epochs=1)
    learner.save(tmp_path / "model")
    weights = tmp_path / "model" / "network.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(StateError, match=r"truncated.*previous"):
        pdcl.load(tmp_path / "model")
    assert pdcl.load(tmp_path / "model" / "previous").tasks_learned == 1


def test_a_directory_can_be_copied_and_loaded_elsewhere(tmp_path: Path, blobs: Any) -> None:
    learner = pdcl.PDCL("linear", memory=10, tolerance=pdcl.Relative(1.2, floor=0.05))
    learner.learn(*blobs([3, 7]), epochs=2)
    learner.save(tmp_path / "model")
    shutil.copytree(tmp_path / "model", tmp_path / "elsewhere" / "copy")
    shutil.rmtree(tmp_path / "model")
    found = pdcl.load(tmp_path / "elsewhere" / "copy")
    x, y = blobs([3, 7], seed=5)
    assert found.predict(x).tolist() == learner.predict(x).tolist()
    assert set(found.predict(x).tolist()) <= {3, 7}
    assert found.evaluate(x, y) == learner.evaluate(x, y)
    assert found.tolerance == "1.2x>=0.05"
