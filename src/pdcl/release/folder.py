"""A folder of evidence as files: written whole, never over another, each with its sha256."""

from __future__ import annotations

import hashlib
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pdcl.errors import PdclError, UsageError
from pdcl.storage.disk import move, read_regular, remove_tree, reported, sync, write

MANIFEST = "manifest.json"


class BadEvidence(PdclError):
    """Evidence that doesn't support its verdict."""


def write_folder(path: Path, parts: dict[str, bytes]) -> Path:
    """Fill a new directory with these files and their manifest."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    with reported(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _place_whole(path, {**parts, MANIFEST: json_bytes(hashes)})
    return path


def _place_whole(path: Path, parts: dict[str, bytes]) -> None:
    """All files at once: a reader sees no evidence, or all of it."""
    fresh = path.with_name(f".{path.name}.tmp")
    remove_tree(fresh)
    fresh.mkdir()
    for name, content in parts.items():
        write(fresh / name, content)
    sync(fresh / name for name in parts)
    if path.exists():
        path.rmdir()
    move(fresh, path)


def check_place(path: Path) -> None:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"evidence {path} is there already; evidence is never overwritten: choose a new directory")


def unchanged(path: Path) -> dict[str, bytes]:
    """The files that the manifest lists, each as it was written."""
    try:
        hashes = json.loads(read_regular(path / MANIFEST))
        parts = {name: read_regular(path / name) for name in hashes if "/" not in name and "\\" not in name}
    except (ValueError, TypeError) as error:
        raise BadEvidence(f"{path / MANIFEST} is no manifest: {error}") from error
    for name, content in parts.items():
        if hashlib.sha256(content).hexdigest() != hashes[name]:
            raise BadEvidence(f"{path / name} was changed since it was written")
    if missing := {"verdict.json", "outcomes.npz", "ledger.jsonl"} - parts.keys():
        raise BadEvidence(f"{path} lacks {', '.join(sorted(missing))}")
    return parts


def packed(arrays: dict[str, Any]) -> bytes:
    buffer = BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def json_bytes(content: Any) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
