"""The version, which stands in pyproject.toml alone."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PATIENCE = 60  # seconds for git, on a machine that others use too


def own_version() -> str:
    """What is installed; `source` where pdcl runs from its sources without being installed."""
    try:
        return version("pdcl")
    except PackageNotFoundError:
        return "source"


@cache
def own_commit() -> str:
    """The commit of the checkout that this code lies in, with `-dirty` if files differ; empty where it is installed.

    A machine under load may make git wait: a record then says so, since an empty name would read as "installed".
    """
    root = Path(__file__).parents[3]
    if not (root / ".git").exists() or not (root / "src" / "pdcl").is_dir():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout.strip()
    except subprocess.TimeoutExpired:
        return f"unknown: git took over {PATIENCE} seconds"
    except (OSError, subprocess.SubprocessError):
        return ""
