"""Readings of the paper that it leaves open: one change of the preset at a time, each held against the printed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pdcl.lab.paper.cells import mean, row_of, section, shown
from pdcl.lab.paper.judging import OURS
from pdcl.lab.paper.runs import Runs, more
from pdcl.lab.paper.settings import ACCURACY, FOUR, SLOW, STARTED, Setting
from pdcl.lab.paper.sizes import cell

DROPPED = {"selection": "dual:drop=0.05"}


@dataclass(frozen=True)
class Reading:
    """What is read otherwise, and the runs that do so: labels, each with the method whose printed form it changes."""

    says: str
    part: str
    labels: Mapping[str, str]
    setting: Setting


def _read(says: str, part: str, labels: Mapping[str, str] | tuple[str, ...], options: Mapping[str, Any],
          stream: str = "mnist") -> Reading:  # fmt: skip
    own = labels if isinstance(labels, Mapping) else {label: label for label in labels}
    return Reading(says, part, own, Setting("", stream, options=options))


READINGS = (
    _read("PB over λ_1 … λ_{t−1}, as Algorithm 1's line 10 prints it: the newest task gets 1/t", "newest",
          ("pdcl",), {"current_cap": 1.0}),
    _read("duals and Adam's state go on from task to task", "warm", OURS, {"warm": True, "keep_optimizer": True}),
    _read("κ = 1", "decay", ("pdcl0", "pdcl"), {"decay": 1.0}),
    _read("T_p = 1", "every-step", ("pdcl0", "pdcl"), {"primal_steps": 1}),
    _read("λ from 1", "start", OURS, STARTED),
    _read("Adam at .001", "rate", ("er", "er-ring", *OURS), SLOW),
    _read("as many samples of each class", "selection", {"pdcl-s-balanced": "pdcl-s"}, {"balance": True}),
    _read("the largest 5 % of duals dropped as outliers", "dropped", {"pdcl-s-dropped": "pdcl-s"}, DROPPED),
    _read("dropped, and as many of each class", "dropped", {"pdcl-s-dropped-balanced": "pdcl-s"},
          {**DROPPED, "balance": True}),
    _read("λ from 1", "start", OURS, STARTED, "organa"),
    _read("four epochs", "epochs-organa", ("er", *OURS), FOUR["organa"], "organa"),
    _read("four epochs, λ from 1", "epochs-organa-start", OURS, FOUR["organa"] | STARTED, "organa"),
    _read("four epochs instead of two", "epochs-speech", ("er", *OURS), FOUR["speech"], "speech"),
    _read("four epochs, λ from 1", "epochs-speech-start", OURS, FOUR["speech"] | STARTED, "speech"),
)  # fmt: skip
TEXT = """## Readings that the paper leaves open

Each changes the preset in one place; memory 500. *Over the printed form*: the same method, this reading minus the
preset's. *Over er*: er with the same rate and epochs. Points of accuracy, paired 95 % interval, seeds; **bold** leaves
0 out. These readings are options of the study, and no reason to change a default."""


def readings(runs: Runs) -> str:
    """The section of the page; empty where none was run."""
    lines, missing = [], []
    for each in READINGS:
        found = [line for label, printed in each.labels.items() if (line := _line(each, label, printed, runs))]
        lines += found
        missing += [] if found else [f"{each.says} ({each.setting.stream})"]
    columns = "reading | stream | method | accuracy % | over the printed form | over er | part"
    rest = f"\n\nNot run: {'; '.join(missing)}." if lines and missing else ""
    return section(TEXT, columns, "lllrrrl", lines) + rest


def _line(reading: Reading, label: str, printed: str, runs: Runs) -> str:
    changed = reading.setting
    if not (found := changed.scores(label, ACCURACY, runs)):
        return ""
    before = replace(changed, options={}).scores(printed, ACCURACY, runs)
    alike = {name: value for name, value in changed.options.items() if name in ("lr", "epochs")}
    er = replace(changed, options=alike).scores("er", ACCURACY, runs)
    over = cell(more(found, before)), "" if label == "er" else cell(more(found, er))
    return row_of(reading.says, changed.stream, label, shown(mean(found), ".1f"), *over, f"`{reading.part}`")
