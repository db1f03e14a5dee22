"""Accuracy of `exact` without limits: at whatever bytes it likes and at the bytes of replay's memory, beside replay
methods, and beside slda and ncm on the same features."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from typing import Any

from exact_book import HERE, Job, Row
from exact_streams import SETTINGS, loaded

import pdcl
from pdcl.methods.catalog import method

REPLAY = ("er", "er-ace", "derpp", "icarl", "even")
RECORDS = HERE.parent.parent / "docs/results/data/limits.jsonl"
# Slow: d = 3,200, or a network on images.
SLOW = ("speech", "tiny", "organa")


def jobs(seeds: int) -> Iterator[Job]:
    """exact, slda and ncm first, then replay with few seeds: as many as time allows, the first seed of all first."""
    for seed in range(seeds):
        for name, setting in SETTINGS.items():
            for memory in (setting.memories[1], None, setting.memories[0], setting.memories[2]):
                if memory is None and name in SLOW and seed > 1:
                    continue
                yield exact_job(name, memory, seed)
    for seed in range(min(seeds, 2)):
        yield from replay_jobs(seed)


def replay_jobs(seed: int) -> Iterator[Job]:
    for name, setting in SETTINGS.items():
        recorded = {row["method"] for row in records(name)}
        sizes = (1,) if name in SLOW and seed else (1, 2, 0)
        for memory in (setting.memories[each] for each in sizes):
            for rival in REPLAY:
                if memory == setting.memories[1] and rival in recorded:
                    continue
                if name == "tiny" and memory != setting.memories[1]:
                    continue
                yield replay_job(name, rival, memory, seed)
        if not seed:
            yield replay_job(name, "joint", None, seed)
        if name in ("banking77", "minilm"):
            yield replay_job(name, "even", 4 * setting.memories[1], seed)


def records(name: str) -> list[Row]:
    """Runs of limits_kept.py on the same stream with the same memory."""
    rows = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    return [row for row in rows if row["stream"] == name and row["kind"] == "free"]


def exact_job(name: str, memory: int | None, seed: int) -> Job:
    def work() -> Row:
        stream, bound = loaded(name), {} if memory is None else {"memory": f"{memory * SETTINGS[name].sample}B"}
        result = pdcl.run(stream, "exact", seed=seed, batch=500, **bound)
        learner, found = result.learner, score(result)
        row = {"exact": found, "bytes": learner.nbytes, "features": learner.phi.name, "d": learner.width - 1}
        row |= {"head": learner.solution.head, "rho": learner.solution.rho}
        for rival in ("slda", "ncm"):
            row[rival] = score(pdcl.run(stream, rival, seed=seed, batch=500, network=learner.model))
        return row

    return {"stream": name, "method": "exact", "memory": memory, "seed": seed}, work


def replay_job(name: str, rival: str, memory: int | None, seed: int) -> Job:
    def work() -> Row:
        setting = SETTINGS[name]
        held = {"memory": memory} if method(rival).uses_memory else {}
        result = pdcl.run(loaded(name), rival, preset="auto", seed=seed, **held, **setting.own)
        return {rival: score(result), "bytes": (memory or 0) * setting.sample}

    return {"stream": name, "method": rival, "memory": memory, "seed": seed}, work


def score(result: Any) -> float:
    return statistics.mean(result.accuracy["class_il"][-1])
