"""Where a user's cache lies."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "PDCL_CACHE"
LEDGERS_VARIABLE = "PDCL_LEDGERS"
# What a file of looks is called, wherever it lies.
LEDGER = "ledger.jsonl"


def cache_directory() -> Path:
    """Where downloads and prepared data go: $PDCL_CACHE, or the place the platform has for it."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    import pooch

    return Path(pooch.os_cache("pdcl"))


def ledgers_directory() -> Path:
    """Where the looks of this user are known, or of a team that shares it: $PDCL_LEDGERS, else in the cache."""
    chosen = os.environ.get(LEDGERS_VARIABLE)
    return Path(chosen) if chosen else cache_directory() / "ledgers"
