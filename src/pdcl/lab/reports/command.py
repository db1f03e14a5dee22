"""The command that repeats a run, made from its config."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def command(config: Mapping[str, Any]) -> str:
    """`pdcl run …` with what the user or a study chose; everything else follows from stream, method and preset."""
    words = ["pdcl", "run", str(config["stream"]), str(config["method"])]
    if config["preset"] != "auto":
        words += ["--preset", str(config["preset"])]
    for name, option in config["options"].items():
        if option["source"] in ("user", "study") or name in ("memory", "seed"):
            words += _words(name, option["value"])
    for name, value in config["stream_options"].items():
        if value is not None and name != "data":
            # The command line reads JSON: True would be a text there, true is a truth value.
            words += ["--stream-option", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def _words(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [flag if value else "--no-" + flag[2:]]
    if value is None:
        return []
    if isinstance(value, list):
        return [flag, *(str(each) for each in value)]
    return [flag, str(value)]
