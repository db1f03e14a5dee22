"""One run of a study: plain values, so that it can be sent to any engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RunSpec:
    """What is to be run. `options` stand above presets; `held_out` is the share of training data to score on."""

    stream: str
    method: str
    label: str
    seed: int
    memory: int | str | None = None
    preset: str | None = None
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    stream_options: dict[str, Any] = field(default_factory=dict, hash=False)
    held_out: float | None = None

    @property
    def given(self) -> dict[str, Any]:
        """All that the study says about the method's options, memory and seed among them."""
        memory = {} if self.memory is None else {"memory": self.memory}
        return {**self.options, **memory, "seed": self.seed}

    @property
    def title(self) -> str:
        """As shown to people: `mnist pdcl m500 s0 lr=0.1`."""
        memory = [] if self.memory is None else [f"m{self.memory}"]
        options = [f"{name}={value}" for name, value in self.options.items()]
        return " ".join([self.stream, self.label, *memory, f"s{self.seed}", *options])
