"""Runs in processes of their own that can be killed, and what is left of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdcl.methods.plain import Finetune
from pdcl.storage import disk

sys.path.insert(0, str(Path(__file__).parent))
from months import begin

Arrays = tuple[NDArray[Any], NDArray[Any]]
Outcome = Callable[[Path], tuple[dict[str, Any], list[dict[str, Any]], bytes]]


@pytest.fixture(autouse=True)
def _no_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests end processes and calls, not the power: what was written is there without the wait."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class Forks:
    """`pdcl`, or any code, in processes forked by a server that has everything imported."""

    def __init__(self) -> None:
        program = [sys.executable, str(Path(__file__).with_name("forkserver.py"))]
        self.server = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.log = Path(os.devnull)

    def _ask(self, **command: Any) -> Any:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(command) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def finish(self, *words: str) -> int:
        """Run `pdcl` to the end; the exit code."""
        child = self._ask(words=words, log=str(self.log))
        code: int = self._ask(wait=child)
        return code

    def execute(self, code: str, *args: Any) -> int:
        """Run this code, with `args`, to the end; the exit code."""
        found: int = self._ask(wait=self._ask(code=code, args=args, log=str(self.log)))
        return found

    def kill_at(self, out: Path, events: int, delay: float, how: signal.Signals, *words: str) -> int | None:
        """Run `pdcl` until its record under `out` has so many events, and a little longer, then send the signal.

        A few events later it waits for the signal, so that it isn't over before, however late the signal comes.
        The exit code; None where the run was over before.
        """
        sent = self.log.with_name("sent")
        sent.unlink(missing_ok=True)
        child = self._ask(words=words, log=str(self.log), most=events + 4, until=str(sent))
        while sum(path.read_bytes().count(b"\n") for path in out.glob("*/events.jsonl")) < events:
            if self._ask(wait=child, poll=True) is not None:
                return None
            time.sleep(0.002)
        time.sleep(delay)
        os.kill(child, how)
        sent.touch()
        code: int = self._ask(wait=child)
        return code


@pytest.fixture(scope="session")
def fork_server() -> Iterator[Forks]:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    forks = Forks()
    yield forks
    forks.server.kill()
    forks.server.wait()


@pytest.fixture
def forks(fork_server: Forks, tmp_path: Path) -> Forks:
    fork_server.log = tmp_path / "log.txt"
    return fork_server


@pytest.fixture
def outcome() -> Outcome:
    return outcome_of


def outcome_of(run: Path) -> tuple[dict[str, Any], list[dict[str, Any]], bytes]:
    """What two equal runs must agree on: the result but its cost, the events but their time, what memory holds."""
    result = json.loads((run / "result.json").read_text())
    del result["cost"], result["sha256"]
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    snapshot = run / "memory.safetensors"
    stripped = [{key: value for key, value in event.items() if key != "time"} for event in events]
    return result, stripped, snapshot.read_bytes() if snapshot.exists() else b""


class Crash(BaseException):
    """The process dies here: nothing after this point reaches the disk."""


class Faults:
    """Lets the n-th touch of the disk fail, and every later one too if the process is meant to have died."""

    error_of_a_crash = Crash

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.fail_at: int | None = None
        self.error: Callable[[], BaseException] = Crash
        for name in ("write", "link", "sync", "move", "sync_directory", "remove_tree"):
            monkeypatch.setattr(disk, name, self._wrap(getattr(disk, name), name))

    def _wrap(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def touched(*args: Any) -> Any:
            self.count += 1
            if self.fail_at is not None and self.count >= self.fail_at:
                error = self.error()
                if self.count == self.fail_at and name == "write":
                    args[0].write_bytes(args[1][: len(args[1]) // 2])
                if self.count == self.fail_at or isinstance(error, Crash):
                    raise error
            return real(*args)

        return touched

    def arm(self, at: int | None, error: Callable[[], BaseException]) -> None:
        self.count, self.fail_at, self.error = 0, at, error


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


@pytest.fixture
def blobs() -> Callable[..., Arrays]:
    """Samples of some classes, one Gaussian each; the same every time."""

    def draw(classes: list[Any], count: int = 20, seed: int = 0) -> Arrays:
        x, y = [], []
        for label in classes:
            place = sum(map(ord, str(label)))
            centre = np.random.default_rng(place).normal(scale=3.0, size=5)
            x.append(centre + np.random.default_rng([place, seed]).normal(size=(count, 5)))
            y += [label] * count
        return np.concatenate(x).astype(np.float32), np.asarray(y)

    return draw


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # It forgets what it is shown otherwise, so that a month of wrong labels breaks it for sure.
    return begin(tmp_path_factory.mktemp("begun"), Finetune("mlp:12", seed=0, device="cpu", lr=0.1))


@pytest.fixture
def life(begun: Path, tmp_path: Path) -> Path:
    """A model of one month with its audit set, in a directory of its own."""
    for name in ("model", "audit"):
        shutil.copytree(begun / name, tmp_path / name)
    return tmp_path
