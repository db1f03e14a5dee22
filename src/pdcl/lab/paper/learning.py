"""Why claims came out as they did, while a task is learned: whether duals come in time, what they leave for it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from pdcl.lab.paper import measures
from pdcl.lab.paper.cells import mean, row_of, section, shown
from pdcl.lab.paper.judging import OURS, STREAMS
from pdcl.lab.paper.runs import SIZE, Runs, measured, metric
from pdcl.lab.reports.dossier import read_story
from pdcl.records import Row
from pdcl.records.reading import read_result

MORE_STEPS = 240
IN_TIME = """### Whether duals come in time

The paper prints η_d, and neither how many dual steps a task has (60 are ours) nor what λ starts with (0 is ours). On
organa a task has 105 to 316 updates and η_d is .01, so duals are about 1 and still rising when a task ends. Until they
have grown a task is learned alone, from a loss of 20 and more, in steps of Adam's full size. After 100 updates of the
last task a sample of it is answered by 0.03 to 0.12 of the 128 units of the last hidden layer (er: 0.4 to 2.8; λ from
1: 0.4 to 1.6; three seeds, `benchmarks/evidence/dying.py`): little but the bias of the head learns from there on.
*Just learned*: accuracy on a task right after it was learned, mean over tasks; *last*: on the last one. *Slack* and
*λ*: means over past tasks at the end of the last task."""
CROWDED = """### What is left for a new task

The Lagrangian is L_t + Σ λ_k L_k, so a new task has 1 of 1 + ‖λ‖₁ parts of it. Where limits can't be met, duals rise as
long as a task lasts, and the more past tasks there are the less is left: on Tiny-ImageNet the nine of them ask for a
loss of .08 that 125 steps don't reach. *Share*: 1 / (1 + ‖λ‖₁) at the end of the last task. *Slack*: mean over past
tasks."""
FORGOTTEN = """### Why xder forgets least

Forgetting is what a task had right after it was learned, minus what it has at the end: who learns little has little to
lose. xder knows a task better at the end than when it was new, so its forgetting is below 0. So read forgetting beside
what a method knew to begin with: where a primal-dual one learns a new task less well than er, part of its advantage is
that."""


def in_time(runs: Runs) -> str:
    """Duals as printed, with four times as many dual steps, and started at 1."""
    lines = []
    for stream in ("organa", "mnist"):
        kinds: list[dict[str, Any]] = [{}, {"dual_steps": MORE_STEPS}, {"start": 1.0}]
        found = [(label, options, runs.find(stream, label, SIZE, **options)) for options in kinds for label in OURS]
        if any(options and rows for _, options, rows in found):
            plain = [_answered(stream, "er", None, rows)] if (rows := runs.find(stream, "er", SIZE)) else []
            lines += [*plain, *(_answered(stream, *each) for each in found if each[2])]
    names = "stream | method | dual steps a task | λ starts at | accuracy % | just learned % | last %"
    return section(IN_TIME, f"{names} | slack on memory | λ | seeds", "ll" + "r" * 8, lines)


def _answered(stream: str, label: str, options: Mapping[str, Any] | None, found: Mapping[int, Row]) -> str:
    """options: what the runs were given beside their preset; None where a method has no duals."""
    levels = [mean(measured(found, each)) for each in (just_learned, last_learned)]
    slack, dual = (
        math.nan if options is None else mean(measured(found, each)) for each in (past_slack, measures.past_dual)
    )
    own = options or {}
    duals = ["–", "–"] if options is None else [str(own.get("dual_steps", 60)), f"{own.get('start', 0):g}"]
    cells = [f"{mean(metric(found, 'mean_accuracy')):.1f}", *(shown(each, ".1f") for each in levels)]
    return row_of(stream, label, *duals, *cells, shown(slack), shown(dual), str(len(found)))


def crowded(runs: Runs) -> str:
    """What is left for a new task beside the duals of the past ones."""
    lines = []
    for stream in (*STREAMS, "tiny_imagenet"):
        known = {label: rows for label in ("er", *OURS) if (rows := runs.find(stream, label, SIZE))}
        for label, found in known.items() if {*OURS} & {*known} else ():
            norm, slack = (
                mean(measured(found, each)) if label in OURS else math.nan for each in (dual_norm, past_slack)
            )
            duals = shown(norm), shown(100 / (1 + norm), ".0f"), shown(slack)
            learned, _, accuracy, seeds = learned_cells(found)
            lines.append(row_of(stream, label, *duals, learned, accuracy, seeds))
    columns = "stream | method | ‖λ‖₁ | share % | slack on memory | just learned % | accuracy % | seeds"
    return section(CROWDED, columns, "ll" + "r" * 6, lines)


def forgetting(runs: Runs) -> str:
    """What a method forgets, beside what it knew to begin with."""
    lines = []
    for stream in STREAMS:
        found = {label: runs.find(stream, label, SIZE) for label in ("er", "xder", *OURS)}
        if found["xder"]:
            lines += [row_of(stream, label, *learned_cells(rows)) for label, rows in found.items() if rows]
    columns = "stream | method | a task just learned % | forgetting % | accuracy % | seeds"
    return section(FORGOTTEN, columns, "llrrrr", lines)


def learned_cells(found: Mapping[int, Row]) -> list[str]:
    """What a task had when it was new, what was forgotten, what is left, and of how many seeds."""
    numbers = measured(found, just_learned), metric(found, "mean_forgetting"), metric(found, "mean_accuracy")
    return [*(shown(mean(each), ".1f") for each in numbers), str(len(found))]


def past_slack(row: Row) -> float | None:
    """The mean slack of past tasks at the last dual step."""
    kept = read_story(row.path, points=100).slacks.kept()
    return _mean(kept[-1][2] if kept else [])


def just_learned(row: Row) -> float | None:
    """Accuracy on a task right after it was learned, mean over tasks, in percent."""
    found = _mean([each[place] for place, each in enumerate(read_result(row.path)["accuracy"]["class_il"])])
    return None if found is None else 100 * found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return statistics.fmean(known) if known else None


def last_learned(row: Row) -> float | None:
    """Accuracy on the last task at the end, in percent."""
    own = read_result(row.path)["accuracy"]["class_il"][-1][-1]
    return None if own is None else 100 * float(own)


def dual_norm(row: Row) -> float | None:
    """‖λ‖₁ of past tasks at the end of the last task."""
    duals = measures.past_duals(row)
    return sum(duals) if duals else None
