"""Strict JSON."""

from __future__ import annotations

import json
import math
import os
from typing import Any


def dumps(value: Any, indent: int | None = None) -> str:
    """Strict JSON of plain values, arrays, tensors and paths; what isn't finite becomes null."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=indent, default=_plain)
    except ValueError:
        # Rare, so only then is every number looked at.
        value = finite(value)
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=indent)
    return text if text.isascii() or encodable(text) else json.dumps(value, indent=indent, default=_plain)


def encodable(text: str) -> bool:
    """False where half of a surrogate pair is in it, which UTF-8 can't hold and JSON can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def finite(value: Any) -> Any:
    """The same value with None for every number that isn't finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if value is None or isinstance(value, str | int):
        return value
    return finite(_plain(value))


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(
        f"{value!r} ({type(value).__name__}) has no place in a record: JSON knows numbers, text, lists and dicts"
    )
