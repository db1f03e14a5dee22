"""The version, which stands in pyproject.toml alone."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def own_version() -> str:
    """What is installed; `source` where pdcl runs from its sources without being installed."""
    try:
        return version("pdcl")
    except PackageNotFoundError:
        return "source"


@cache
def own_commit() -> str:
    """The commit of the checkout that this code lies in, with `-dirty` if files differ; empty where it is installed."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists() or not (root / "src" / "pdcl").is_dir():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
