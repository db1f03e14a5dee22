"""`learn` and `adopt` are all or nothing, in whatever line they stop."""

from __future__ import annotations

import copy
import signal
import sys
from collections.abc import Callable
from inspect import CO_GENERATOR
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import pdcl
from pdcl.errors import Diverged, PdclError, UsageError
from pdcl.lifelong import lineage
from pdcl.lifelong.learner import Learner
from pdcl.methods.catalog import method
from pdcl.past import journal
from pdcl.storage.serialize import same

HOME = str(Path(pdcl.__file__).parent)


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def _learner(name: str, **options: Any) -> Learner:
    entry = method(name)
    memory = {"memory": 12} if entry.uses_memory else {}
    learner: Learner = entry.load()(_network(), **{"lr": 0.05, **entry.defaults, **memory, **options})
    return learner


def _picture(learner: Learner) -> dict[str, Any]:
    """All that must come back: values, and which objects they are in."""
    state = learner.state_dict() if learner.spec is not None else {}
    kept = learner.lineage
    return {
        "state": copy.deepcopy(state),
        "weights": {name: value.clone() for name, value in learner.network.state_dict().items()},  # type: ignore[union-attr]
        "objects": [id(each) for each in (*learner.network.parameters(), *learner.network.modules())],  # type: ignore[union-attr]
        "modes": [each.training for each in learner.network.modules()],  # type: ignore[union-attr]
        "spec": repr(learner.spec),
        "lineage": [len(kept.entries), kept.samples.tolist(), kept.groups.tolist(), list(kept.states)],
        "names": sorted(vars(learner)),
    }


def _interrupted_at(call: int | None, action: Callable[[], object]) -> int:
    """Send SIGINT at this call of a function of ours (None: never); how many calls there were."""
    count = 0

    def profile(frame: Any, event: str, arg: object) -> None:
        nonlocal count
        if event == "call" and frame.f_code.co_filename.startswith(HOME) and not frame.f_code.co_flags & CO_GENERATOR:
            count += 1
            if count == call:
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", ["pdcl", "pdcl-s", "derpp", "er-ring", "icarl", "si", "joint", "agem"])
def test_an_interrupt_anywhere_leaves_all_or_nothing(name: str, tmp_path: Path, blobs: Any) -> None:
    learner, twin = _learner(name), _learner(name)
    for each in (learner, twin):
        each.learn(*blobs(["a", "b"], 8), epochs=1)
    x, y = blobs(["b", "c"], 8, seed=1)

    def task(each: Learner, place: str) -> dict[str, Any]:
        return each.learn(x, y, epochs=1, audit=tmp_path / place, groups=list(range(len(x))))

    calls = _interrupted_at(None, lambda: task(twin, "twin"))
    before = _picture(learner)
    for point in range(1, calls, max(1, calls // 40)):
        with pytest.raises(KeyboardInterrupt):
            _interrupted_at(point, lambda: task(learner, "own"))
        if learner.tasks_learned == 2:
            break
        assert same(_picture(learner), before), point
        assert not (tmp_path / "own").exists()
    else:
        task(learner, "own")
    assert (tmp_path / "own" / "samples.npz").exists()
    assert same(learner.state_dict(), twin.state_dict())
    assert learner.spec == twin.spec
    assert learner.lineage.entries[-1]["data"] == twin.lineage.entries[-1]["data"]


class _Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.vectors, self.head = nn.Embedding(20, 6), nn.Linear(7, 2)

    def forward(self, words: torch.Tensor, age: torch.Tensor) -> torch.Tensor:
        return self.head(torch.cat([self.vectors(words).sum(1), age[:, None]], 1))  # type: ignore[no-any-return]


def _told(first: int, count: int = 16) -> tuple[Any, list[str]]:
    words = [torch.arange(first, first + 1 + row % 5) for row in range(count)]
    return {"words": words, "age": torch.rand(count)}, [f"{first}{'ab'[row % 2]}" for row in range(count)]


@pytest.mark.parametrize("memory", [12, "2KB"])
@pytest.mark.parametrize("name", ["pdcl", "pdcl-s", "er", "er-ring"])
def test_an_interrupt_leaves_sequences_and_dicts_as_they_were(name: str, memory: int | str) -> None:
    entry = method(name)
    learner, twin = (entry.load()(_Words(), **{"lr": 0.05, **entry.defaults, "memory": memory}) for _ in range(2))
    first, second = _told(1), _told(9)
    for each in (learner, twin):
        each.learn(*first, epochs=1)
    calls = _interrupted_at(None, lambda: twin.learn(*second, epochs=2))
    before = _picture(learner)
    for point in range(1, calls, max(1, calls // 25)):
        with pytest.raises(KeyboardInterrupt):
            _interrupted_at(point, lambda: learner.learn(*second, epochs=2))
        if learner.tasks_learned == 2:
            break
        assert same(_picture(learner), before), point
    else:
        learner.learn(*second, epochs=2)
    assert same(learner.state_dict(), twin.state_dict())


@pytest.mark.parametrize("name", ["pdcl", "er", "ewc"])
def test_an_interrupted_first_task_and_adoption_leave_the_users_network_alone(name: str, blobs: Any) -> None:
    x, y = blobs(["a", "b", "c"], 8)
    learner = _learner(name)
    before = _picture(learner)
    for action in (lambda: learner.learn(x, y, epochs=1), lambda: learner.adopt(x[:16], y[:16], labels=["a", "b"])):
        for point in range(40, 140, 20):
            with pytest.raises(KeyboardInterrupt):
                _interrupted_at(point, action)
            assert same(_picture(learner), before)


def test_a_diverged_task_takes_its_new_head_back(blobs: Any) -> None:
    learner = _learner("pdcl", optimizer="sgd")
    learner.learn(*blobs(["a", "b"]), epochs=1)
    before = _picture(learner)
    learner.lr = 1e38
    with pytest.raises(Diverged):
        learner.learn(*blobs(["a", "c"]), epochs=3)
    assert learner.spec is not None
    assert (learner.spec.outputs, learner.spec.labels) == (2, ("a", "b"))
    assert same(_picture(learner), before)


def test_a_refused_task_has_written_no_audit_data(tmp_path: Path, blobs: Any) -> None:
    learner = _learner("pdcl")
    x, y = blobs(["a", "b"])
    learner.learn(x, y, epochs=1, audit=tmp_path / "audit")
    held = (tmp_path / "audit" / "samples.npz").read_bytes()
    x[3, 0] = float("nan")
    with pytest.raises(UsageError, match="NaN"):
        learner.learn(x, y, epochs=1, audit=tmp_path / "audit", name="feb")
    assert (tmp_path / "audit" / "samples.npz").read_bytes() == held


def test_a_full_disk_at_the_last_act_takes_the_task_back(tmp_path: Path, blobs: Any) -> None:
    learner = _learner("er")
    learner.learn(*blobs(["a", "b"]), epochs=1)
    before = _picture(learner)
    (tmp_path / "audit").write_text("a file, where a directory must be")
    with pytest.raises(PdclError):
        learner.learn(*blobs(["c"]), epochs=1, audit=tmp_path / "audit")
    assert same(_picture(learner), before)


class Largest(TorchDispatchMode):
    """The most bytes of one tensor that was made, views left out."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        old = {
            each.untyped_storage().data_ptr() for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)
        }
        for each in tree_leaves(out):
            if isinstance(each, torch.Tensor) and each.untyped_storage().data_ptr() not in old:
                self.bytes = max(self.bytes, each.numel() * each.element_size())
        return out


@pytest.mark.parametrize("name", ["er", "derpp", "agem", "pdcl"])
def test_a_large_memory_is_not_copied(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "STRIP", 2**16)
    entry = method(name)
    looks = {"slack_samples": 20} if name == "pdcl" else {}
    learner = entry.load()("linear", memory=2000, lr=0.01, **looks, **entry.defaults)
    learner.learn(torch.zeros(2000, 3072, dtype=torch.uint8), torch.arange(2000) % 3, epochs=1, batch=500)
    assert learner.store is not None
    assert learner.store.nbytes > 6_000_000
    with Largest() as largest:
        learner.learn(torch.zeros(20, 3072, dtype=torch.uint8), torch.arange(20) % 3, epochs=1)
    assert largest.bytes < learner.store.nbytes / 10


def test_an_entry_is_no_larger_after_many_tasks(blobs: Any) -> None:
    learner = pdcl.PDCL("linear", memory=60, tolerance=1e-9, lr=0.05)
    sizes = []
    for task in range(30):
        learner.learn(*blobs(["a", "b"], 3, seed=task), name=f"task {task:02}", epochs=1)
        sizes.append(len(repr(learner.lineage.entries[max(0, task - 1)])))
    assert max(sizes[14:]) < 1.3 * sizes[13]
    state = learner.lineage.state_dict()
    assert len(state["settings"]) == 1
    assert lineage.Lineage.from_state(state).entries == learner.lineage.entries


def test_a_lineage_of_the_older_form_is_read(blobs: Any) -> None:
    learner = pdcl.PDCL("linear", memory=10)
    learner.learn(*blobs(["a", "b"]), epochs=1)
    older = {**learner.lineage.state_dict(), "entries": learner.lineage.entries}
    del older["settings"]
    assert lineage.Lineage.from_state(older).entries == learner.lineage.entries


def test_a_task_beyond_memory_is_refused_before_training(blobs: Any) -> None:
    heard: list[Any] = []
    for name in ("pdcl", "er", "gem", "icarl", "derpp"):
        learner = _learner(name, memory=2)
        learner.learn(*blobs(["a", "b"], 4), epochs=1)
        learner.learn(*blobs(["a", "b"], 4), epochs=1)
        with pytest.raises(UsageError, match="memory=2 holds 2 samples and this is task number 3"):
            learner.learn(*blobs(["a"], 4), epochs=1, listener=heard.append)
        small = _learner(name, memory="20B")
        with pytest.raises(UsageError, match="memory=20B"):
            small.learn(*blobs(["a", "b"], 4), epochs=1, listener=heard.append)
        assert small.spec is None
    with pytest.raises(UsageError, match="fewer than the 3 classes"):
        _learner("er-ring", memory=2).learn(*blobs(["a", "b", "c"], 4), epochs=1, listener=heard.append)
    assert heard == []
