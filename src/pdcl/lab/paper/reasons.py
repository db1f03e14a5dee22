"""Why claims came out as they did: what selection does to memory, what Adam's rate does to projections, which data."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from pdcl.lab.paper import measures
from pdcl.lab.paper.cells import mean, row_of, section, shown
from pdcl.lab.paper.judging import NOISE, REPORTED, ROBUST, STREAMS
from pdcl.lab.paper.learning import crowded, forgetting, in_time, just_learned, learned_cells, past_slack
from pdcl.lab.paper.prices import prices
from pdcl.lab.paper.runs import SIZE, Runs, measured, metric
from pdcl.lab.paper.settings import SLOW
from pdcl.records import Row

# Variants of the part `selection`, with the options that make them.
CHANGED: dict[str, dict[str, Any]] = {
    "pdcl-s-balanced": {"balance": True},
    "pdcl-s-mixed": {"uniform_share": 0.5},
    "pdcl-s-clipped": {"clip": 0.9},
    "pdcl-s-robust": dict(ROBUST),
}
SELECTED = """### What selection by dual stores

As printed, a sample is stored with probability λ_i / ‖λ‖₁. *Rarer class*: its share of a task's places, mean over tasks
(even is 50 %). *Slack*: mean over past tasks of L − ε on memory, at the end of the last task. *λ*: mean over them.
The changed forms are those of the part `selection`: classes balanced, half of the choice uniform, λ clipped at its 90th
percentile, and (`robust`) all three, which is what pdcl-s does outside of these presets."""
MISLABELLED = """### What wrong labels do

mnist with one training label in ten wrong. A wrong label can't be learned without harm, so its loss and its dual stay
high, and selection by dual takes it for a hard sample. *Among the largest duals*: points more wrong labels among the
highest tenth of each task's duals than among all that is stored."""
TUNED = """### Baselines with settings tuned for SGD

The paper took reported settings for the baselines, and trained all models with Adam. The presets give all methods the
paper's rate. On mnist the authors of er, agem and gss report plain SGD at .1 and, for agem, more replay; nothing is
reported for er-ring, which has er's, and xder's were chosen by us on held-out data. Where a baseline gains by them, the
first table flatters the primal-dual methods."""
PROJECTED = """### Why agem is at chance

mnist, Adam. *Task-IL* lets a model choose between the two classes of a task only: 50 % is chance. At the rate of .01
agem's network has lost even those, so this is no mere bias to new classes: steps of that size undo what was learned.
What a tenth of the rate does is the part `projection`: where agem gains there, its loss is partly the setting's."""
DATA = """### The data of speech

`speech` is version 0.01 of Speech Commands; the paper's 35 words are those of version 0.02. Both use ten.
The data at hand is a reduced form of version 0.01: 1,300 training samples of each of ten words, at 8 kHz as in the
paper, in 8-bit mu-law. So accuracies on `speech` can't be held against the paper's to the point; claims are about
differences between methods. `tiny_imagenet` is 40 classes, as many as the paper uses; it doesn't say which."""


def reasons(rows: Sequence[Row]) -> str:
    """The section of the page, as far as the runs of the printed presets tell."""
    runs = Runs(rows)
    told = (_selection, _noise, in_time, crowded, forgetting, _reported, _projection, prices)
    return "\n\n".join(["## Reasons", *(part for tell in told if (part := tell(runs))), DATA])


def _selection(runs: Runs) -> str:
    """Selection by dual: what it stores, and what slacks and duals answer."""
    lines = []
    for stream in STREAMS:
        for label, options in {"pdcl": {}, "pdcl-s": {}, **CHANGED}.items():
            if found := runs.find(stream, label, SIZE, **options):
                rarer = shown(mean(measured(found, measures.rarer_class)), ".1f")
                settled = [shown(mean(measured(found, each))) for each in (past_slack, measures.past_dual)]
                accuracy = f"{mean(metric(found, 'mean_accuracy')):.1f}"
                lines.append(row_of(stream, label, accuracy, rarer, *settled, str(len(found))))
    columns = "stream | method | accuracy % | rarer class % | slack on memory | λ | seeds"
    return section(SELECTED, columns, "ll" + "r" * 5, lines if len(lines) > 1 else [])


def _noise(runs: Runs) -> str:
    """One label in ten wrong: what of them is stored, and what that costs."""
    lines = []
    for label, options in {"er": {}, "pdcl": {}, "pdcl-s": {}, "pdcl-s-robust": dict(ROBUST)}.items():
        clean, noisy = (runs.find("mnist", label, SIZE, **options, **noise) for noise in ({}, NOISE))
        if noisy:
            wrong = measured(noisy, measures.wrong_stored)
            # Duals of tasks tell no sample from another.
            large = measured(noisy, measures.wrong_among_large_of_tasks) if label.startswith("pdcl-s") else {}
            accuracy = [shown(mean(metric(each, "mean_accuracy")), ".1f") for each in (clean, noisy)]
            lines.append(
                row_of(label, *accuracy, shown(mean(wrong), ".1f"), shown(mean(large), "+.1f"), str(len(noisy)))
            )
    columns = "method | clean % | noisy % | wrong labels in memory % | among the largest duals | seeds"
    return section(MISLABELLED, columns, "lrrrrr", lines)


def _reported(runs: Runs) -> str:
    """Baselines in the preset, and with settings for plain SGD."""
    lines = []
    for label, options in REPORTED.items():
        if changed := runs.find("mnist", f"{label}-reported", SIZE, **options):
            for name, found in (("preset", runs.find("mnist", label, SIZE)), ("for SGD", changed)):
                if found:
                    learned, forgotten, accuracy, seeds = learned_cells(found)
                    lines.append(row_of(label, name, accuracy, learned, forgotten, seeds))
    columns = "method | settings | accuracy % | a task just learned % | forgetting % | seeds"
    return section(TUNED, columns, "llrrrr", lines)


def _projection(runs: Runs) -> str:
    """agem at the printed rate and at a tenth of it."""
    lines = []
    for label in ("er", "agem"):
        for rate, options in {".01, as in the preset": {}, "a tenth (.001)": SLOW}.items():
            if found := runs.find("mnist", label, SIZE, **options):
                inside = 100 * statistics.fmean(row.task_il for row in found.values())
                levels = mean(metric(found, "mean_accuracy")), inside, mean(measured(found, just_learned))
                lines.append(row_of(label, rate, *(shown(each, ".1f") for each in levels), str(len(found))))
    columns = "method | rate | accuracy % | task-IL % | a task just learned % | seeds"
    return section(PROJECTED, columns, "llrrrr", lines if any("agem" in line for line in lines) else [])
