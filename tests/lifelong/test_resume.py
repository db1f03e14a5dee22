"""Resuming: only the very run, only once at a time, from the newest state that is whole."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import pdcl
from pdcl.algorithm import rules
from pdcl.errors import Interrupted, Locked, RecordError, RunFinished, StateError, UsageError
from pdcl.learning.events import Event, Stepped
from pdcl.records import checkpoint
from pdcl.running.checkpointing import Pace
from pdcl.running.resume import resume
from pdcl.storage.locking import Lock
from pdcl.storage.serialize import same
from pdcl.testing import SITUATIONS, gaussian_stream

STREAM = gaussian_stream(SITUATIONS["plain"])
SMALL: dict[str, Any] = {"epochs": 2, "batch": 8, "checkpoint_every": 2}


class _Enough(Exception):
    pass


def _stop_at(task: int, step: int) -> Any:
    def listener(event: Event) -> None:
        if isinstance(event, Stepped) and (event.task, event.step) == (task, step):
            raise _Enough

    return listener


def _learner(**options: Any) -> Any:
    return pdcl.PDCL("mlp:8", **{"memory": 12, **options})


def _interrupted(out: Path, task: int = 1, step: int = 3) -> Path:
    with pytest.raises(_Enough):
        pdcl.run(STREAM, _learner(), out=out, listeners=[_stop_at(task, step)], **SMALL)
    return next(out.iterdir())


def test_a_stream_of_ones_own_is_resumed_by_handing_both_in(tmp_path: Path, outcome: Any) -> None:
    whole = pdcl.run(STREAM, _learner(), out=tmp_path / "whole", **SMALL)
    path = _interrupted(tmp_path / "cut")
    found = pdcl.run(STREAM, _learner(), resume=path, **SMALL)
    assert whole.path is not None
    assert outcome(path) == outcome(whole.path)
    assert same(found.learner.state_dict(), whole.learner.state_dict())  # type: ignore[union-attr]
    assert [e["task"] for e in found.learner.lineage.settle().entries] == [0, 1, 2]  # type: ignore[union-attr]
    with pytest.raises(RunFinished):
        pdcl.run(STREAM, _learner(), resume=path, **SMALL)


def test_another_run_is_not_resumed(tmp_path: Path) -> None:
    path = _interrupted(tmp_path)
    before = checkpoint.read(path)
    with pytest.raises(RecordError, match="replay"):
        pdcl.run(STREAM, _learner(replay=7), resume=path, **SMALL)
    with pytest.raises(RecordError, match="data"):
        pdcl.run(gaussian_stream(SITUATIONS["plain"], seed=1), _learner(), resume=path, **SMALL)
    with pytest.raises(UsageError, match="no such run"):
        pdcl.run(STREAM, _learner(), resume=tmp_path / "elsewhere", **SMALL)
    after = checkpoint.read(path)
    assert before is not None
    assert after is not None
    assert same(before.state, after.state)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path, outcome: Any) -> None:
    whole = pdcl.run(STREAM, _learner(), out=tmp_path / "whole", **SMALL)
    path = _interrupted(tmp_path / "cut", 2, 3)
    weights = path / "checkpoint" / "network.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    heard: list[Event] = []
    found = pdcl.run(STREAM, _learner(), resume=path, listeners=[heard.append], **SMALL)
    assert found.accuracy == whole.accuracy
    assert "older checkpoint was taken" in str(heard[0])


def test_with_no_good_checkpoint_left_nothing_is_touched(tmp_path: Path) -> None:
    path = _interrupted(tmp_path, 2, 3)
    for part in path.glob("checkpoint/**/state.json"):
        part.unlink()
    events = (path / "events.jsonl").read_bytes()
    with pytest.raises(StateError, match="missing"):
        pdcl.run(STREAM, _learner(), resume=path, **SMALL)
    assert (path / "events.jsonl").read_bytes() == events


def test_two_processes_on_one_run_the_second_is_told(tmp_path: Path) -> None:
    path = _interrupted(tmp_path)
    with Lock(path), pytest.raises(Locked, match=f"process {os.getpid()}"):
        pdcl.run(STREAM, _learner(), resume=path, **SMALL)
    pdcl.run(STREAM, _learner(), resume=path, **SMALL)


def test_a_lock_left_by_a_crash_is_no_lock(tmp_path: Path, forks: Any) -> None:
    assert forks.execute("import os; from pathlib import Path; from pdcl.storage.locking import Lock\n"
                         "lock = Lock(Path(args[0])).acquire(); os._exit(7)", str(tmp_path)) == 7  # fmt: skip
    assert (tmp_path / ".lock").exists()
    with Lock(tmp_path):
        pass
    assert not (tmp_path / ".lock").exists()


@pytest.mark.parametrize("wish", [signal.SIGTERM, signal.SIGINT])
def test_a_wish_to_stop_is_granted_after_the_step_and_all_is_saved(wish: signal.Signals, tmp_path: Path) -> None:
    def listener(event: Event) -> None:
        if isinstance(event, Stepped) and (event.task, event.step) == (1, 2):
            signal.raise_signal(wish)

    whole = pdcl.run(STREAM, _learner(), **{**SMALL, "checkpoint_every": "never"})
    before = signal.getsignal(wish)
    with pytest.raises(Interrupted, match="pdcl resume") as stop:
        pdcl.run(STREAM, _learner(), out=tmp_path, listeners=[listener], **{**SMALL, "checkpoint_every": "never"})
    assert stop.value.code == 128 + wish
    assert signal.getsignal(wish) is before
    path = next(tmp_path.iterdir())
    found = checkpoint.read(path)
    assert found is not None
    assert found.state["loop"]["position"] == [1, 0, 3]
    assert pdcl.run(STREAM, _learner(), resume=path, **SMALL).accuracy == whole.accuracy


def test_resume_by_name_needs_only_the_directory(tmp_path: Path, outcome: Any) -> None:
    options: dict[str, Any] = {"memory": 12, "network": "mlp:8", "epochs": 1, "checkpoint_every": 3}
    stream = pdcl.stream("synthetic", size=40, test_size=10)
    whole = pdcl.run(stream, "pdcl-s", out=tmp_path / "whole", tolerance=pdcl.Relative(1.3), **options)
    with pytest.raises(_Enough):
        pdcl.run(stream, "pdcl-s", out=tmp_path / "cut", tolerance=pdcl.Relative(1.3), listeners=[_stop_at(2, 1)],
                 **options)  # fmt: skip
    path = next((tmp_path / "cut").iterdir())
    resume(path)
    assert whole.path is not None
    assert outcome(path) == outcome(whole.path)
    with pytest.raises(RunFinished):
        resume(path)


def test_a_diverged_run_keeps_its_last_good_state(tmp_path: Path) -> None:
    from pdcl.errors import Diverged

    parts = [task.data.fetch(torch.arange(32)) for task in STREAM.tasks]
    wild = pdcl.from_tasks([(*parts[0],), (parts[1][0] * 1e36, parts[1][1])], test_share=0.2)
    with pytest.raises(Diverged, match=r"task 1 .*lower lr"):
        pdcl.run(wild, pdcl.PDCL("mlp:8", memory=12, optimizer="sgd", lr=0.1), out=tmp_path, epochs=1, batch=8)
    path = next(tmp_path.iterdir())
    found = checkpoint.read(path)
    assert found is not None
    assert found.state["loop"]["position"][0] == 1
    assert "run_failed" in (path / "events.jsonl").read_text()


@pytest.mark.parametrize(
    ("text", "pace"),
    [("500", Pace(steps=500)), (7, Pace(steps=7)), ("30s", Pace(seconds=30.0)), ("1.5m", Pace(seconds=90.0)),
     ("never", Pace())],
)  # fmt: skip
def test_how_often_is_read(text: str | int, pace: Pace) -> None:
    assert Pace.parse(text) == pace


@pytest.mark.parametrize("text", ["0", "-3", "soon", "3 parsecs", "", "1e3"])
def test_how_often_makes_sense_or_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="checkpoint_every"):
        Pace.parse(text)


@dataclass
class Swing(pdcl.Lever):
    """Moves base weights up and down in turn, further each time."""

    strength: float = 0.05

    def __post_init__(self) -> None:
        self.pulls = 0

    def pull(self, core: Any, moved: Any) -> None:
        self.pulls += 1
        core.algorithm.constraints.base.mul_(1 + self.strength * self.pulls * (-1) ** self.pulls)

    def state_dict(self) -> dict[str, Any]:
        return {"pulls": self.pulls}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.pulls = state["pulls"]


@pytest.mark.parametrize("forgets", ["nothing", "its own", "base"])
def test_a_lever_goes_on_where_it_was_in_mid_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgets: str
) -> None:
    monkeypatch.setitem(rules._KNOWN, "lever", {"swing": Swing})
    options = {"lever": "swing", "tolerance": 0.3, "dual_steps": 6}
    whole = pdcl.run(STREAM, _learner(**options), out=tmp_path / "whole", **SMALL)
    assert whole.learner.core.choices.lever.pulls == 12  # type: ignore[union-attr]
    with pytest.raises(_Enough):
        pdcl.run(STREAM, _learner(**options), out=tmp_path / "cut", listeners=[_stop_at(2, 3)], **SMALL)
    (path,) = (tmp_path / "cut").iterdir()
    if forgets == "its own":
        monkeypatch.setattr(Swing, "load_state_dict", lambda self, state: None)
    elif forgets == "base":
        take = pdcl.PrimalDual.load_state_dict
        own_alone = lambda self, state: take(self, {**state, "lever": {"own": state["lever"]["own"]}})  # noqa: E731
        monkeypatch.setattr(pdcl.PrimalDual, "load_state_dict", own_alone)
    found = pdcl.run(STREAM, _learner(**options), resume=path, **SMALL)
    equal = same(found.learner.state_dict(), whole.learner.state_dict())  # type: ignore[union-attr]
    assert equal is (forgets == "nothing")
