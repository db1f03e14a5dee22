"""What a study is: streams × methods × memory × seeds × options, and what may differ on one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pdcl.lab.studies.spec import RunSpec


@dataclass(frozen=True)
class Variant:
    """A method under a label of its own, with options that make it one."""

    method: str
    options: dict[str, Any]


@dataclass(frozen=True)
class OnStream:
    """What a study changes on one stream. `own` are options of single methods there."""

    methods: tuple[str, ...] | None = None
    memory: tuple[int | str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    preset: str | None = None
    stream_options: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    own: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tuning:
    """Which options to choose on held-out training data, from at most `budget` candidates for every method."""

    candidates: dict[str, list[dict[str, Any]]]
    budget: int
    seeds: tuple[int, ...]
    memory: int | str | None
    share: float


@dataclass(frozen=True)
class WhatIf:
    """What every finished run is asked: its last task at other tolerances of past task `task` (from 1)."""

    task: int
    tolerances: tuple[float, ...]
    repeats: int = 1
    longer: int = 1


@dataclass(frozen=True)
class Study:
    """Streams × methods × memory × seeds × options. `text` is the TOML that it was read from.

    A study with `parts` is these one after another; all else that it says stands in them already.
    """

    name: str
    streams: tuple[str, ...]
    methods: tuple[str, ...]
    memory: tuple[int | str, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    preset: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    method_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    on_stream: dict[str, OnStream] = field(default_factory=dict)
    variants: dict[str, Variant] = field(default_factory=dict)
    tuning: Tuning | None = None
    whatif: WhatIf | None = None
    plugins: tuple[str, ...] = ()
    snapshot: bool = True
    text: str = ""
    parts: dict[str, Study] = field(default_factory=dict)

    def restricted(self, parts: Sequence[str]) -> Study:
        """The study with these parts alone, in the order of the file; all of it where none is named."""
        from pdcl.errors import UsageError
        from pdcl.lab.studies.toml_table import only

        if parts and not self.parts:
            raise UsageError(f"study {self.name} has no parts; leave --part out")
        only(parts, self.parts, "--part")
        return replace(self, parts={name: part for name, part in self.parts.items() if not parts or name in parts})

    def labels(self, stream: str) -> tuple[str, ...]:
        """Methods and variants on a stream. Variants that no list of methods names come after those that are."""
        chosen = self.on_stream.get(stream, OnStream()).methods
        if chosen is not None:
            return chosen
        return self.methods + tuple(label for label in self.variants if label not in self.methods)

    def runs(self) -> list[RunSpec]:
        """Every run, in the order they are carried out: all methods with the first seed, then with the second."""
        from pdcl.lab.studies.expansion import expand

        return expand(self)
