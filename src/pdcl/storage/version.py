"""The version, which stands in pyproject.toml alone."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """What is installed; `source` where pdcl runs from its sources without being installed."""
    try:
        return version("pdcl")
    except PackageNotFoundError:
        return "source"
