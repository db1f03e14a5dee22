"""Options of states that version 0.1 saved, as this version writes them; and which of them it has no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Rules that are gone, by option: a model that was learned with one still predicts.
GONE = {"constrain": ("drift", "both"), "slack": ("ema", "batch"), "estimator": ("uniform", "stratified")}


def gone(options: Mapping[str, Any]) -> str | None:
    """The first of these options that this version doesn't have, as it was written; None: it has all.

    >>> gone({"slack": "ema:smoothing=0.1"}), gone({"slack": "memory"})
    ("slack='ema:smoothing=0.1'", None)
    """
    for name, rules in GONE.items():
        written = options.get(name)
        if isinstance(written, str) and written.partition(":")[0] in rules:
            return f"{name}={written!r}"
    return None


def translated(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same options in today's words: settings of `constrain` and `slack` are options of their own now.

    >>> translated({"constrain": "loss:drift=0.3,soften=0.2", "slack": "memory", "soften": None})
    {'drift': 0.3, 'soften': 0.2}
    """
    old = ("constrain", "slack", "drift_tolerance")
    found = {name: value for name, value in options.items() if name not in old}
    found = {n: v for n, v in found.items() if v is not None or n not in ("soften", "slack_samples", "estimator")}
    if gone({"estimator": found.get("estimator")}) is not None:
        del found["estimator"]
    for rule, names in (("constrain", {"drift": "drift", "soften": "soften"}), ("slack", {"samples": "slack_samples"})):
        for part in str(options.get(rule) or "").partition(":")[2].split(","):
            setting, _, value = part.partition("=")
            if setting in names and found.get(names[setting]) is None:
                found[names[setting]] = int(value) if setting == "samples" else float(value)
    # A constraint on the loss alone had no drift unless it said so; without any word of it there was some.
    if options.get("constrain") is not None and found.get("drift") is None:
        found["drift"] = 0.0
    return found
