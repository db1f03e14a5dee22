"""What the paper leaves open: readings, each held against the printed form, and verdicts that hang on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pdcl.lab.figures.sweeps import FEWEST
from pdcl.lab.paper.cells import mean, row_of, section, shown
from pdcl.lab.paper.claim import Claim
from pdcl.lab.paper.judging import OURS
from pdcl.lab.paper.runs import HELD, NOT_HELD, NOT_RUN, Finding, Runs, more
from pdcl.lab.paper.settings import ACCURACY, FOUR, OPEN, SLOW, STARTED, Setting
from pdcl.lab.paper.sizes import cell

DROPPED = {"selection": "dual:drop=0.05"}


@dataclass(frozen=True)
class Reading:
    """What is read otherwise, and the part of the study, the methods and the options that do so."""

    says: str
    part: str
    labels: tuple[str, ...]
    options: Mapping[str, Any]
    stream: str = "mnist"


READINGS = (
    Reading("PB over λ_1 … λ_{t−1}, as Algorithm 1's line 10 prints it: the newest task gets 1/t", "newest",
            ("pdcl",), {"current_cap": 1.0}),
    Reading("duals and Adam's state go on from task to task", "warm", OURS, {"warm": True, "keep_optimizer": True}),
    Reading("κ = 1", "decay", ("pdcl0", "pdcl"), {"decay": 1.0}),
    Reading("T_p = 1", "every-step", ("pdcl0", "pdcl"), {"primal_steps": 1}),
    Reading("λ from 1", "start", OURS, STARTED),
    Reading("Adam at .001", "rate", ("er", "er-ring", *OURS), SLOW),
    Reading("as many samples of each class", "selection", ("pdcl-s-balanced",), {"balance": True}),
    Reading("the largest 5 % of duals dropped as outliers", "dropped", ("pdcl-s-dropped",), DROPPED),
    Reading("dropped, and as many of each class", "dropped", ("pdcl-s-dropped-balanced",),
            {**DROPPED, "balance": True}),
    Reading("λ from 1", "start", OURS, STARTED, "organa"),
    Reading("four epochs", "epochs-organa", ("er", *OURS), FOUR["organa"], "organa"),
    Reading("four epochs, λ from 1", "epochs-organa-start", OURS, FOUR["organa"] | STARTED, "organa"),
    Reading("four epochs instead of two", "epochs-speech", ("er", *OURS), FOUR["speech"], "speech"),
    Reading("four epochs, λ from 1", "epochs-speech-start", OURS, FOUR["speech"] | STARTED, "speech"),
)  # fmt: skip
TEXT = """## Readings that the paper leaves open

Each changes the preset in one place; memory 500. *Over the printed form*: the same method, this reading minus the
preset's. *Over er*: er with the same rate and epochs. Points of accuracy, paired 95 % interval, seeds; **bold** leaves
0 out. These readings are options of the study, and no reason to change a default."""


def readings(runs: Runs) -> str:
    """The section of the page; empty where none was run."""
    lines, missing = [], []
    for each in READINGS:
        found = [line for label in each.labels if (line := _line(each, label, runs))]
        lines += found
        missing += [] if found else [f"{each.says} ({each.stream})"]
    columns = "reading | stream | method | accuracy % | over the printed form | over er | part"
    rest = f"\n\nNot run: {'; '.join(missing)}." if lines and missing else ""
    return section(TEXT, columns, "lllrrrl", lines) + rest


def _line(reading: Reading, label: str, runs: Runs) -> str:
    changed = Setting("", reading.stream, options=reading.options)
    if not (found := changed.scores(label, ACCURACY, runs)):
        return ""
    # A form that has a label of its own is one of pdcl-s.
    printed = label if label in ("er", "er-ring", *OURS) else "pdcl-s"
    before = Setting("", reading.stream).scores(printed, ACCURACY, runs)
    alike = {name: value for name, value in reading.options.items() if name in ("lr", "epochs")}
    er = Setting("", reading.stream, options=alike).scores("er", ACCURACY, runs)
    over = cell(more(found, before)), "" if label == "er" else cell(more(found, er))
    return row_of(reading.says, reading.stream, label, shown(mean(found), ".1f"), *over, f"`{reading.part}`")


HANGING = """## Verdicts that hang on settings that the paper doesn't print

Algorithm 1 says "initialize λ" and not with what: ours start at 0. The paper calls only MNIST online and prints no
number of epochs: ours are one on organa and two on speech. At Adam's printed rate of .01 mnist is near its edge. With
another choice these verdicts would be others, as far as three seeds were run: points, paired 95 % interval, seeds."""


def by_setting(found: Sequence[tuple[Claim, Finding]], runs: Runs) -> str:
    """The section of the page; empty where no verdict changes."""
    lines = [
        row_of(claim.says, cell(first), first.verdict, setting.name, cell(second), second.verdict)
        for claim, first in found
        for setting in OPEN
        if claim.compares
        and claim.compares.stream == setting.stream
        and _other(first, second := setting.difference(*claim.compares.pair, claim.compares.metric, runs))
    ]
    return section(HANGING, "claim | as printed | verdict | setting | there | verdict", "lrllrl", lines)


def _other(first: Finding, second: Finding) -> bool:
    """Whether both were run often enough, one of them decides, and they differ."""
    verdicts = {first.verdict, second.verdict}
    often = min(first.n, second.n) >= FEWEST and NOT_RUN not in verdicts
    return often and bool(verdicts & {HELD, NOT_HELD}) and len(verdicts) > 1
