"""The table of `presets.md`: where each preset deviates from the paper, from the presets themselves.

python docs/presets.py
"""

from __future__ import annotations

from typing import Any

from pdcl.learners.catalog import method
from pdcl.running.options import standing
from pdcl.running.presets import stream_options, tables

STREAMS = ("mnist", "speech", "organa", "tiny_imagenet", "digits")
METHODS = ("pdcl0", "pdcl", "pdcl-s")
# What the paper leaves open: no value of these is a deviation.
OPEN = (
    "seed", "memory", "epochs", "batch", "replay", "dual_steps", "primal_steps", "estimator", "minimum",
    "drift_tolerance", "device", "precision",
)  # fmt: skip
HEAD = "| stream | preset | method | own value (the paper's) |\n|---|---|---|---|"


def deviations(stream: str, preset: str, name: str) -> dict[str, tuple[Any, Any]]:
    """Options of a primal-dual method that differ from those of the preset `paper`: its own value, the paper's."""
    entry = method(name)
    paper, own = (standing(entry, stream, each, None) | _of_stream(stream, each) for each in ("paper", preset))
    keys = sorted({*paper, *own} - {*OPEN})
    return {key: (own.get(key), paper.get(key, "–")) for key in keys if own.get(key) != paper.get(key)}


def _of_stream(stream: str, preset: str) -> dict[str, Any]:
    return {f"stream.{name}": value for name, value in stream_options(stream, preset).items()}


def lines() -> list[str]:
    found = []
    for stream in STREAMS:
        for preset in tables(stream):
            each = {name: _text(deviations(stream, preset, name)) for name in METHODS}
            if len(set(each.values())) == 1:
                found.append(f"| {stream} | `{preset}` | all three | {each['pdcl']} |")
            else:
                found += [f"| {stream} | `{preset}` | {name} | {text} |" for name, text in each.items()]
    return found


def _text(found: dict[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{key} {own} ({paper})" for key, (own, paper) in found.items()) or "nothing"


if __name__ == "__main__":
    print("\n".join([HEAD, *lines()]))
