"""Named option tables per stream, read from `<stream>.toml` beside this file.

A table holds options for all methods, then a sub-table per method, then a sub-table per memory size, of which the
nearest applies. `extends` names the preset it builds on; a sub-table `stream` holds options of the stream itself.
One table serves all methods of a stream. Options that a method doesn't have are skipped, and what it says to all in a
name that PDCL declares is PDCL's: `alpha` is the partition's, not X-DER's weight of stored outputs.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from pdcl.errors import UsageError
from pdcl.methods.catalog import Method


@cache
def tables(stream: str) -> dict[str, Any]:
    """All presets of a stream; {} where it has none."""
    path = files(__package__).joinpath(f"{stream}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def stream_options(stream: str, preset: str | None) -> dict[str, Any]:
    """What a preset asks of the stream itself (its sub-table `stream`), such as smaller images."""
    table = {} if preset is None else tables(stream).get(preset, {})
    found: dict[str, Any] = table.get("stream", {})
    return stream_options(stream, table["extends"]) | found if "extends" in table else found


def layers(stream: str, preset: str, entry: Method, memory: int | None) -> list[tuple[str, dict[str, Any]]]:
    """What a preset says to a method, from general to special: (where it came from, options)."""
    from pdcl.methods.pdcl import PDCL

    known = tables(stream)
    if preset not in known:
        before = "; what was called default is called tuned" if preset == "default" and "tuned" in known else ""
        raise UsageError(f"stream {stream!r} has no preset {preset!r}; it has: auto, {', '.join(known)}{before}")
    table = dict(known[preset])
    base = table.pop("extends", None)
    found = [] if base is None else layers(stream, base, entry, memory)
    # What it says to all methods, without the options of PDCL where the method isn't one.
    theirs = () if issubclass(entry.load(), PDCL) else vars(PDCL)["__annotations__"]
    common = {name: value for name, value in _plain(table).items() if name not in theirs}
    found.append((f"preset {preset}", common))
    own = table.get(entry.name, {})
    found.append((f"preset {preset}, {entry.name}", _plain(own)))
    sizes = {int(size): options for size, options in own.items() if isinstance(options, dict)}
    if sizes and memory is not None:
        nearest = min(sizes, key=lambda size: (abs(size - memory), size))
        found.append((f"preset {preset}, {entry.name}, memory {nearest}", sizes[nearest]))
    return [(source, options) for source, options in found if options]


def _plain(table: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if not isinstance(value, dict)}
