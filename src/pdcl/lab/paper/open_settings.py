"""Which verdicts hang on settings that the paper doesn't print: where duals start, epochs, the rate on mnist."""

from __future__ import annotations

from collections.abc import Sequence

from pdcl.lab.figures.sweeps import FEWEST
from pdcl.lab.paper.cells import row_of, section
from pdcl.lab.paper.claim import Claim
from pdcl.lab.paper.runs import HELD, NOT_HELD, NOT_RUN, Finding, Runs
from pdcl.lab.paper.settings import OPEN
from pdcl.lab.paper.sizes import cell

TEXT = """## Verdicts that hang on settings that the paper doesn't print

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
    return section(TEXT, "claim | as printed | verdict | setting | there | verdict", "lrllrl", lines)


def _other(first: Finding, second: Finding) -> bool:
    """Whether both were run often enough, one of them decides, and they differ."""
    verdicts = {first.verdict, second.verdict}
    often = min(first.n, second.n) >= FEWEST and NOT_RUN not in verdicts
    return often and bool(verdicts & {HELD, NOT_HELD}) and len(verdicts) > 1
