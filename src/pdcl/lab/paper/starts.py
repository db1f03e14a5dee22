"""Which verdicts hang on where duals start: a value that the paper doesn't print."""

from __future__ import annotations

from collections.abc import Sequence

from pdcl.lab.paper.cells import row_of
from pdcl.lab.paper.claim import Claim
from pdcl.lab.paper.runs import HELD, NOT_HELD, NOT_RUN, Finding, Runs
from pdcl.lab.paper.sizes import cell

TEXT = """## Verdicts that hang on where duals start

Algorithm 1 says "initialize λ" and not with what. Above, duals start at 0. With duals that start at 1 these verdicts
would be others (`pdcl study paper --part start`): points, paired 95 % interval, seeds."""


def by_start(found: Sequence[tuple[Claim, Finding]], runs: Runs) -> str:
    """The section of the page; empty where no verdict changes."""
    lines = [
        row_of(claim.says, cell(first), first.verdict, cell(second), second.verdict)
        for claim, first in found
        if claim.started and _other(first, second := claim.started(runs))
    ]
    head = row_of("claim", "from 0", "verdict", "from 1", "verdict")
    return "\n".join([TEXT, "", head, "|---|---:|---|---:|---|", *lines]) if lines else ""


def _other(first: Finding, second: Finding) -> bool:
    """Whether both were run, one of them decides, and they differ."""
    verdicts = {first.verdict, second.verdict}
    return NOT_RUN not in verdicts and bool(verdicts & {HELD, NOT_HELD}) and len(verdicts) > 1
