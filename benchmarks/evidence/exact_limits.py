"""Limits of `exact`, fixed beforehand as limits_kept.py has them: references on held-out data, then K strict limits.

Absolute: r_k − 2 points for the strict tasks (at least half of r_k), r_k + 10 for the others; r_k is the error of equal
weights, a mean over calibration seeds. Rises: half of the rise that equal weights had for the strict tasks, that rise
+ 10 points for the others. K = 1: the first task, the one in the middle or the last but one, by seed. Errors are those
of test data after the last task.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import exact_variants
import torch
from exact_book import Job, Row
from exact_streams import DOMAINS, FEATURES, features_of

import pdcl
from pdcl.judging.witnesses import look_at_witnesses
from pdcl.streams.task import Stream

CALIBRATION = (100, 101, 102)
HELD = {"guard": 300, "witness": 200}
LOOSE = "99%"
RIVALS = 3
CURVE = (-0.06, -0.04, -0.02, 0.0, 0.02)
CURVES = ("mnist", "minilm", "tiny, 10 tasks", "mnist, domains", "speech, domains")
References = tuple[list[float], list[float]]


def jobs(seeds: int) -> Iterator[Job]:
    for seed in range(seeds):
        for name in (*FEATURES, *DOMAINS):
            yield equal_job(name, seed)
            for scenario in scenarios(name, seed):
                for variant in variants(name, seed):
                    if scenario[0] != "impossible" or variant == "exact":
                        yield limited_job(name, scenario, variant, seed)
            if name in CURVES and not seed:
                yield from curve_jobs(name, seed)


def variants(name: str, seed: int) -> list[str]:
    """Where tasks have classes of their own, exact is offsets alone; where they share them, weights alone."""
    return ["exact", "exact-frozen", *(["exact-weights"] if name in FEATURES and seed < RIVALS else [])]


def stream_of(name: str, calibration: int | None = None) -> Stream:
    """calibration: a seed; a fifth of the training data then takes the place of the test data."""
    parts = []
    for x, y, test, answers in features_of(name):
        if calibration is not None:
            order = torch.randperm(len(y), generator=torch.Generator().manual_seed(calibration))
            out, rest = order[: len(y) // 5], order[len(y) // 5 :]
            x, y, test, answers = x[rest], y[rest], x[out], y[out]
        parts.append((x, y, test, answers))
    return pdcl.from_tasks(parts, name="features", names=[f"t{k}" for k in range(len(parts))])


def run(stream: Stream, method: str, seed: int, tolerance: Any) -> Any:
    return pdcl.run(
        stream, method, seed=seed, batch=500, features=torch.nn.Identity(), tolerance=tolerance, **HELD
    )  # fmt: skip


def errors(result: Any) -> tuple[list[float], list[float]]:
    """At the end, and right after learning."""
    table = result.accuracy["class_il"]
    return [1 - each for each in table[-1]], [1 - row[k] for k, row in enumerate(table)]


KNOWN: dict[str, References] = {}


def references(name: str) -> References:
    """r_k, and the rise of every task, of equal weights on held-out data."""
    if name not in KNOWN:
        found = [errors(run(stream_of(name, seed), "exact", seed, LOOSE)) for seed in CALIBRATION]
        now = [statistics.mean(each) for each in zip(*(end for end, _ in found), strict=True)]
        then = [statistics.mean(each) for each in zip(*(begin for _, begin in found), strict=True)]
        KNOWN[name] = now, [max(0.0, a - b) for a, b in zip(now, then, strict=True)]
    return KNOWN[name]


def scenarios(name: str, seed: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A name and the strict tasks."""
    tasks = len(features_of(name))
    last = tasks - 1
    places = (0, last // 2, last - 1)
    place = places[seed % 3]
    several = [(3, places)] + ([(5, (0, 2, 4, 6, 8))] if tasks >= 10 else [])
    for kind in ("", "rises "):
        yield f"{kind}K=1 at {place + 1}", (place,)
        for count, strict in several:
            yield f"{kind}K={count}", strict
    yield "impossible", (places[1],)


def limits_of(name: str, scenario: str, strict: tuple[int, ...]) -> list[float]:
    now, rises = references(name)
    if scenario.startswith("rises"):
        return [rise / 2 if k in strict else rise + 0.1 for k, rise in enumerate(rises)]
    if scenario == "impossible":
        return [max(0.001, r - 0.1) if k in strict else r + 0.1 for k, r in enumerate(now)]
    return [max(r / 2, r - 0.02) if k in strict else r + 0.1 for k, r in enumerate(now)]


def as_text(limit: float, rises: bool) -> str:
    return f"+{100 * limit:.3f}pt" if rises else f"{100 * limit:.3f}%"


def equal_job(name: str, seed: int) -> Job:
    def work() -> Row:
        end, then = errors(run(stream_of(name), "exact", seed, LOOSE))
        return {"errors": end, "then": then, "references": references(name)[0], "rises": references(name)[1]}

    return {"stream": name, "scenario": "equal weights", "method": "exact", "seed": seed}, work


def limited_job(name: str, scenario: tuple[str, tuple[int, ...]], variant: str, seed: int) -> Job:
    title, strict = scenario

    def work() -> Row:
        limits, rises = limits_of(name, title, strict), title.startswith("rises")
        return limited(name, limits, rises, strict, variant, seed)

    return {"stream": name, "scenario": title, "method": variant, "seed": seed}, work


def limited(name: str, limits: list[float], rises: bool, strict: tuple[int, ...], variant: str, seed: int) -> Row:
    stream = stream_of(name)
    result = run(stream, variant, seed, {f"t{k}": as_text(limit, rises) for k, limit in enumerate(limits)})
    end, then = errors(result)
    learner = result.learner
    row = {"limits": limits, "strict": list(strict), "errors": end, "then": then, "bytes": learner.nbytes}
    row |= {"duals": learner.duals, "lever": learner.solution.lever}
    if variant == "exact":
        row["said"] = [
            [each.task, each.verdict, each.samples] for each in result.promises or () if each.kind == "task"
        ]  # fmt: skip
        row["counts"] = witness_counts(learner)
        if not rises and seed < RIVALS:
            tests = [(test, answers) for _, _, test, answers in features_of(name)]
            row["by_hand"] = exact_variants.by_hand(learner, list(strict), tests)
    return row


def witness_counts(learner: Any) -> list[list[int]]:
    """Of every task: its witnesses, those that are wrong now, newly wrong ones, newly right ones."""
    found = []
    for seen in look_at_witnesses(learner.held, learner.registry, learner.raw_scores).by_task(len(learner.tolerances)):
        then, now = seen.then["error"] > 0, seen.now["error"] > 0
        found.append([len(now), *(int(each.sum()) for each in (now, now & ~then, then & ~now))])
    return found


def curve_jobs(name: str, seed: int) -> Iterator[Job]:
    """The task in the middle at five limits, the others at r + 10 points."""
    place = (len(features_of(name)) - 1) // 2
    for shift in CURVE:

        def work(shift: float = shift) -> Row:
            now, _ = references(name)
            limits = [max(0.001, r + (shift if k == place else 0.1)) for k, r in enumerate(now)]
            return limited(name, limits, False, (place,), "exact", seed)

        yield {"stream": name, "scenario": f"curve {100 * shift:+.0f}", "method": "exact", "seed": seed}, work
