"""The memory that a process has for itself: for scripts that tests start in this directory."""

from __future__ import annotations

import threading
import time
from pathlib import Path


def anonymous() -> float:
    """RssAnon in MB: without the pages of mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1024


def growth() -> list[float]:
    """Its one entry is the largest growth of this process's memory from now on, in MB."""
    before, worst = anonymous(), [0.0]

    def watch() -> None:
        while True:
            worst[0] = max(worst[0], anonymous() - before)
            time.sleep(0.005)

    threading.Thread(target=watch, daemon=True).start()
    return worst
