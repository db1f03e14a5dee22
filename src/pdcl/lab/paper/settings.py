"""The settings in which the paper's three steps are compared: as printed, and those that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pdcl.lab.paper.runs import SIZE, Finding, Runs, above, metric, more

Options = Mapping[str, Any]
FOUR = {"organa": {"epochs": 4, "dual_steps": 240}, "speech": {"epochs": 4, "dual_steps": 120}}
STARTED = {"start": 1.0}
SLOW = {"lr": 0.001}
# Methods without duals are given none of their options.
OF_DUALS = ("dual_steps", "start")


@dataclass(frozen=True)
class Setting:
    """A stream, a size of memory and what is given beside the preset. part: what runs it."""

    name: str
    stream: str
    memory: int = SIZE
    options: Options = field(default_factory=dict)
    part: str = ""

    def of(self, label: str) -> dict[str, Any]:
        """What a method is given."""
        dual = label.startswith("pdcl")
        return {name: value for name, value in self.options.items() if dual or name not in OF_DUALS}

    def scores(self, label: str, name: str, runs: Runs) -> dict[int, float]:
        return metric(runs.find(self.stream, label, self.memory, **self.of(label)), name)

    def difference(self, first: str, second: str, name: str, runs: Runs) -> Finding:
        """Points by which the first is above the second; of forgetting, by which it is below."""
        a, b = (self.scores(label, name, runs) for label in (first, second))
        return more(a, b) if name == "mean_accuracy" else more(b, a, "points less")


PRINTED = tuple(
    Setting(f"{stream}, memory {memory}", stream, memory, part=stream if memory == SIZE else f"{stream}-sizes")
    for stream, sizes in {
        "mnist": (200, 500, 1000, 2000),
        "speech": (200, 500, 1000),
        "organa": (200, 500, 1000),
    }.items()
    for memory in sizes
)
TINY = Setting("tiny_imagenet, memory 500", "tiny_imagenet", part="tiny")
# What the paper doesn't print, at memory 500: where duals start, how many epochs, another rate on mnist.
OPEN = (
    Setting("mnist, λ from 1", "mnist", options=STARTED, part="start"),
    Setting("mnist, Adam .001", "mnist", options=SLOW, part="rate"),
    Setting("organa, λ from 1", "organa", options=STARTED, part="start"),
    Setting("organa, four epochs", "organa", options=FOUR["organa"], part="epochs-organa"),
    Setting("organa, four epochs, λ from 1", "organa", options=FOUR["organa"] | STARTED, part="epochs-organa-start"),
    Setting("speech, four epochs", "speech", options=FOUR["speech"], part="epochs-speech"),
    Setting("speech, four epochs, λ from 1", "speech", options=FOUR["speech"] | STARTED, part="epochs-speech-start"),
)
# The preset `equal`: plain SGD on mnist, gentler rates elsewhere, the Lagrangian normalised.
EQUAL = tuple(
    Setting(f"{stream}, memory {memory}, equal", stream, memory, part=f"{stream}-equal")
    for stream, sizes in {"mnist": (200, 500, 1000, 2000), "speech": (500,), "organa": (500,)}.items()
    for memory in sizes
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
