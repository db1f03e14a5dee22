"""A run that is killed, again and again, ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SMALL = ("--epochs", "1", "--stream-option", "size=60", "--stream-option", "test_size=20", "--network", "mlp:16")
OPTIONS = {
    "pdcl": ("--memory", "30", "--keep-optimizer", "--optimizer", "adam", "--lr", "0.01"),
    "pdcl-s": ("--memory", "30"),
    "er-ring": ("--memory", "30"),
    "icarl": ("--memory", "30"),
    "joint": (),
}
KILLS = 6


def _words(method: str, out: Path) -> list[str]:
    return ["run", "synthetic", method, *SMALL, *OPTIONS[method], "--out", str(out)]


def _only(directory: Path) -> Path | None:
    found = [path for path in directory.glob("*") if not path.name.startswith(".")] if directory.exists() else []
    return found[0] if found else None


@pytest.mark.parametrize("method", list(OPTIONS))
def test_killed_at_random_moments_a_run_ends_as_if_it_had_not_been(
    method: str, tmp_path: Path, forks: Any, outcome: Any
) -> None:
    assert forks.finish(*_words(method, tmp_path / "whole")) == 0
    expected = outcome(_only(tmp_path / "whole"))
    random_, killed, kills = random.Random(f"kills of {method}"), tmp_path / "killed", 0
    moments = [random_.randint(0, len(expected[1]) - 1) for _ in range(KILLS)]
    # A checkpoint after every step: much of the time goes into writing them, so many kills fall into that.
    for moment in sorted(moments):
        run = _only(killed)
        words = _words(method, killed) if run is None else ["resume", str(run)]
        how = random_.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        delay = random_.uniform(0, 0.03)
        code = forks.kill_at(killed, moment, delay, how, *words, "--checkpoint-every", "1")
        if code is None:
            break
        # The last step may have been made before the signal was seen.
        assert code in (-how, 128 + how, 0), forks.log.read_text()
        kills += code != 0
    assert kills >= KILLS - 1
    run = _only(killed)
    if run is None or not (run / "result.json").exists():
        code = forks.finish(*(_words(method, killed) if run is None else ["resume", str(run)]))
        assert code == 0, forks.log.read_text()
    run = _only(killed)
    assert run is not None
    assert outcome(run) == expected
    assert not list(run.glob(".*")), "something temporary was left behind"


@pytest.mark.slow
@pytest.mark.parametrize("method", list(OPTIONS))
def test_real_processes_killed_many_times_end_as_if_they_had_not_been(
    method: str, tmp_path: Path, outcome: Any
) -> None:
    program = [sys.executable, "-m", "pdcl"]
    start = time.monotonic()
    subprocess.run([*program, *_words(method, tmp_path / "whole")], check=True)
    longest = time.monotonic() - start
    random_, killed, run = random.Random(f"marathon of {method}"), tmp_path / "killed", None
    for _ in range(12):
        run = _only(killed)
        words = _words(method, killed) if run is None else ["resume", str(run)]
        child = subprocess.Popen([*program, *words, "--checkpoint-every", "1"])
        try:
            child.wait(random_.uniform(0.5 * longest, 1.2 * longest))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if _only(killed) is None:
            longest *= 1.5  # Killed before there was a record: the machine is busier than it was.
    run = _only(killed)
    assert run is not None
    if not (run / "result.json").exists():
        subprocess.run([*program, "resume", str(run)], check=True)
    whole = _only(tmp_path / "whole")
    assert whole is not None
    assert outcome(run) == outcome(whole)
