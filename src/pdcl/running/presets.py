"""Named option tables per stream, read from `presets/<stream>.toml`.

A table holds options for all methods, then a sub-table per method, then a sub-table per memory size, of which the
nearest applies. `extends` names the preset it builds on; a sub-table `stream` holds options of the stream itself.
Options that a method doesn't have are skipped: one table serves all methods of a stream.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from pdcl.errors import UsageError


@cache
def tables(stream: str) -> dict[str, Any]:
    """All presets of a stream; {} where it has none."""
    path = files("pdcl").joinpath("presets", f"{stream}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def stream_options(stream: str, preset: str | None) -> dict[str, Any]:
    """What a preset asks of the stream itself (its sub-table `stream`), such as smaller images."""
    known = tables(stream)
    table = known.get(preset or "default", {})
    found: dict[str, Any] = table.get("stream", {})
    return stream_options(stream, table["extends"]) | found if "extends" in table else found


def layers(stream: str, preset: str, method: str, memory: int | None) -> list[tuple[str, dict[str, Any]]]:
    """What a preset says, from general to special: (where it came from, options)."""
    known = tables(stream)
    if preset not in known:
        raise UsageError(f"stream {stream!r} has no preset {preset!r}; it has: {', '.join(known) or 'none'}")
    table = dict(known[preset])
    base = table.pop("extends", None)
    found = [] if base is None else layers(stream, base, method, memory)
    found.append((f"preset {preset}", _plain(table)))
    own = table.get(method, {})
    found.append((f"preset {preset}, {method}", _plain(own)))
    sizes = {int(size): options for size, options in own.items() if isinstance(options, dict)}
    if sizes and memory is not None:
        nearest = min(sizes, key=lambda size: (abs(size - memory), size))
        found.append((f"preset {preset}, {method}, memory {nearest}", sizes[nearest]))
    return [(source, options) for source, options in found if options]


def _plain(table: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if not isinstance(value, dict)}
