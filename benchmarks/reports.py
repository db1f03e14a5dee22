"""How long a report of 100 runs takes and how large it is; how soon the live page stands with 500 runs and 10⁶ events.

python benchmarks/reports.py
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pdcl
from pdcl.reports.writing import write_report

RUNS, WATCHED, EVENTS = 100, 500, 1_000_000
BROWSER = os.environ.get("PDCL_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")


def copies(run: Path, out: Path, count: int) -> None:
    """The same real run under other seeds."""
    config = json.loads((run / "config.json").read_text())
    for seed in range(count):
        copy = out / f"{run.name}-copy{seed}"
        shutil.copytree(run, copy)
        changed = {**config, "seed": seed // 4, "memory": 100 * (1 + seed % 4)}
        (copy / "config.json").write_text(json.dumps(changed))


def report(run: Path, place: Path) -> None:
    copies(run, place / "hundred", RUNS)
    start, busy = time.perf_counter(), time.process_time()
    path = write_report([place / "hundred"], place / "report.html")
    seconds, busy, size = time.perf_counter() - start, time.process_time() - busy, path.stat().st_size / 1e6
    print(f"report of {RUNS} runs: {seconds:.1f} s (limit 20), {busy:.1f} s of CPU, {size:.1f} MB (limit 15)")


def lengthen(run: Path, events: int) -> None:
    """An unfinished run with so many events."""
    (run / "result.json").unlink()
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    step = next(line for line in lines if '"stepped"' in line)
    begun = [line for line in lines if '"run_began"' in line or '"task_began"' in line][:2]
    (run / "events.jsonl").write_text("".join(begun) + step * events)


def live(run: Path, place: Path) -> None:
    copies(run, place / "many", WATCHED)
    each = EVENTS // 50
    for number in range(50):
        lengthen(place / "many" / f"{run.name}-copy{number * 10}", each)
    words = [sys.executable, "-c", "import sys; from pdcl.cli import main; sys.exit(main())", "watch"]
    server = subprocess.Popen([*words, str(place / "many"), "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        # As a user would: the address is read, then opened.
        time.sleep(2)
        opened(found[0])
    finally:
        server.terminate()
        server.wait()


def opened(address: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        page = playwright.chromium.launch(executable_path=BROWSER, args=flags).new_page()
        page.goto("about:blank")
        for again in ("first", "again"):
            start = time.perf_counter()
            page.goto(address)
            page.wait_for_selector(f".runs li:nth-child({WATCHED})", timeout=120_000)
            listed = time.perf_counter() - start
            page.wait_for_selector('[data-chart="loss"] svg.main-svg', timeout=120_000)
            drawn = time.perf_counter() - start
            print(f"live page, {WATCHED} runs, {again}: list in {listed:.2f} s (limit 2), charts in {drawn:.2f} s")
        start = time.perf_counter()
        page.fill("#run-search", "seed 7")
        assert page.locator(".runs li:visible").count() < WATCHED
        print(f"filtering {WATCHED} runs: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        made = pdcl.run("digits", "pdcl", preset="tuned", memory=100, seed=0, out=Path(name) / "one").path
        assert made is not None
        report(made, Path(name))
        if BROWSER is None:
            print("there is no browser, so the live page isn't measured: make browser")
        else:
            live(made, Path(name))
