"""A claim of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pdcl.lab.paper.runs import Finding, Runs


@dataclass(frozen=True)
class Comparison:
    """The first method of a pair is better than the second, in this metric."""

    pair: tuple[str, str]
    stream: str
    metric: str


@dataclass(frozen=True)
class Claim:
    """What the paper says and where, the parts of `pdcl study paper` that test it, and how runs decide.

    compares: which two methods, on which stream, where that is the claim: other settings can be asked about it too.
    """

    says: str
    source: str
    part: str
    figure: str
    judge: Callable[[Runs], Finding]
    also: tuple[str, ...] = ()
    compares: Comparison | None = None

    @property
    def counts(self) -> bool:
        """Whether it is the paper's, and could fail: agem is at chance, so that anything is above it."""
        return self.source != "ours" and "agem" not in self.says

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.part, *self.also)


def on(streams: Mapping[str, str], says: str, source: str, figure: str, judge: Any, *given: Any) -> list[Claim]:
    """One claim a stream. streams: with the part that runs each; `{}` in a text is the stream's name."""
    return [
        Claim(says.format(stream), source, part, figure.format(stream), partial(judge, *given, stream))
        for stream, part in streams.items()
    ]
