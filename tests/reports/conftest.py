"""Real runs to look at, and a real browser to look at them with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pdcl

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 180_000
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def real_runs(tmp_path_factory) -> Path:
    """Digits by two methods and two seeds, and one without memory: small, but nothing about them is made up."""
    out = tmp_path_factory.mktemp("runs")
    for seed in range(2):
        for method in ("pdcl", "er-ring"):
            pdcl.run("digits", method, preset="tuned", memory=50, seed=seed, epochs=1, out=out)
    pdcl.run("digits", "finetune", preset="tuned", seed=0, epochs=1, out=out)
    return out


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    found = os.environ.get("PDCL_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no chromium to test pages with: `make browser` installs one, PDCL_BROWSER names one")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(QUIET))
        yield browser
        browser.close()


class Look:
    """A page that is open, with whatever its console said and wherever it went."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("request", lambda request: self.asked.append(request.url))

    @property
    def outside(self) -> list[str]:
        """Requests that left this machine."""
        return [url for url in self.asked if not url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:"))]

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]")


@pytest.fixture
def look(chromium):
    """`with look(width=390) as seen:` a fresh browser profile."""

    @contextmanager
    def looking(**context: Any) -> Iterator[Look]:
        made = chromium.new_context(viewport={"width": context.pop("width", 1280), "height": 900}, **context)
        # Whether a page is fast is for benchmarks to say: a busy machine makes no test red.
        made.set_default_timeout(PATIENCE)
        try:
            yield Look(made.new_page())
        finally:
            made.close()

    return looking
