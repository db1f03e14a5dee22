"""The live page without a browser: who gets in, what can be reached, what survives damage."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from pdcl.errors import UsageError
from pdcl.lab.cli import watch as command_line
from pdcl.lab.reports.live import following
from pdcl.lab.reports.live.app import make_app
from pdcl.lab.reports.live.following import Directory

HOSTILE = "<script>window.broken=1</script>"
BEGAN = {"time": 0.0, "event": "run_began", "stream": "s", "method": "m", "tasks": 2, "epochs": 1, "seed": 0}
TASK = {"time": 1.0, "event": "task_began", "task": 0, "name": "a", "samples": 10, "steps": 10, "classes": ["a"]}
STEP = {"time": 5.0, "event": "stepped", "task": 0, "epoch": 0, "step": 4, "loss": 1.0}


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch):
    """Reading is cut off after a while, and on a busy machine that may be before the first event."""
    monkeypatch.setattr(following, "SLICE", 600.0)
    monkeypatch.setattr(following, "LOOK", 600.0)


def write(run, *events):
    with (run / "events.jsonl").open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


@pytest.fixture
def client(tmp_path, fake_run):
    fake_run(tmp_path)
    with TestClient(make_app(tmp_path), base_url="http://127.0.0.1:8000") as client:
        client.app.app.state.runs.refresh()
        yield client


def only(client):
    (row,) = client.get("/api/runs").json()["rows"]
    return row


def test_a_finished_run_is_listed_and_shown(client):
    row = only(client)
    assert row["status"] == "finished"
    found = client.get(f"/api/run/{row['id']}").json()
    assert found["accuracy"]["class_il"] == [[0.9, 0.0], [0.8, 0.8]]
    assert found["partial"] is False


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/live/app.py",
        "/static/..%2f..%2f..%2fetc%2fpasswd",
        "/static//etc/passwd",
        "/api/run/..%2f..%2fetc%2fpasswd",
        "/api/run/%2e%2e",
        "/api/run/digits-pdcl-m100-s0",
        "/config.json",
        "/digits-pdcl-m100-s0/config.json",
        "/static/report.js",
    ],
)
def test_no_path_of_the_disk_is_an_address(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_every_answer_carries_the_policy(client):
    for path in ("/", "/static/base.js", "/api/runs", "/nowhere"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_the_document_has_no_script_or_style_of_its_own(tmp_path):
    (tmp_path / HOSTILE.replace("/", "")).mkdir()
    with TestClient(make_app(tmp_path / HOSTILE.replace("/", "")), base_url="http://127.0.0.1") as client:
        text = client.get("/").text
    assert "<style" not in text
    assert "<script>" not in text
    assert all(" src=" in part for part in text.split("<script")[1:])


def test_only_reading_is_offered(client):
    for method in ("POST", "PUT", "DELETE"):
        assert client.request(method, "/api/runs").status_code == 405


def test_a_foreign_host_name_gets_nothing(client):
    assert client.get("/api/runs", headers={"host": "evil.example"}).status_code == 403
    assert client.get("/api/runs", headers={"host": "evil.example:8000"}).status_code == 403
    assert client.get("/api/runs", headers={"host": "localhost:8000"}).status_code == 200


def test_without_its_token_a_public_page_is_closed_everywhere(tmp_path, fake_run):
    fake_run(tmp_path)
    with TestClient(make_app(tmp_path, token="right"), base_url="http://10.0.0.1") as client:
        for path in (
            "/",
            "/api/runs",
            "/events",
            "/static/base.js",
            "/?token=wrong",
            "/?token=",
            "/api/runs?token=right",
        ):
            assert client.get(path).status_code == 401, path
        assert client.get("/", headers={"cookie": "pdcl-watch=wrong"}).status_code == 401
        assert client.get("/", headers={"cookie": "\x01;=;pdcl-watch"}).status_code == 401
        answer = client.get("/?token=right", follow_redirects=False)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/"
        assert "HttpOnly; SameSite=Strict" in answer.headers["set-cookie"]
        assert client.get("/api/runs").status_code == 200
    with TestClient(make_app(tmp_path, token="right"), base_url="http://10.0.0.1") as client:
        assert client.get("/api/runs", headers={"authorization": "Bearer right"}).status_code == 200


def test_links_out_of_the_directory_are_not_followed(tmp_path, fake_run):
    outside = fake_run(tmp_path / "outside", label="secret-label")
    root = tmp_path / "runs"
    root.mkdir()
    (root / "linked").symlink_to(outside, target_is_directory=True)
    mixed = fake_run(root, seed=1)
    (mixed / "config.json").unlink()
    (mixed / "config.json").symlink_to(outside / "config.json")
    (mixed / "memory.safetensors").symlink_to("/etc/passwd")
    directory = Directory(root)
    directory.refresh()
    _, rows, ids = directory.changes(0)
    assert "secret-label" not in json.dumps(rows)
    assert len(ids) == 1
    shown = json.dumps(directory.detail(ids[0]))
    assert "secret-label" not in shown
    assert "root:" not in shown


def test_progress_failure_and_silence_are_told_apart(tmp_path, fake_run):
    running, failed, silent = (fake_run(tmp_path, accuracy=None, seed=seed) for seed in range(3))
    write(running, BEGAN, TASK, STEP)
    write(failed, BEGAN, TASK, {"event": "run_failed", "task": 0, "step": 3, "cause": HOSTILE})
    write(silent, BEGAN, TASK)
    for name in ("config.json", "events.jsonl"):
        os.utime(silent / name, (1, 1))
    directory = Directory(tmp_path)
    directory.refresh()
    rows = {row["seed"]: row for row in directory.changes(0)[1]}
    assert (rows[0]["status"], rows[0]["progress"], rows[0]["left"]) == ("running", 0.25, 15)
    assert (rows[1]["status"], rows[1]["cause"]) == ("failed", HOSTILE)
    assert rows[2]["status"] == "stopped"


def test_only_what_changed_is_sent_again(tmp_path, fake_run):
    first, _second = (fake_run(tmp_path, accuracy=None, seed=seed) for seed in range(2))
    directory = Directory(tmp_path)
    directory.refresh()
    version, rows, _ = directory.changes(0)
    assert len(rows) == 2
    write(first, BEGAN, TASK, STEP)
    directory.refresh()
    later, rows, _ = directory.changes(version)
    assert [row["seed"] for row in rows] == [0]
    directory.refresh()
    assert directory.changes(later)[1] == []


def test_malformed_and_oversized_files_neither_stop_nor_fill_the_server(tmp_path, fake_run):
    run = fake_run(tmp_path, accuracy=None)
    (run / "events.jsonl").write_bytes(
        b"\x00\xff\n{}\n[]\n" + b"x" * (3 << 20) + b"\n" + json.dumps(BEGAN).encode() + b"\n"
    )
    broken = fake_run(tmp_path, seed=1)
    (broken / "config.json").write_text("[" * 100_000)
    odd = fake_run(tmp_path, seed=2)
    (odd / "config.json").write_text(json.dumps({"options": [], "label": {"a": 1}, "stream": ["x"], "seed": "0"}))
    (odd / "result.json").write_text(json.dumps({"accuracy": 3, "confusion": "x"}))
    (odd / "verdict.json").write_text("{")
    directory = Directory(tmp_path)
    directory.refresh()
    _, rows, ids = directory.changes(0)
    assert len(rows) == 3
    shown = [directory.detail(key) for key in ids]
    assert all(each is not None for each in shown)
    assert sum(each["story"]["bad"] for each in shown) >= 3


def test_news_begin_with_all_runs(tmp_path, fake_run):
    import anyio

    from pdcl.lab.reports.live.app import _news

    fake_run(tmp_path)
    app = make_app(tmp_path).app
    app.state.runs.refresh()

    class Asked:
        def __init__(self):
            self.app = app

        async def is_disconnected(self):
            return False

    async def first():
        return await anext(_news(Asked()))

    # The browser of other tests has a loop of its own in this thread.
    with ThreadPoolExecutor(1) as pool:
        text = pool.submit(anyio.run, first).result()
    assert len(json.loads(text.partition("data: ")[2])["rows"]) == 1


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UsageError, match=r"pip install 'pdcl\[live\]'"):
        command_line.main([str(tmp_path)])
    with pytest.raises(UsageError, match="not a directory"):
        command_line.main([str(tmp_path / "absent")])
