"""One bad run must not blind the live page: its row says why it can't be read, and all others go on."""

from __future__ import annotations

import json
import os
import platform
import random
import shutil
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from pdcl.lab.reports.live import following
from pdcl.lab.reports.live.app import make_app
from pdcl.lab.reports.live.following import Directory
from pdcl.records.writing import dumps

BEGAN = {"time": 0.0, "event": "run_began", "stream": "s", "method": "m", "tasks": 2, "epochs": 1, "seed": 0}
TASK = {"time": 1.0, "event": "task_began", "task": 0, "name": "a", "samples": 10, "steps": 10, "classes": ["a"]}
STEP = {"time": 5.0, "event": "stepped", "task": 0, "epoch": 0, "step": 4, "loss": 1.0}
HUGE = 10**400
PATIENCE = 300.0


def unsealed(run: Path, **changes: object) -> None:
    """A result as an older version wrote it, or anyone."""
    content = {k: v for k, v in json.loads((run / "result.json").read_text()).items() if k != "sha256"}
    (run / "result.json").write_text(json.dumps({**content, **changes}))


def reconfigured(run: Path, **changes: object) -> None:
    content = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**content, **changes}))


def locked_by_a_huge_number(run: Path) -> None:
    (run / "result.json").unlink()
    (run / ".lock").write_text(json.dumps({"process": HUGE, "host": platform.node(), "since": "now"}))
    for name in ("config.json", ".lock"):
        os.utime(run / name, (1, 1))


DAMAGE = {
    "a-huge-process-number": locked_by_a_huge_number,
    "a-huge-accuracy": lambda run: unsealed(run, mean_accuracy=HUGE),
    "a-huge-cost": lambda run: unsealed(run, cost={"seconds": HUGE}),
    "huge-matrices": lambda run: unsealed(run, accuracy={"class_il": [[HUGE]], "task_il": [[-HUGE]]}),
    "huge-partitions": lambda run: unsealed(run, partitions=[[HUGE, 1]], confusion=[[HUGE]]),
    "partitions-of-text": lambda run: unsealed(run, partitions=[["a", None]]),
    "half-a-surrogate-pair-in-a-label": lambda run: reconfigured(run, label="\ud800 label"),
    "half-a-surrogate-pair-in-an-option": lambda run: reconfigured(run, options={"\udfff": {"value": "\ud800"}}),
    "a-huge-seed": lambda run: reconfigured(run, seed=HUGE, memory=HUGE),
    "deep-options": lambda run: reconfigured(run, stream_options=json.loads("[" * 700 + "]" * 700)),
    "a-verdict-of-anything": lambda run: (run / "verdict.json").write_text("[" * 900 + "]" * 900),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_run_is_shown_and_hides_no_other(damage, tmp_path, fake_run):
    # Found in the order of their names: one good run comes before the bad one, one after it.
    runs = [fake_run(tmp_path, seed=seed) for seed in range(3)]
    DAMAGE[damage](runs[1])
    with TestClient(make_app(tmp_path), base_url="http://127.0.0.1:8000") as client:
        client.app.app.state.runs.refresh()
        rows = {row["name"]: row for row in client.get("/api/runs").json()["rows"]}
        assert set(rows) == {run.name for run in runs}
        for run in runs:
            key = rows[run.name]["id"]
            assert client.get(f"/api/run/{key}").status_code == 200
            assert client.get(f"/api/map/{key}").status_code == 200
        assert rows[runs[0].name]["status"] == rows[runs[2].name]["status"] == "finished"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes any bytes for a name")
def test_a_directory_whose_name_is_no_text_hides_no_other(tmp_path, fake_run):
    fake_run(tmp_path, seed=0)
    odd = fake_run(tmp_path / "made", seed=1)
    os.rename(odd, os.fsencode(tmp_path) + b"/odd-\xff\xfe")
    with TestClient(make_app(tmp_path), base_url="http://127.0.0.1:8000") as client:
        client.app.app.state.runs.refresh()
        assert len(client.get("/api/runs").json()["rows"]) == 2


@pytest.mark.parametrize("error", [RuntimeError("a defect of ours"), MemoryError(), RecursionError("too deep")])
def test_whatever_a_look_raises_becomes_the_row_of_that_run(error, tmp_path, fake_run, monkeypatch):
    runs, real = [fake_run(tmp_path, seed=seed) for seed in range(3)], following.read_files

    def read_files(path, root=None):
        if path == runs[1]:
            raise error
        return real(path, root)

    monkeypatch.setattr(following, "read_files", read_files)
    directory = Directory(tmp_path)
    directory.refresh()
    rows = {row["name"]: row for row in directory.changes(0)[1]}
    assert [rows[run.name]["status"] for run in runs] == ["finished", "unreadable", "finished"]
    (problem,) = rows[runs[1].name]["problems"]
    assert problem.startswith(f"can't be read: {type(error).__name__}")
    shown = directory.detail(rows[runs[1].name]["id"])
    assert shown["problems"][0].startswith("can't be read")
    monkeypatch.undo()
    os.utime(runs[1] / "config.json", (1, 1))
    directory.refresh()
    assert {row["status"] for row in directory.changes(0)[1]} == {"finished"}


def test_the_reader_thread_outlives_any_error(tmp_path, fake_run, monkeypatch):
    fake_run(tmp_path)
    real, calls = Directory.refresh, []

    def refresh(self):
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError("a defect of ours")
        real(self)

    monkeypatch.setattr(Directory, "refresh", refresh)
    monkeypatch.setattr("pdcl.lab.reports.live.app.EVERY", 0.01)
    with TestClient(make_app(tmp_path), base_url="http://127.0.0.1:8000") as client:
        end = time.monotonic() + PATIENCE
        while not client.get("/api/runs").json()["rows"]:
            assert time.monotonic() < end, "the reader thread is dead"


def test_a_run_that_takes_long_to_show_keeps_no_other_waiting(tmp_path, fake_run, monkeypatch):
    slow, quick = (fake_run(tmp_path, seed=seed) for seed in range(2))
    directory = Directory(tmp_path)
    directory.refresh()
    keys = {row["name"]: row["id"] for row in directory.changes(0)[1]}
    begun, go_on, real = threading.Event(), threading.Event(), following.dossier

    def dossier(files, *rest):
        if files.path == slow:
            begun.set()
            assert go_on.wait(PATIENCE)
        return real(files, *rest)

    monkeypatch.setattr(following, "dossier", dossier)
    looking = threading.Thread(target=directory.detail, args=(keys[slow.name],))
    looking.start()
    assert begun.wait(PATIENCE)
    others = threading.Thread(
        target=lambda: (directory.changes(0), directory.detail(keys[quick.name]), directory.refresh())
    )
    others.start()
    others.join(PATIENCE / 3)
    waited = others.is_alive()
    go_on.set()
    others.join()
    looking.join()
    assert not waited


def test_a_first_look_draws_no_map(tmp_path, fake_run, monkeypatch):
    from safetensors.numpy import save_file

    run = fake_run(tmp_path)
    x = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    save_file({"x": x, "y": np.arange(40), "task": np.arange(40) % 2, "features": x}, run / "memory.safetensors")
    directory = Directory(tmp_path)
    directory.refresh()
    (key,) = directory.changes(0)[2]
    with monkeypatch.context() as patched:
        patched.setattr("pdcl.lab.reports.holdings._neighbours", lambda points: pytest.fail("a map was drawn"))
        found = directory.detail(key)
    assert found["samples"] is not None
    assert "being drawn" in found["absent"]["map"]
    assert directory.chart(key)["method"] == "t-SNE"


TOKENS = [b"-1", b"1e999", b"9" * 400, b"null", b"[]", b"{}", b'"\\ud800"', b"true", b'"x"', b"[" * 50, b"NaN"]


def mutated(content: bytes, chance: random.Random) -> bytes:
    kind = chance.choice(["cut", "flip", "token", "token", "token", "insert", "empty", "double"])
    place = chance.randrange(len(content)) if content else 0
    if kind == "cut":
        return content[:place]
    if kind == "flip":
        return content[:place] + bytes([content[place] ^ (1 << chance.randrange(8))]) + content[place + 1 :]
    if kind == "token":
        digits = [i for i in range(len(content)) if content[i : i + 1].isdigit()]
        at = chance.choice(digits) if digits else 0
        return content[:at] + chance.choice(TOKENS) + content[at + 1 :]
    if kind == "insert":
        return content[:place] + chance.randbytes(20) + content[place:]
    return b"" if kind == "empty" else content + content


def test_hundreds_of_mutated_runs_are_all_listed_and_all_shown(tmp_path, fake_run):
    from safetensors.numpy import save_file

    chance = random.Random("mutated runs")
    whole = fake_run(tmp_path / "whole")
    unsealed(whole)
    events = [BEGAN, TASK, *[{**STEP, "step": step} for step in range(8)]]
    (whole / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (whole / ".lock").write_text(json.dumps({"process": os.getpid(), "host": platform.node(), "since": "now"}))
    (whole / "verdict.json").write_text(json.dumps({"verdict": "PASS", "rows": [{"group": "all", "estimate": 0.1}]}))
    x = np.ones((6, 4), np.float32)
    save_file({"x": x, "y": np.arange(6), "task": np.arange(6) % 2}, whole / "memory.safetensors")
    names = sorted(path.name for path in whole.iterdir())
    for number in range(300):
        run = tmp_path / "runs" / f"r{number:03}"
        shutil.copytree(whole, run)
        if number % 3 == 0:
            (run / "result.json").unlink()
        for name in chance.sample(names, chance.choice([1, 1, 2, 3])):
            if (run / name).exists():
                (run / name).write_bytes(mutated((run / name).read_bytes(), chance))
        for path in run.iterdir():
            os.utime(path, (1, 1))
    directory = Directory(tmp_path / "runs")
    for _ in range(3):
        directory.refresh()
    _, rows, ids = directory.changes(0)
    assert len(rows) == len(ids) == 300
    for row in rows:
        assert row["status"] in ("finished", "running", "stopped", "failed", "unreadable")
        shown = directory.detail(row["id"])
        assert shown["name"] == row["name"]
        assert json.loads(dumps([row, shown]).encode())
