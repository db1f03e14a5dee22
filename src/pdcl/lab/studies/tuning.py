"""Options chosen on held-out training data: the same number of candidates for every method, no look at test data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pdcl.lab.studies.expansion import known_options, method_of, spec_of
from pdcl.lab.studies.spec import RunSpec
from pdcl.lab.studies.study import Study, Tuning
from pdcl.records.reading import parsed
from pdcl.records.table import TUNING
from pdcl.records.writing import dumps
from pdcl.storage.disk import own_directory, reported, write_whole

CHOSEN = "chosen.json"
Place = tuple[str, str]


@dataclass(frozen=True)
class Candidate:
    """Options to try, and the runs that try them."""

    options: dict[str, Any]
    runs: tuple[RunSpec, ...]

    def accuracy(self, reached: Mapping[RunSpec, float]) -> float:
        """Mean over its runs; NaN if one of them failed."""
        return sum(reached.get(run, math.nan) for run in self.runs) / len(self.runs) if self.runs else math.nan


@dataclass
class Search:
    """All candidates of a study's methods on one stream."""

    stream: str
    candidates: dict[str, list[Candidate]] = field(default_factory=dict)

    @property
    def runs(self) -> list[RunSpec]:
        """Of all candidates of all methods."""
        return [run for found in self.candidates.values() for candidate in found for run in candidate.runs]

    def choose(self, reached: Mapping[RunSpec, float]) -> dict[Place, dict[str, Any]]:
        """The options of each method's best candidate, the first among equals; none where all failed."""
        chosen = {}
        for label, found in self.candidates.items():
            scores = [candidate.accuracy(reached) for candidate in found]
            best = max(range(len(found)), key=lambda i: -math.inf if math.isnan(scores[i]) else scores[i])
            if len(found) == 1 or not math.isnan(scores[best]):
                chosen[self.stream, label] = found[best].options
        return chosen


def search(study: Study, stream: str, labels: Iterable[str]) -> Search:
    """The search of those of `labels` that have candidates. One that has a single candidate needs no run."""
    tuning = study.tuning
    assert tuning is not None
    tried = {label: _tried(study, tuning, stream, label) for label in labels if label in tuning.candidates}
    return Search(stream, tried)


def _tried(study: Study, tuning: Tuning, stream: str, label: str) -> list[Candidate]:
    given = tuning.candidates[label]
    memory = tuning.memory if "memory" in known_options(method_of(study, label)) else None
    seeds = tuning.seeds if len(given) > 1 else ()
    return [
        Candidate(options, tuple(
            replace(spec_of(study, stream, label, seed, memory, options), held_out=tuning.share) for seed in seeds
        ))
        for options in given
    ]  # fmt: skip


def note(out: Path, found: Search, reached: Mapping[RunSpec, float]) -> None:
    """Write what was tried, what it reached and what was chosen; what other streams chose stays."""
    place = out / TUNING / CHOSEN
    with reported(place):
        own_directory(place.parent)
    content = parsed(place.read_bytes(), place) if place.exists() else {}
    chosen = found.choose(reached)
    for label, candidates in found.candidates.items():
        tried = [{"options": each.options, "accuracy": each.accuracy(reached)} for each in candidates]
        entry = {"chosen": chosen.get((found.stream, label)), "candidates": tried}
        content.setdefault(found.stream, {})[label] = json.loads(dumps(entry))
    write_whole(place, dumps(content, indent=1).encode() + b"\n")
