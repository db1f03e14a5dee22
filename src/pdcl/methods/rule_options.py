"""The options of `PDCL` that are short for settings of its rules, and the rules that a set of options describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pdcl.algorithm.rules import HOMES, rule
from pdcl.limits.tolerances import Tolerances, usual_partition

# Options that are short for a setting of a rule: dual_lr=.05 is dual="ascent:lr=.05".
SHORT = {
    "dual_lr": ("dual", "lr"),
    "decay": ("dual", "decay"),
    "gain": ("dual", "gain"),
    "alpha": ("partition", "alpha"),
    "current_cap": ("partition", "current_cap"),
    "minimum": ("partition", "minimum"),
    "clip": ("selection", "clip"),
    "uniform_share": ("selection", "uniform_share"),
    "balance": ("selection", "balance"),
    "candidates": ("selection", "candidates"),
    "rescore": ("selection", "rescore"),
}


def without_short_ones(kind: str, written: str) -> str:
    """A rule as it is written, without the settings that options of their own are short for."""
    short = {setting for home, setting in SHORT.values() if home == kind}
    name, _, rest = written.partition(":")
    kept = ",".join(each for each in rest.split(",") if each and each.partition("=")[0] not in short)
    return f"{name}:{kept}" if kept else name


def rules_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The rules that a learner's options describe, short ones entered."""
    usual = _usual(Tolerances(options["tolerance"]))
    found = {kind: rule(kind, usual.get(kind) if options[kind] is None else options[kind]) for kind in HOMES}
    for name, (kind, setting) in SHORT.items():
        if options[name] is not None:
            found[kind] = replace(found[kind], **{setting: options[name]})
    return found


def open_rules(options: Mapping[str, Any], tolerances: Tolerances) -> dict[str, Any]:
    """The rules that go by limits, as these limits want them, where no option states the rule or a setting of it."""
    stated = {kind for kind in HOMES if options[kind] is not None}
    stated |= {kind for name, (kind, _) in SHORT.items() if options[name] is not None}
    return {kind: rule(kind, usual) for kind, usual in _usual(tolerances).items() if kind not in stated}


def _usual(tolerances: Tolerances) -> dict[str, str]:
    return {"dual": "capped" if tolerances.in_error else "ascent", "partition": usual_partition(tolerances)}
