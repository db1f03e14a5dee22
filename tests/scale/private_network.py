"""Ray opens ports on the machine's address. Tests start it only where there is no address but 127.0.0.1."""

from __future__ import annotations

import functools
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ALONE = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
ROOT = Path(__file__).parents[2]


def is_alone() -> bool:
    return [name for _, name in socket.if_nameindex()] == ["lo"]


@functools.cache
def obstacle() -> str | None:
    """Why no private network can be had here; None: it can."""
    if missing := [tool for tool in ("unshare", "ip") if shutil.which(tool) is None]:
        return f"{missing[0]} isn't installed"
    tried = subprocess.run([*ALONE, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False)
    return tried.stderr.strip() or "unshare failed" if tried.returncode else None


def in_private_network(test: Callable[..., None]) -> Callable[..., None]:
    """Run the test in a process of its own, in a network namespace with loopback alone. What it starts ends with it."""

    @functools.wraps(test)
    def inside(request: pytest.FixtureRequest, *args: Any, **fixtures: Any) -> None:
        if is_alone():
            test(*args, **fixtures)
            return
        if (why := obstacle()) is not None:
            pytest.skip(f"Ray is not tested here: no private network namespace ({why})")
        again = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
        line = "ip link set lo up && exec " + " ".join(again) + ' "$0"'
        words = [*ALONE, "sh", "-c", line, request.node.nodeid]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, env=_environment())
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
        assert " passed" in done.stdout, done.stdout

    inside.__signature__ = _with_request(test)  # type: ignore[attr-defined]
    return inside


def _with_request(test: Callable[..., None]) -> Any:
    import inspect

    old = inspect.signature(test)
    request = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return old.replace(parameters=[request, *old.parameters.values()])


def _environment() -> dict[str, str]:
    # No addresses of other clusters, and nothing sent anywhere.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return {**kept, "RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_MEMORY_MONITOR": "1"}
