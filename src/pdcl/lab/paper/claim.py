"""A claim of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pdcl.lab.paper.runs import Finding, Runs


@dataclass(frozen=True)
class Claim:
    """What the paper says and where, the parts of `pdcl study paper` that test it, and how runs decide.

    started: how runs whose duals start at 1 decide; the paper doesn't print where they start, and ours start at 0.
    """

    says: str
    source: str
    part: str
    figure: str
    judge: Callable[[Runs], Finding]
    also: tuple[str, ...] = ()
    started: Callable[[Runs], Finding] | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.part, *self.also)
