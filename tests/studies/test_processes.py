"""Real processes: failures don't spread, a kill loses little, and nothing is done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pdcl.lab.studies import LocalProcesses, execute, load
from pdcl.records import scan

PLUGIN = """
import os
from dataclasses import dataclass

import pdcl
from pdcl.methods.plain import Finetune


@pdcl.register("broken")
@dataclass(eq=False)
class Broken(Finetune):
    def step(self, batch):
        raise RuntimeError("broken on purpose")


@pdcl.register("deadly")
@dataclass(eq=False)
class Deadly(Finetune):
    def step(self, batch):
        os._exit(7)
"""
# Replay whose runs of seed 2 wait as long as the file is there: a study with such a run can't end meanwhile.
WAITING = """
import time
from dataclasses import dataclass
from pathlib import Path

import pdcl
from pdcl.lab.methods.er import ER


@pdcl.register("er-waiting")
@dataclass(eq=False)
class Waiting(ER):
    def step(self, batch):
        while self.seed == 2 and Path(FILE).exists():
            time.sleep(0.02)
        return super().step(batch)
"""
SLOW = """
[study]
name = "slow"
streams = ["synthetic"]
methods = ["er"]
memory = [10]
seeds = 3

[variants.er-wide]
method = "er"
replay = 20

[streams.synthetic]
stream_options = { tasks = 2, size = 100, test_size = 20 }

[options]
epochs = 12
network = "linear"
"""
CLI = [sys.executable, "-c", "import sys; from pdcl.cli import main; sys.exit(main())"]


def command(*words: object) -> list[str]:
    return [*CLI, *map(str, words)]


def test_failing_runs_are_listed_and_stop_no_other(tmp_path: Path, quick: str) -> None:
    (tmp_path / "own.py").write_text(PLUGIN)
    file = tmp_path / "study.toml"
    text = quick.replace('["finetune", "er"]', '["broken", "deadly", "finetune", "er"]').replace(
        "seeds = 2", "seeds = 1"
    )
    bad = '[variants.er-bad]\nmethod = "er"\nlr = -1.0\n'
    file.write_text(text.replace("memory = [10]", 'memory = [10]\nplugins = ["own.py"]') + bad)
    done = subprocess.run(
        command("study", file, "--out", tmp_path / "out", "--workers", 2), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert [row.label for row in scan(tmp_path / "out")] == ["er", "finetune"]
    lines = done.stdout
    assert "failed: synthetic broken s0 epochs=1 network=linear\n    RuntimeError: broken on purpose" in lines
    assert "failed: synthetic deadly s0 epochs=1 network=linear\n    its process ended with code 7" in lines
    assert "failed: synthetic er-bad m10 s0 epochs=1 network=linear lr=-1.0\n    lr=-1.0 must be positive" in lines
    assert "2 run now, 0 before, 3 failed" in lines
    assert "broken on purpose" in (tmp_path / "out" / "failures.txt").read_text()


def test_a_killed_study_goes_on_and_ends_as_if_never_killed(tmp_path: Path) -> None:
    file, waits = tmp_path / "slow.toml", tmp_path / "waits"
    text = SLOW.replace('method = "er"', 'method = "er-waiting"')
    file.write_text(text.replace("seeds = 3", 'seeds = 3\nplugins = ["own.py"]'))
    (tmp_path / "own.py").write_text(WAITING.replace("FILE", repr(str(waits))))
    waits.touch()
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    words = command("study", file, "--out", killed, "--workers", 2)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            wait_for(lambda: len(results(killed)) >= 2, process)
            workers = children(process.pid)
        finally:
            process.kill()
    wait_for(lambda: not any(alive(worker) for worker in workers))
    waits.unlink()
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in results(killed)}
    assert 2 <= len(before) < 6
    with LocalProcesses(2) as engine:
        execute(load(file), killed, engine)
        execute(load(file), whole, engine)
    after = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in results(killed)}
    assert {path: after[path] for path in before} == before
    assert table(killed) == table(whole)
    assert len(table(whole)) == 6


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_study_that_is_asked_to_stop_ends_its_workers_and_says_how_to_go_on(
    how: signal.Signals, code: int, tmp_path: Path
) -> None:
    file, out = tmp_path / "slow.toml", tmp_path / "out"
    file.write_text(SLOW.replace("epochs = 12", "epochs = 5000"))
    words = command("study", file, "--out", out, "--workers", 1)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        wait_for(lambda: len(list(out.glob("*/events.jsonl"))) >= 1, process)
        workers = children(process.pid)
        process.send_signal(how)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == code
    assert f"To go on: pdcl study {file}" in said
    assert not any(alive(worker) for worker in workers)


def test_two_studies_do_not_share_a_directory(tmp_path: Path, quick: str) -> None:
    from pdcl.errors import Locked
    from pdcl.storage.locking import Lock

    file = tmp_path / "quick.toml"
    file.write_text(quick)
    (tmp_path / "out").mkdir()
    with Lock(tmp_path / "out"), pytest.raises(Locked):
        execute(load(file), tmp_path / "out")


def results(out: Path) -> list[Path]:
    return list(out.glob("*/result.json"))


def table(out: Path) -> dict[str, object]:
    """All results by run, without what they cost and the checksum of it all."""
    found = {path.parent.name: json.loads(path.read_text()) for path in results(out)}
    return {
        name: {key: value for key, value in result.items() if key not in ("cost", "sha256")}
        for name, result in found.items()
    }


def children(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, parent, args in rows if int(parent) == process and "spawn_main" in args]


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    if not Path("/proc/self/stat").exists():
        return True
    try:
        state = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        # It ended since the look above.
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def wait_for(condition: object, process: subprocess.Popen[str] | subprocess.Popen[bytes] | None = None) -> None:
    assert callable(condition)
    limit = time.monotonic() + 180
    while not condition():
        assert process is None or process.poll() is None, "the study ended too early"
        assert time.monotonic() < limit
        time.sleep(0.02)
