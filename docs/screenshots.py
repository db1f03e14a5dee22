"""The pictures in these pages, taken from real runs:

python docs/screenshots.py DIGITS_RUNS MNIST_RUNS

makes docs/images/report.png and report-dark.png from the first directory, report-mnist.png and watch.png from the
second. Needs chromium (`make browser`) and the test extra.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from pdcl.reports.writing import write_report

IMAGES = Path(__file__).parent / "images"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SIZE = {"width": 1280, "height": 1500}
LARGEST = 300_000


def main(digits: str, mnist: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    chromium = os.environ.get("PDCL_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name, runs, title in (("digits", digits, "Digits in five tasks"), ("mnist", mnist, "MNIST in five tasks")):
            write_report([Path(runs)], Path(place) / f"{name}.html", title=title)
        take(browser, (Path(place) / "digits.html").as_uri(), "report.png", "light")
        take(browser, (Path(place) / "digits.html").as_uri(), "report-dark.png", "dark")
        take(browser, (Path(place) / "mnist.html").as_uri(), "report-mnist.png", "light", below="#runs-title")
        watch(browser, mnist)
        browser.close()


def watch(browser: Any, directory: str) -> None:
    words = [sys.executable, "-c", "import sys; from pdcl.cli import main; sys.exit(main())", "watch", directory]
    server = subprocess.Popen([*words, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        take(browser, found[0], "watch.png", "light")
    finally:
        server.terminate()
        server.wait()


def take(browser: Any, address: str, name: str, scheme: str, below: str | None = None) -> None:
    page = browser.new_page(viewport=SIZE, color_scheme=scheme)
    page.set_default_timeout(180_000)
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.wait_for_selector('[data-chart="accuracy"] svg.main-svg')
    if below:
        page.evaluate(f"document.querySelector('{below}').scrollIntoView()")
    page.wait_for_timeout(1500)
    path = IMAGES / name
    page.screenshot(path=path)
    page.close()
    # 200 colours keep flat pages sharp at a third of the bytes.
    Image.open(path).convert("RGB").quantize(200, dither=Image.Dither.NONE).save(path, optimize=True)
    assert path.stat().st_size < LARGEST, f"{path} has {path.stat().st_size} bytes"
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
