"""Readings of the paper that it leaves open: one change of the preset at a time, each held against the printed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pdcl.lab.paper.cells import mean, row_of, shown
from pdcl.lab.paper.judging import OURS
from pdcl.lab.paper.runs import SIZE, Runs, metric, more
from pdcl.lab.paper.settings import FOUR, OF_DUALS, SLOW, STARTED
from pdcl.lab.paper.sizes import cell

DROPPED = {"selection": "dual:drop=0.05"}


@dataclass(frozen=True)
class Reading:
    """What is read otherwise, and the runs that do so: labels, each with the method whose printed form it changes."""

    says: str
    part: str
    labels: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    stream: str = "mnist"


def _same(*labels: str) -> dict[str, str]:
    return {label: label for label in labels}


READINGS = (
    Reading("PB over λ_1 … λ_{t−1}, as Algorithm 1's line 10 prints it: the newest task gets 1/t", "newest",
            _same("pdcl"), {"current_cap": 1.0}),
    Reading("duals and Adam's state go on from task to task", "warm", _same(*OURS),
            {"warm": True, "keep_optimizer": True}),
    Reading("κ = 1", "decay", _same("pdcl0", "pdcl"), {"decay": 1.0}),
    Reading("T_p = 1", "every-step", _same("pdcl0", "pdcl"), {"primal_steps": 1}),
    Reading("λ from 1", "start", _same(*OURS), STARTED),
    Reading("Adam at .001", "rate", _same("er", "er-ring", *OURS), SLOW),
    Reading("as many samples of each class", "selection", {"pdcl-s-balanced": "pdcl-s"}, {"balance": True}),
    Reading("the largest 5 % of duals dropped as outliers", "dropped", {"pdcl-s-dropped": "pdcl-s"}, DROPPED),
    Reading("dropped, and as many of each class", "dropped", {"pdcl-s-dropped-balanced": "pdcl-s"},
            {**DROPPED, "balance": True}),
    Reading("λ from 1", "start", _same(*OURS), STARTED, "organa"),
    Reading("four epochs", "epochs-organa", _same("er", *OURS), FOUR["organa"], "organa"),
    Reading("four epochs, λ from 1", "epochs-organa-start", _same(*OURS), FOUR["organa"] | STARTED, "organa"),
    Reading("four epochs instead of two", "epochs-speech", _same("er", *OURS), FOUR["speech"], "speech"),
    Reading("four epochs, λ from 1", "epochs-speech-start", _same(*OURS), FOUR["speech"] | STARTED, "speech"),
)  # fmt: skip
TEXT = """## Readings that the paper leaves open

Each changes the preset in one place; memory 500. *Over the printed form*: the same method, this reading minus the
preset's. *Over er*: er with the same rate and epochs. Points of accuracy, paired 95 % interval, seeds; **bold** leaves
0 out. These readings are options of the study, and no reason to change a default."""


def readings(runs: Runs) -> str:
    """The section of the page; empty where none was run."""
    lines = [
        line
        for each in READINGS
        for label, printed in each.labels.items()
        if (line := _line(each, label, printed, runs))
    ]
    missing = [
        f"{each.says} ({each.stream})"
        for each in READINGS
        if not any(_found(each, label, runs) for label in each.labels)
    ]
    if not lines:
        return ""
    head = row_of("reading", "stream", "method", "accuracy %", "over the printed form", "over er", "part")
    rest = f"\n\nNot run: {'; '.join(missing)}." if missing else ""
    return "\n".join([TEXT, "", head, "|---|---|---|---:|---:|---:|---|", *lines]) + rest


def _found(reading: Reading, label: str, runs: Runs) -> dict[int, float]:
    dual = label.startswith("pdcl")
    given = {name: value for name, value in reading.options.items() if dual or name not in OF_DUALS}
    return metric(runs.find(reading.stream, label, SIZE, **given), "mean_accuracy")


def _line(reading: Reading, label: str, printed: str, runs: Runs) -> str:
    if not (found := _found(reading, label, runs)):
        return ""
    before = metric(runs.find(reading.stream, printed, SIZE), "mean_accuracy")
    alike = {name: value for name, value in reading.options.items() if name in ("lr", "epochs")}
    er = metric(runs.find(reading.stream, "er", SIZE, **alike), "mean_accuracy")
    over_er = "" if label == "er" else cell(more(found, er))
    return row_of(
        reading.says,
        reading.stream,
        label,
        shown(mean(found), ".1f"),
        cell(more(found, before)),
        over_er,
        f"`{reading.part}`",
    )
