"""The live page in a real browser, while a real run writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pdcl
from pdcl.records import Record

sys.path.insert(0, str(Path(__file__).parents[1] / "learning"))
from ranks_started import free_port

HOSTILE = "<img src=x onerror=window.broken=1>"
DRAWN = "document.querySelector('[data-chart=loss] .plot').data.flatMap((line) => line.x).length"


@contextmanager
def serving(directory, port=0):
    """`pdcl watch` as a process; gives its address."""
    words = [sys.executable, "-c", "import sys; from pdcl.cli import main; sys.exit(main())", "watch", str(directory)]
    process = subprocess.Popen([*words, "--port", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        yield re.search(r"http://\S+", process.stdout.readline())[0]
    finally:
        process.terminate()
        process.wait(120)
        process.stdout.close()


def test_a_real_run_appears_grows_and_finishes_and_a_restart_is_survived(tmp_path, look, monkeypatch, request):
    events, seen_so_far, listener, port = [], threading.Event(), Record.listener, free_port()

    def waiting(record, event):
        """The run goes on after 50 events once the page has drawn some of them, however slow that is."""
        listener(record, event)
        events.append(event)
        assert len(events) < 50 or seen_so_far.wait(600)

    request.addfinalizer(seen_so_far.set)
    monkeypatch.setattr(Record, "listener", waiting)
    learning = threading.Thread(
        target=pdcl.run, args=("digits", "pdcl"), kwargs={"memory": 50, "epochs": 40, "out": tmp_path, "device": "cpu"}
    )
    with look() as seen:
        page = seen.page
        with serving(tmp_path, port) as address:
            seen.open(address)
            assert page.locator(".runs li").count() == 0
            learning.start()
            page.wait_for_selector(".runs li .dot.running")
            page.wait_for_selector('[data-chart="loss"] .scatterlayer .trace')
            before = page.evaluate(DRAWN)
            seen_so_far.set()
            until = time.monotonic() + 180
            while page.evaluate(DRAWN) <= before and time.monotonic() < until:
                page.wait_for_timeout(200)
            assert page.evaluate(DRAWN) > before
            assert seen.said == []
        page.wait_for_selector(".banner.lost")
        learning.join(300)
        with serving(tmp_path, port):
            page.wait_for_selector(".banner.live")
            page.wait_for_selector(".runs li .dot.finished")
            page.wait_for_selector('[data-chart="confusion"] svg.main-svg')
            assert page.locator(".thumb").count() > 10
        assert seen.outside == []


def test_a_hostile_run_shows_as_text_and_two_runs_compare(tmp_path, fake_run, look):
    for seed in range(2):
        fake_run(tmp_path, label=HOSTILE, seed=seed)
    (fake_run(tmp_path, accuracy=None, seed=7) / "events.jsonl").write_text(
        '{"time": 1, "event": "run_began", "tasks": 2, "epochs": 1}\n'
        '{"time": 1, "event": "task_began", "task": 0, "name": "a", "samples": 1, "steps": 1, "classes": []}\n'
        '{"time": 1, "event": "run_failed", "task": 0, "step": 0, "cause": "<script>window.broken=1</script>"}\n'
    )
    with look(width=390) as seen, serving(tmp_path) as address:
        seen.open(address)
        seen.page.wait_for_selector(".runs li .dot.failed")
        assert "<script>window.broken=1</script>" in seen.page.locator(".runs").inner_text()
        seen.page.select_option("#status", "finished")
        assert seen.page.locator(".runs li:visible").count() == 2
        for place in range(2):
            seen.page.locator(".runs li:visible input").nth(place).check()
        seen.page.wait_for_selector('[data-chart="comparison"] svg.main-svg')
        assert HOSTILE in seen.page.locator(".run-head h3").inner_text()
        assert seen.page.evaluate("window.broken") is None
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert seen.said == []
        assert seen.outside == []


def test_hostile_words_anywhere_in_a_run_stay_words(tmp_path, fake_run, look):
    """Names of streams, options, tasks and classes, of the directory, and in messages about damage."""
    run = fake_run(tmp_path, label=HOSTILE, seed=0)
    content = json.loads((run / "config.json").read_text())
    option = {HOSTILE: {"value": HOSTILE, "source": HOSTILE}}
    (run / "config.json").write_text(json.dumps({**content, "stream": HOSTILE, "preset": HOSTILE, "options": option}))
    events = [
        {"time": 0, "event": "run_began", "tasks": 1, "epochs": 1, "labels": [HOSTILE]},
        {"time": 1, "event": "task_began", "task": 0, "name": HOSTILE, "samples": 1, "steps": 1, "classes": [HOSTILE]},
        {"time": 2, "event": "warned", "task": 0, "message": HOSTILE},
    ]
    (run / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    run.rename(tmp_path / HOSTILE)
    (fake_run(tmp_path, seed=1) / "result.json").write_text(HOSTILE)
    with look() as seen, serving(tmp_path) as address:
        seen.open(address)
        seen.page.wait_for_selector(".runs li .dot.unreadable")
        seen.page.wait_for_selector(".runs li .dot.finished")
        for place in range(2):
            seen.page.locator(".runs li .pick").nth(place).click()
            seen.page.wait_for_selector(".run-head h3")
            seen.page.wait_for_timeout(1000)
        assert seen.page.evaluate("window.broken") is None
        assert seen.outside == []
