"""What a run is called: the same run, the same directory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from pdcl.errors import UsageError
from pdcl.records.writing import dumps

# Nothing that any file system treats specially; 200 leaves room for temporary suffixes below the usual 255.
SAFE = re.compile(r"[^\W_][\w.+=-]{0,199}(?<!\.)")


def run_name(
    stream: str, method: str, memory: int | str | None, seed: int, changed: Mapping[str, Any] | None = None
) -> str:
    """`<stream>-<method>-m<memory>-s<seed>`, and a hash of what differs from the stream's own preset, if any does."""
    name = f"{stream}-{method}-m{memory or 0}-s{seed}"
    return safe(f"{name}-{fingerprint(changed)}" if changed else name)


def unlimited(options: Mapping[str, Any]) -> str:
    """What stands behind the name of a primal-dual run without limits, since no dual of it ever moves; else nothing.

    Every past task has the base weight then, and an even share of memory: that is `even`, whatever it is called.
    """
    pursues = {"tolerance", "dual", "partition"} <= options.keys() and _rule(options["dual"]) != "frozen"
    if not pursues or options["tolerance"] is not None:
        return ""
    if not options.get("base"):
        return ", no limits, base 0"
    chosen = _rule(options["partition"]) in ("uniform", "affine") and _rule(options.get("selection")) == "uniform"
    return ", no limits = even" if chosen else ", no limits"


def _rule(written: Any) -> str:
    """The name of a rule; one that is left open is uniform where there are no limits."""
    return "uniform" if written is None else str(written).partition(":")[0]


def fingerprint(options: Mapping[str, Any]) -> str:
    """Eight hex digits that the order of the options doesn't change."""
    text = dumps({key: options[key] for key in sorted(options)})
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def safe(name: str) -> str:
    """The name itself, if it can name one directory on any system and can't leave its parent."""
    if SAFE.fullmatch(name) and len(name.encode()) <= 240:
        return name
    raise UsageError(
        f"{name!r} can't name the directory of a run: letters, digits and . _ + = - only, "
        "beginning with a letter or digit and at most 200 long; give the stream or method such a name"
    )
