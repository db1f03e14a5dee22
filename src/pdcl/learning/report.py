"""Duals, tolerances and dual steps of a method, as values, for loop, lineage, prices, gate and reports."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Trace:
    """The newest task's dual steps: λ_k and s_k of every past task at each, and what they were measured against."""

    duals: list[list[float]] = field(default_factory=list)
    slacks: list[list[float]] = field(default_factory=list)
    tolerances: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    units: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """Empty for a method without tolerances.

    duals: λ_k of every past task at the end of the newest, then its artificial one. tolerances, units: of every task so
    far. no_price: why duals are weights and no prices, where they aren't. decay: κ.
    segments: λ of each segment with a limit, at the end of the newest task. solved: duals come from a
    solver, and have settled.
    """

    has_tolerances: bool = False
    duals: list[float] = field(default_factory=list)
    tolerances: list[float] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    trace: Trace = field(default_factory=Trace)
    no_price: str | None = None
    decay: float = 0.0
    segments: dict[str, float] = field(default_factory=dict)
    solved: bool = False
