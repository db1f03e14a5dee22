"""Which audit set a model means: one that a call names, or the one beside the model whose id the model recorded.

The id is random and lies in the audit set's directory. A path that a model recorded is never acted on: the model may be
a copy, may have been moved, or may come from a stranger.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdcl.errors import PdclError
from pdcl.storage.disk import read_regular, reported, write_whole

ID = "audit.id"
LONGEST = 64


def identity(place: Path) -> str | None:
    """The id of an audit set; None where it has none, or there is no audit set."""
    if not os.path.lexists(place / ID):
        return None
    return read_regular(place / ID, LONGEST).decode("ascii", "replace").strip() or None


def made_identity(place: Path) -> str:
    """The id of an audit set, which gets one where it has none. The directory is made where it is missing."""
    known = identity(place)
    if known is None:
        known = secrets.token_hex(16)
        with reported(place):
            place.mkdir(parents=True, exist_ok=True)
            write_whole(place / ID, f"{known}\n".encode())
    return known


def beside(model: Path, name: str, recorded: str | None) -> Path | None:
    """The audit set of this name in the directory that holds the model, if it has the recorded id."""
    if recorded is None or name in ("", "..") or name != Path(name).name:
        return None
    place = Path(os.path.abspath(model)).parent / name
    try:
        return place if identity(place) == recorded else None
    except (PdclError, ValueError):
        return None


def recorded_in(entry: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """Name and id of the audit set that an entry's task was set aside in; an older entry has no id."""
    about = entry["result"].get("audit")
    if not isinstance(about, dict):
        return None
    return Path(str(about.get("place", ""))).name, about.get("id")
