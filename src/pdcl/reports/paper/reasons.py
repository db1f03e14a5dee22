"""Why claims came out as they did: what selection does to memory, what Adam's rate does to projections, which data."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from pdcl.records import Row
from pdcl.records.reading import read_result
from pdcl.records.tables import MINUS
from pdcl.reports.dossier import read_story
from pdcl.reports.paper import measures
from pdcl.reports.paper.judging import OURS, ROBUST, STREAMS
from pdcl.reports.paper.prices import prices
from pdcl.reports.paper.runs import SIZE, Runs, measured, metric

# Variants of the part `selection`, with the options that make them.
CHANGED: dict[str, dict[str, Any]] = {
    "pdcl-s-balanced": {"balance": True},
    "pdcl-s-mixed": {"uniform_share": 0.5},
    "pdcl-s-clipped": {"clip": 0.9},
    "pdcl-s-robust": dict(ROBUST),
}
MORE_STEPS = 240
DATA = """`speech` is version 0.01 of Speech Commands; the paper's 35 words are those of version 0.02. Both use ten.
The data at hand is a reduced form of version 0.01: 1,300 training samples of each of ten words, at 8 kHz as in the
paper, in 8-bit mu-law. So accuracies on `speech` can't be held against the paper's to the point; claims are about
differences between methods. `tiny_imagenet` is 40 classes, as many as the paper uses; it doesn't say which."""


def reasons(rows: Sequence[Row]) -> str:
    """The section of the page, as far as the runs of the printed presets tell."""
    runs = Runs(rows)
    parts = [_selection(runs), _noise(runs), _in_time(runs), _forgetting(runs), _projection(runs), prices(runs)]
    parts.append("### The data of speech\n\n" + DATA)
    return "## Reasons\n\n" + "\n\n".join(part for part in parts if part)


def _selection(runs: Runs) -> str:
    """Selection by dual: what it stores, and what slacks and duals answer."""
    lines = []
    for stream in STREAMS:
        for label, options in {"pdcl": {}, "pdcl-s": {}, **CHANGED}.items():
            if found := runs.find(stream, label, SIZE, **options):
                lines.append(_stored(stream, label, found))
    if len(lines) < 2:
        return ""
    text = """### What selection by dual stores

As printed, a sample is stored with probability λ_i / ‖λ‖₁. *Rarer class*: its share of a task's places, mean over tasks
(even is 50 %). *Slack*: mean over past tasks of L − ε on memory, at the end of the last task. *λ*: mean over them.
The changed forms are those of the part `selection`: classes balanced, half of the choice uniform, λ clipped at its 90th
percentile, and (`robust`) all three, which is what pdcl-s does outside of these presets."""
    head = "| stream | method | accuracy % | rarer class % | slack on memory | λ | seeds |"
    return "\n".join([text, "", head, "|---|---|---:|---:|---:|---:|---:|", *lines])


def _stored(stream: str, label: str, found: Mapping[int, Row]) -> str:
    rarer = _mean(measured(found, measures.rarer_class))
    slack, dual = _mean(measured(found, past_slack)), _mean(measured(found, measures.past_dual))
    accuracy = _mean(metric(found, "mean_accuracy"))
    return _row(stream, label, f"{accuracy:.1f}", _shown(rarer, ".1f"), _shown(slack), _shown(dual), str(len(found)))


def _noise(runs: Runs) -> str:
    """One label in ten wrong: what of them is stored, and what that costs."""
    lines = []
    for label, options in {"er": {}, "pdcl": {}, "pdcl-s": {}, "pdcl-s-robust": dict(ROBUST)}.items():
        clean, noisy = runs.find("mnist", label, SIZE, **options), runs.find("mnist", label, SIZE, noise=0.1, **options)
        if noisy:
            before = _mean(metric(clean, "mean_accuracy"))
            wrong = measured(noisy, measures.wrong_stored)
            # Duals of tasks tell no sample from another.
            large = measured(noisy, measures.wrong_among_large) if label.startswith("pdcl-s") else {}
            cells = [label, _shown(before, ".1f"), f"{_mean(metric(noisy, 'mean_accuracy')):.1f}"]
            lines.append(_row(*cells, _shown(_mean(wrong), ".1f"), _shown(_mean(large), "+.1f"), str(len(noisy))))
    if not lines:
        return ""
    text = """### What wrong labels do

mnist with one training label in ten wrong. A wrong label can't be learned without harm, so its loss and its dual stay
high, and selection by dual takes it for a hard sample. *Among the largest duals*: points more wrong labels among the
highest tenth of stored duals than among all that is stored."""
    head = "| method | clean % | noisy % | wrong labels in memory % | among the largest duals | seeds |"
    return "\n".join([text, "", head, "|---|---:|---:|---:|---:|---:|", *lines])


def _in_time(runs: Runs) -> str:
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
organa a task has some 250 updates and η_d is .01, so duals are about 1 and still rising when a task ends. Until they
have grown a task is learned alone, from a loss of 20 and more, in steps of Adam's full size. After 100 updates of the
last task a sample of it is answered by 0.03 to 0.12 of the 128 units of the last hidden layer (er: 0.4 to 2.8; λ from
1: 0.4 to 1.6; three seeds, `benchmarks/evidence/dying.py`): little but the bias of the head learns from there on.
*Just learned*: accuracy on a task right after it was learned, mean over tasks; *last*: on the last one. *Slack* and
*λ*: means over past tasks at the end of the last task."""
    names = "stream", "method", "dual steps a task", "λ starts at", "accuracy %", "just learned %", "last %"
    head = _row(*names, "slack on memory", "λ", "seeds")
    return "\n".join([text, "", head, "|---|---" + "|---:" * 8 + "|", *lines])


def _answered(stream: str, label: str, options: Mapping[str, Any] | None, found: Mapping[int, Row]) -> str:
    """options: what the runs were given beside their preset; None where a method has no duals."""
    accuracy, learned = _mean(metric(found, "mean_accuracy")), _mean(measured(found, just_learned))
    last = _mean(measured(found, last_learned))
    slack, dual = (
        math.nan if options is None else _mean(measured(found, each)) for each in (past_slack, measures.past_dual)
    )
    own = options or {}
    duals = ["–", "–"] if options is None else [str(own.get("dual_steps", 60)), f"{own.get('start', 0):g}"]
    cells = [f"{accuracy:.1f}", _shown(learned, ".1f"), _shown(last, ".1f"), _shown(slack), _shown(dual)]
    return _row(stream, label, *duals, *cells, str(len(found)))


def _forgetting(runs: Runs) -> str:
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
    learned, forgotten = _mean(measured(found, just_learned)), _mean(metric(found, "mean_forgetting"))
    accuracy = _mean(metric(found, "mean_accuracy"))
    return _row(stream, label, _shown(learned, ".1f"), _shown(forgotten, ".1f"), f"{accuracy:.1f}", str(len(found)))


def _projection(runs: Runs) -> str:
    """agem at the printed rate and at a tenth of it."""
    lines = []
    for label in ("er", "agem"):
        for rate, options in (("as printed (.01)", {}), ("a tenth (.001)", {"lr": 0.001})):
            if found := runs.find("mnist", label, SIZE, **options):
                inside = 100 * statistics.fmean(row.task_il for row in found.values())
                learned = _mean(measured(found, just_learned))
                cells = [label, rate, f"{_mean(metric(found, 'mean_accuracy')):.1f}", f"{inside:.1f}"]
                lines.append(_row(*cells, _shown(learned, ".1f"), str(len(found))))
    if not any("agem" in line for line in lines):
        return ""
    text = """### Why agem is at chance

mnist, Adam. *Task-IL* lets a model choose between the two classes of a task only: 50 % is chance. At the printed rate
agem's network has lost even those, so this is no mere bias to new classes: steps of that size undo what was learned.
What a tenth of the rate does is the part `projection`: where agem gains there, its loss is partly the setting's."""
    head = "| method | rate | accuracy % | task-IL % | a task just learned % | seeds |\n|---|---|---:|---:|---:|---:|"
    return "\n".join([text, "", head, *lines])


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


def _mean(values: Mapping[int, float]) -> float:
    return statistics.fmean(values.values()) if values else math.nan


def _shown(value: float, form: str = ".3g") -> str:
    return "–" if math.isnan(value) else f"{value:{form}}".replace("-", MINUS)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
