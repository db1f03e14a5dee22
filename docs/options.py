"""The page `options.md`, from the code:

python docs/options.py > docs/options.md
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any

from pdcl.algorithm.rules import HOMES, rule, rule_names
from pdcl.cli.form import NOT_OFFERED, explained
from pdcl.cli.run import Running
from pdcl.lab.methods.er import ER
from pdcl.learning.schedule import Schedule
from pdcl.methods.catalog import method, methods
from pdcl.methods.pdcl import PDCL
from pdcl.methods.plain import Finetune

DEFAULTS = "[defaults](results/promise.md#with-defaults-and-nothing-else)"
LIMITS = "[limits kept](results/promise.md#limits-kept)"
MNIST = "[first look](results/first_look.md#mnist-online)"
PRINTED = "[presets](presets.md#what-a-printed-rule-is-option-by-option)"
TAMED = "[presets](presets.md#where-the-papers-adam-needs-taming)"
PRICES = "[prices](prices.md#what-if)"
NONE = "none yet"
# What was measured of each option. One that isn't here, or no longer there, fails a test.
EVIDENCE = {
    "tolerance": LIMITS,
    "base": DEFAULTS,
    "base_most": DEFAULTS,
    "guard": LIMITS,
    "witness": LIMITS,
    "level": MNIST,
    "dual": LIMITS,
    "estimator": NONE,
    "partition": f"{LIMITS}, {MNIST}",
    "selection": MNIST,
    "lever": NONE,
    "dual_steps": PRICES,
    "primal_steps": NONE,
    "start": PRINTED,
    "warm": NONE,
    "normalise": TAMED,
    "dual_lr": f"{MNIST}, {PRICES}",
    "decay": NONE,
    "gain": PRICES,
    "slack_samples": PRINTED,
    "alpha": NONE,
    "current_cap": MNIST,
    "minimum": NONE,
    "clip": TAMED,
    "uniform_share": TAMED,
    "balance": TAMED,
    "candidates": NONE,
    "rescore": NONE,
    "drift": f"{DEFAULTS}, {PRICES}",
    "soften": f"{DEFAULTS}, {PRICES}",
}
STATED = {
    "without a limit": None, "for rises (+2pt)": "+2pt", "for error rates (5%)": "5%", "for losses (0.05)": 0.05,
}  # fmt: skip
KINDS = {
    "dual": "How duals answer slacks",
    "estimator": "Which stored samples a step replays, and with what weights",
    "partition": "How memory is divided among tasks",
    "selection": "Which samples memory keeps",
    "lever": "What else acts after each dual step; there is none until you [add one](extending.md#a-lever)",
}
HEAD = """# Every option

Each is an argument of `pdcl.run` and of the learner, a flag of `pdcl run` (`--dual-lr`), and a key in studies. The
defaults are the same on every stream, and batch and epochs go by its size: that is `auto`. Another [preset](presets.md)
is asked for by name; `pdcl run STREAM METHOD --preset NAME --help` shows the values that hold there.

This page is the output of `python docs/options.py`, and a test compares the two.
"""


TRAINED = """Arguments of `pdcl.run`, of `learn` and of `pdcl update`. If you state neither and name no
preset, they go by the size of the task: batches of 10 (32 from 2,000 samples on), and passes for about 600 steps, from
1 to 20.

"""


def page() -> str:
    shared = {each.name for each in fields(Finetune)}
    replayed = {each.name for each in fields(ER)}
    parts = [
        HEAD,
        "## How a run is carried out\n\nOn the command line.\n\n" + _table(Running),
        "## How long a task is trained\n\n" + TRAINED + _table(Schedule),
        "## All methods\n\n" + _table(Finetune),
        "## Methods that replay\n\n" + _table(ER, without=shared),
        "## pdcl, pdcl0, pdcl-s, even\n\n" + _variants() + "\n\n" + _own_table(replayed),
        "## Rules\n\n" + _rules(),
        "## Other methods\n\n" + "\n\n".join(_others(replayed)),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _table(kind: type, without: frozenset[str] | set[str] = frozenset()) -> str:
    helps = explained(kind)
    rows = [f"| `{f.name}` | {_shown(f.default)} | {_cell(helps[f.name])} |" for f in _offered(kind, without)]
    return "\n".join(["| option | default | effect |", "|---|---|---|", *rows])


def _own_table(without: set[str]) -> str:
    helps = explained(PDCL)
    settled = {words: PDCL.settled({} if limit is None else {"tolerance": limit}) for words, limit in STATED.items()}
    rows = []
    for each in _offered(PDCL, without):
        found = {
            words: each.default if each.default is not None else own.get(each.name) for words, own in settled.items()
        }
        rows.append(f"| `{each.name}` | {_by_limit(found)} | {_cell(helps[each.name])} | {EVIDENCE[each.name]} |")
    return "\n".join(["| option | default | effect | measured in |", "|---|---|---|---|", *rows])


def _by_limit(found: dict[str, Any]) -> str:
    """What holds by the kind of limit that is stated, where that matters."""
    texts = {words: _shown(value) for words, value in found.items()}
    if len(set(texts.values())) == 1:
        return texts.popitem()[1]
    kinds = {text: " and ".join(words for words in texts if texts[words] == text) for text in texts.values()}
    return "; ".join(f"{text} {words}" for text, words in kinds.items())


def _variants() -> str:
    """Which options make each of the four."""
    found = {name: method(name).defaults for name in ("pdcl", "pdcl0", "pdcl-s", "even")}
    rows = [
        f"| `{name}` | {method(name).summary.removeprefix('+ ')} | {_settings(own)} |" for name, own in found.items()
    ]
    return "\n".join(["| method | what it does | sets |", "|---|---|---|", *rows])


def _settings(own: dict[str, Any]) -> str:
    return ", ".join(f"`{name}={value}`" for name, value in own.items())


def _rules() -> str:
    parts = ['Written with their settings: `partition="affine:alpha=.3"`. To add one: [rules](rules.md).']
    for kind in HOMES:
        rows = [_rule(kind, name) for name in rule_names(kind)]
        table = ["", "| name | settings | rule |", "|---|---|---|", *rows] if rows else []
        parts.append("\n".join([f"### {kind}\n", f"{KINDS[kind]}.", *table]))
    return "\n\n".join(parts)


def _rule(kind: str, name: str) -> str:
    found = type(rule(kind, name))
    settings = ", ".join(f"`{f.name}={f.default}`" for f in fields(found)) or "–"
    summary = (found.__doc__ or "").strip().split("\n\n")[0]
    return f"| `{name}` | {settings} | {_cell(' '.join(summary.split()))} |"


def _others(replayed: set[str]) -> list[str]:
    found = []
    usual = explained(ER)
    for entry in methods().values():
        kind = entry.load()
        helps = explained(kind)
        # One that means something else to this method is told again.
        shared = {name for name in replayed if helps.get(name, usual[name]) == usual[name]}
        if kind is not PDCL and _offered(kind, shared):
            found.append(
                f"### {entry.name}\n\n{entry.summary[0].upper()}{entry.summary[1:]}.\n\n{_table(kind, shared)}"
            )
    return found


def _offered(kind: type, without: frozenset[str] | set[str]) -> list[Any]:
    return [each for each in fields(kind) if each.init and each.name not in {*without, *NOT_OFFERED}]


def _shown(value: Any) -> str:
    if value is None or value is MISSING or value == ():
        return "–"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"`{value}`"


def _cell(text: str) -> str:
    return re.sub(r"\|", "\\|", text)


if __name__ == "__main__":
    print(page(), end="")
