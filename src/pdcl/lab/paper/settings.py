"""The settings in which the paper's three steps are compared: as printed, and those that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pdcl.lab.paper.runs import SIZE, Finding, Runs, above, metric, more

ACCURACY, FORGETTING = "mean_accuracy", "mean_forgetting"
FOUR = {"organa": {"epochs": 4, "dual_steps": 240}, "speech": {"epochs": 4, "dual_steps": 120}}
STARTED = {"start": 1.0}
SLOW = {"lr": 0.001}
# Methods without duals are given none of their options.
OF_DUALS = ("dual_steps", "start")


@dataclass(frozen=True)
class Setting:
    """A stream, a size of memory and what is given beside the preset."""

    name: str
    stream: str
    memory: int = SIZE
    options: Mapping[str, Any] = field(default_factory=dict)

    def scores(self, label: str, name: str, runs: Runs) -> dict[int, float]:
        """One of a method's numbers in percent, by seed."""
        dual = label.startswith("pdcl")
        given = {option: value for option, value in self.options.items() if dual or option not in OF_DUALS}
        return metric(runs.find(self.stream, label, self.memory, **given), name)

    def difference(self, first: str, second: str, name: str, runs: Runs) -> Finding:
        """Points by which the first is above the second; of forgetting, by which it is below."""
        a, b = (self.scores(label, name, runs) for label in (first, second))
        return more(a, b) if name == ACCURACY else more(b, a, "points less")


SIZES = {"mnist": (200, 500, 1000, 2000), "speech": (200, 500, 1000), "organa": (200, 500, 1000)}
PRINTED = tuple(Setting(f"{stream}, memory {m}", stream, m) for stream, sizes in SIZES.items() for m in sizes)
TINY = Setting("tiny_imagenet, memory 500", "tiny_imagenet")
# What the paper doesn't print, at memory 500: where duals start, how many epochs, another rate on mnist.
OPEN = (
    Setting("mnist, λ from 1", "mnist", options=STARTED),
    Setting("mnist, Adam .001", "mnist", options=SLOW),
    Setting("organa, λ from 1", "organa", options=STARTED),
    Setting("organa, four epochs", "organa", options=FOUR["organa"]),
    Setting("organa, four epochs, λ from 1", "organa", options=FOUR["organa"] | STARTED),
    Setting("speech, four epochs", "speech", options=FOUR["speech"]),
    Setting("speech, four epochs, λ from 1", "speech", options=FOUR["speech"] | STARTED),
)
# The preset `equal`: plain SGD on mnist, gentler rates elsewhere, the Lagrangian normalised.
EQUAL = tuple(
    Setting(f"{each.name}, equal", each.stream, each.memory)
    for each in PRINTED
    if each.stream == "mnist" or each.memory == SIZE
)


def pooled(first: str, second: str, name: str, settings: Sequence[Setting], runs: Runs) -> tuple[Finding, int]:
    """The first minus the second, mean over settings that share most seeds, and their number.

    Seeds vary, settings are given: for each seed the mean over settings, then the interval over seeds.
    """
    found = [
        {seed: a[seed] - b[seed] for seed in a.keys() & b.keys()}
        for each in settings
        if (a := each.scores(first, name, runs)) and (b := each.scores(second, name, runs))
    ]
    most = max(map(len, found), default=0)
    whole = [each for each in found if len(each) == most]
    seeds = set.intersection(*({*each} for each in whole)) if whole else set()
    means = {seed: sum(each[seed] for each in whole) / len(whole) for seed in seeds}
    return above(means, 0, "points"), len(whole)
