"""The tables of `presets.md`, from the presets themselves: deviations from the paper, and what baselines get.

python docs/presets.py --write     # enters them into the page; without --write they are printed
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

from pdcl.lab.presets import stream_options, tables
from pdcl.methods.catalog import method
from pdcl.methods.rule_options import SHORT
from pdcl.running.options import standing
from pdcl.streams.catalog import find

PAGE = Path(__file__).with_name("presets.md")
PAPER_STREAMS = ("mnist", "speech", "organa", "tiny_imagenet")
STREAMS = (*PAPER_STREAMS, "digits")
METHODS = ("pdcl0", "pdcl", "pdcl-s")
BASELINES = ("er", "er-ring", "agem", "gss", "xder")
# What the paper leaves open: no value of these is a deviation.
OPEN = (
    "seed", "memory", "epochs", "batch", "replay", "dual_steps", "primal_steps", "estimator", "minimum",
    "device", "precision",
)  # fmt: skip
HEAD = "| stream | preset | method | own value (the paper's) |\n|---|---|---|---|"
# Presets by which `pdcl study paper` runs baselines and, for each, the preset that their rates are chosen in.
CHOSEN_IN = {"paper": "tuned", "small-paper": "small"}
# Reported settings depend on the size of memory; this is the one of the study's main parts.
MEMORY = 500
BASELINE_HEAD = "| stream | preset | method | gives | instead of |\n|---|---|---|---|---|"


def effective(stream: str, preset: str, name: str, memory: int | None = None) -> dict[str, Any]:
    """Options as a run has them: open ones at the value they come to, without those that have no effect."""
    entry = method(name)
    kind = entry.load()
    values = standing(entry, stream, preset, memory)
    idle = {*kind.without_effect(values), *(["base_most"] if values.get("base") == 0 else [])}
    used = {key: value for key, value in values.items() if key not in idle}
    settled = {key: value for key, value in kind.settled(used).items() if used.get(key) is None}
    return {key: value for key, value in (used | settled).items() if value is not None} | _of_stream(stream, preset)


def _of_stream(stream: str, preset: str) -> dict[str, Any]:
    """Options of the stream that any of its presets sets: their values in this one."""
    usual = inspect.signature(find(stream)).parameters
    named = {option for each in tables(stream) for option in stream_options(stream, each)}
    own = {option: usual[option].default for option in named} | stream_options(stream, preset)
    return {f"stream.{option}": value for option, value in own.items()}


def deviations(stream: str, preset: str, name: str) -> dict[str, tuple[Any, Any]]:
    """Options of a primal-dual method that differ from those of the preset `paper`: its own value, the paper's.

    Settings of a rule that the method doesn't have are left out: the rule itself is listed.
    """
    paper, own = (effective(stream, each, name) for each in ("paper", preset))
    keys = sorted({*paper, *own} - {*OPEN} - {key for key in SHORT if key not in own})
    return {key: (own.get(key), paper.get(key)) for key in keys if own.get(key) != paper.get(key)}


def lines() -> list[str]:
    """Rows of the table of deviations."""
    found = []
    for stream in STREAMS:
        for preset in tables(stream):
            each = {name: _text(deviations(stream, preset, name)) for name in METHODS}
            found += [f"| {stream} | `{preset}` | {names} | {text} |" for names, text in _grouped(each)]
    return found


def baseline_lines() -> list[str]:
    """Rows of the table of baselines: optimiser, rate, batch + replay, and what else differs between two presets."""
    found = []
    for stream in PAPER_STREAMS:
        for preset in filter(tables(stream).__contains__, CHOSEN_IN):
            each = {name: " | ".join(_given_and_chosen(stream, preset, name)) for name in BASELINES}
            found += [f"| {stream} | `{preset}` | {names} | {text} |" for names, text in _grouped(each)]
    return found


def _given_and_chosen(stream: str, preset: str, name: str) -> tuple[str, str]:
    both = [effective(stream, each, name, MEMORY) for each in (preset, CHOSEN_IN[preset])]
    told = {"optimizer", "lr", "batch", "replay", "memory"}
    keys = sorted({*both[0], *both[1]} - told)
    further = [key for key in keys if both[0].get(key) != both[1].get(key)]
    given, chosen = (", ".join([_steps(each), *(f"{key} {_shown(each.get(key))}" for key in further)]) for each in both)
    return given, f"`{CHOSEN_IN[preset]}`: {'the same' if chosen == given else chosen}"


def _steps(options: dict[str, Any]) -> str:
    batch = options["batch"]
    return f"{options['optimizer']} {options['lr']}, {batch} + {options.get('replay', batch)}"


def _grouped(texts: dict[str, str]) -> list[tuple[str, str]]:
    """Methods with the same text, joined."""
    groups: dict[str, list[str]] = {}
    for name, text in texts.items():
        groups.setdefault(text, []).append(name)
    return [("all" if len(names) == len(texts) else ", ".join(names), text) for text, names in groups.items()]


def _text(found: dict[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{key} {_shown(own)} ({_shown(paper)})" for key, (own, paper) in found.items()) or "nothing"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def entered(page: str) -> str:
    """The page with both tables as the presets have them now."""
    for head, rows in ((BASELINE_HEAD, baseline_lines()), (HEAD, lines())):
        before, _, rest = page.partition(head + "\n")
        after = rest.splitlines(keepends=True)
        while after and after[0].startswith("|"):
            after.pop(0)
        page = "\n".join([before + head, *rows, "".join(after)])
    return page


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(entered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print("\n".join([BASELINE_HEAD, *baseline_lines(), "", HEAD, *lines()]))
