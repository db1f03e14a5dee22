"""Where a user's cache lies."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "PDCL_CACHE"


def cache_directory() -> Path:
    """Where downloads and prepared data go: $PDCL_CACHE, or the place the platform has for it."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    import pooch

    return Path(pooch.os_cache("pdcl"))
