"""Why claims came out as they did, while a task is learned: whether duals come in time, what they leave for it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

from pdcl.lab.paper import measures
from pdcl.lab.paper.cells import mean, row_of, shown
from pdcl.lab.paper.judging import OURS, STREAMS
from pdcl.lab.paper.runs import SIZE, Runs, measured, metric
from pdcl.records import Row
from pdcl.records.reading import read_result
from pdcl.reports.dossier import read_story

MORE_STEPS = 240


def in_time(runs: Runs) -> str:
    """Duals as printed, with four times as many dual steps, and started at 1."""
    lines = []
    for stream in ("organa", "mnist"):
        kinds: list[dict[str, Any]] = [{}, {"dual_steps": MORE_STEPS}, {"start": 1.0}]
        found = [(label, options, runs.find(stream, label, SIZE, **options)) for options in kinds for label in OURS]
        if any(options and rows for _, options, rows in found):
            plain = [_answered(stream, "er", None, rows)] if (rows := runs.find(stream, "er", SIZE)) else []
            lines += [*plain, *(_answered(stream, *each) for each in found if each[2])]
    if not lines:
        return ""
    text = """### Whether duals come in time

The paper prints η_d, and neither how many dual steps a task has (60 are ours) nor what λ starts with (0 is ours). On
organa a task has 105 to 316 updates and η_d is .01, so duals are about 1 and still rising when a task ends. Until they
have grown a task is learned alone, from a loss of 20 and more, in steps of Adam's full size. After 100 updates of the
last task a sample of it is answered by 0.03 to 0.12 of the 128 units of the last hidden layer (er: 0.4 to 2.8; λ from
1: 0.4 to 1.6; three seeds, `benchmarks/evidence/dying.py`): little but the bias of the head learns from there on.
*Just learned*: accuracy on a task right after it was learned, mean over tasks; *last*: on the last one. *Slack* and
*λ*: means over past tasks at the end of the last task."""
    names = "stream", "method", "dual steps a task", "λ starts at", "accuracy %", "just learned %", "last %"
    head = row_of(*names, "slack on memory", "λ", "seeds")
    return "\n".join([text, "", head, "|---|---" + "|---:" * 8 + "|", *lines])


def _answered(stream: str, label: str, options: Mapping[str, Any] | None, found: Mapping[int, Row]) -> str:
    """options: what the runs were given beside their preset; None where a method has no duals."""
    accuracy, learned = mean(metric(found, "mean_accuracy")), mean(measured(found, just_learned))
    last = mean(measured(found, last_learned))
    slack, dual = (
        math.nan if options is None else mean(measured(found, each)) for each in (past_slack, measures.past_dual)
    )
    own = options or {}
    duals = ["–", "–"] if options is None else [str(own.get("dual_steps", 60)), f"{own.get('start', 0):g}"]
    cells = [f"{accuracy:.1f}", shown(learned, ".1f"), shown(last, ".1f"), shown(slack), shown(dual)]
    return row_of(stream, label, *duals, *cells, str(len(found)))


def crowded(runs: Runs) -> str:
    """What is left for a new task beside the duals of the past ones."""
    lines = []
    for stream in (*STREAMS, "tiny_imagenet"):
        found = {label: runs.find(stream, label, SIZE) for label in ("er", *OURS)}
        if any(found[label] for label in OURS):
            lines += [_beside_duals(stream, label, rows) for label, rows in found.items() if rows]
    if not lines:
        return ""
    text = """### What is left for a new task

The Lagrangian is L_t + Σ λ_k L_k, so a new task has 1 of 1 + ‖λ‖₁ parts of it. Where limits can't be met, duals rise as
long as a task lasts, and the more past tasks there are the less is left: on Tiny-ImageNet the nine of them ask for a
loss of .08 that 125 steps don't reach. *Share*: 1 / (1 + ‖λ‖₁) at the end of the last task. *Slack*: mean over past
tasks."""
    head = row_of("stream", "method", "‖λ‖₁", "share %", "slack on memory", "just learned %", "accuracy %", "seeds")
    return "\n".join([text, "", head, "|---|---" + "|---:" * 6 + "|", *lines])


def _beside_duals(stream: str, label: str, found: Mapping[int, Row]) -> str:
    norm = mean(measured(found, dual_norm)) if label in OURS else math.nan
    slack = mean(measured(found, past_slack)) if label in OURS else math.nan
    learned, accuracy = mean(measured(found, just_learned)), mean(metric(found, "mean_accuracy"))
    cells = [shown(norm), shown(100 / (1 + norm), ".0f"), shown(slack), shown(learned, ".1f"), f"{accuracy:.1f}"]
    return row_of(stream, label, *cells, str(len(found)))


def forgetting(runs: Runs) -> str:
    """What a method forgets, beside what it knew to begin with."""
    lines = []
    for stream in STREAMS:
        found = {label: runs.find(stream, label, SIZE) for label in ("er", "xder", *OURS)}
        if found["xder"]:
            lines += [_forgotten(stream, label, rows) for label, rows in found.items() if rows]
    if not lines:
        return ""
    text = """### Why xder forgets least

Forgetting is what a task had right after it was learned, minus what it has at the end: who learns little has little to
lose. xder knows a task better at the end than when it was new, so its forgetting is below 0. So read forgetting beside
what a method knew to begin with: where a primal-dual one learns a new task less well than er, part of its advantage is
that."""
    head = "| stream | method | a task just learned % | forgetting % | accuracy % | seeds |"
    return "\n".join([text, "", head, "|---|---|---:|---:|---:|---:|", *lines])


def _forgotten(stream: str, label: str, found: Mapping[int, Row]) -> str:
    learned, forgotten = mean(measured(found, just_learned)), mean(metric(found, "mean_forgetting"))
    accuracy = mean(metric(found, "mean_accuracy"))
    return row_of(stream, label, shown(learned, ".1f"), shown(forgotten, ".1f"), f"{accuracy:.1f}", str(len(found)))


def past_slack(row: Row) -> float | None:
    """The mean slack of past tasks at the last dual step."""
    kept = read_story(row.path, points=100).slacks.kept()
    known = [each for each in kept[-1][2] if each is not None] if kept else []
    return statistics.fmean(known) if known else None


def just_learned(row: Row) -> float | None:
    """Accuracy on a task right after it was learned, mean over tasks, in percent."""
    own = [each[place] for place, each in enumerate(read_result(row.path)["accuracy"]["class_il"])]
    known = [each for each in own if each is not None]
    return 100 * statistics.fmean(known) if known else None


def last_learned(row: Row) -> float | None:
    """Accuracy on the last task at the end, in percent."""
    own = read_result(row.path)["accuracy"]["class_il"][-1][-1]
    return None if own is None else 100 * float(own)


def dual_norm(row: Row) -> float | None:
    """‖λ‖₁ of past tasks at the end of the last task."""
    duals = [each for each in (read_result(row.path)["duals"] or [[]])[-1][:-1] if each is not None]
    return sum(duals) if duals else None
