"""What each figure of the page shows: in plain words, with the figure of the paper that it answers to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdcl.lab.comparing import group
from pdcl.lab.figures.drawn import Shown
from pdcl.lab.figures.grids import STREAMS
from pdcl.lab.figures.style import ordered
from pdcl.records import Row

BARS = "Bars: 95 % intervals over seeds."
ABOUT = """Where a point is a mean over seeds, its bar is Student's 95 % interval; with fewer than three seeds there is
no bar, and small dashes are the single runs. An arrow at the edge of a panel says that a bar goes on beyond it. Methods
far behind all others are named in a corner instead of drawn."""


@dataclass(frozen=True)
class Kind:
    """title: what is drawn; source: where the paper has it; detail: how to read it."""

    title: str
    source: str
    detail: str


# In the order of the page.
KINDS = {
    "steps": Kind("Points gained by each step, ER → PDCL₀ → PDCL → PDCL-S", "Sec. 5",
        "It stands on the first page, with how to read it."),
    "sweeps": Kind("Accuracy and forgetting against memory", "Fig. 6",
        f"Top: mean accuracy over all tasks after the last one; bottom: mean forgetting. {BARS}"),
    "partitioning": Kind("Accuracy of methods that store samples at random", "Fig. 3",
        f"er and er-ring weigh past tasks evenly, pdcl0 by duals; pdcl divides memory by duals too. {BARS}"),
    "partition": Kind("How memory is divided", "Fig. 4 left",
        "Samples of each task in memory after every task, stacked. One run."),
    "distance": Kind("How far the division of memory is from equal shares", "Fig. 4 left",
        f"Half the sum of differences between shares of memory and equal ones; means over seeds. {BARS} "
        "Methods that stay at 0 are named in a note."),
    "tolerance": Kind("Accuracy and forgetting against the tolerance ε", "Fig. 4 centre",
        f"Seeds that every ε has. {BARS}"),
    "duals-tolerance": Kind("λ over time for a tight ε, the preset's own and a loose one", "Fig. 4 right",
        "A line for each past task (the paper shows the first alone); λ starts anew with every task. One run a panel."),
    "duals": Kind("λ over time", "none; Fig. 4 right is nearest",
        "A line for each past task; grey lines: a new task begins. One run."),
    "alpha": Kind("Accuracy and forgetting against α", "Fig. 2 right", f"α = 0: equal shares of memory. {BARS}"),
    "prices": Kind("What another tolerance of the first task changes", "Fig. 2 left, Theorem 1",
        "P(ε + γ) − P(ε): change of the last task's loss when it is solved again with ε + γ. Theorem 1 says that "
        "points lie above −λγ, up to a small ω|γ|. *As printed*, but for 240 dual steps a task; *settled*: plain SGD "
        f"at .1 and ε = .1 too. Points: means over seeds. {BARS} Of fewer than three runs, bars are two standard "
        "errors over solutions of one problem. Grey band: −λγ from the least to the largest λ of the seeds."),
    "capacity": Kind("What prices of narrow and wide networks, from a small and a large memory, are worth",
        "none; Sec. 3.1 says it",
        "As the panel *settled* above, for two layers of so many units and so large a memory; each panel has its own "
        "axes. Above −λγ by: how far points lie above the line, by unit of γ, mean of points and seeds (−: below it)."),
    "variants": Kind("Changed forms of the methods beside the printed ones", "none",
        "BP: memory divided by the appendix's problem. λ from 1: duals start at 1 instead of 0. m_k: the "
        "loss that a task ended with. Authors' settings: those of the baselines' own papers. Adam at .001: a tenth of "
        f"the preset's rate. Points: means. {BARS}"),
    "map": Kind("Where large duals lie", "Fig. 5",
        "t-SNE of the network's features of up to 250 stored samples; the larger a marker, the larger the dual of "
        "its sample beside the largest of its task. At a border: one of the ten nearest stored samples of its task has "
        "another class. One run."),
    "accuracy-memory": Kind("Accuracy against memory", "Fig. 6 top", BARS),
    "forgetting-memory": Kind("Forgetting against memory", "Fig. 6 bottom", BARS),
    "zeta": Kind("ζ(n) = √(ln n / n)", "Fig. 7, appendix",
        "What n samples leave uncertain, drawn as in the paper, times 100 and for n up to 20: it falls from n = e on "
        "and is convex where shaded, from 4.7 on. BP has n ≥ 5."),
}  # fmt: skip


def caption(name: str, shown: Shown) -> str:
    """`**name.** Title (paper: Fig. 3). Which runs. How to read it.`"""
    kind, runs = KINDS[shown.kind], facts(shown.rows)
    title = f"**{name}.** {_title(shown)} (paper: {kind.source})."
    return " ".join([title, *([f"{runs}."] if runs else []), kind.detail])


def alternative(shown: Shown) -> str:
    """What stands for the picture where it isn't seen."""
    title, runs = _title(shown), facts(shown.rows).replace("`", "")
    return f"{title}: {runs}" if runs else title


def _title(shown: Shown) -> str:
    """What is drawn: one size of memory is nothing to draw against."""
    one, title = len({row.memory for row in shown.rows}) == 1, KINDS[shown.kind].title
    return title.replace("against memory", "at one size of memory") if one and "-memory" in shown.kind else title


def facts(rows: Sequence[Row]) -> str:
    """Stream, preset, methods, memory and seeds of some runs."""
    if not rows:
        return ""
    streams = ordered({row.stream for row in rows}, STREAMS)
    presets = sorted({f"`{row.preset}`" for row in rows})
    memory = sorted({row.memory for row in rows if isinstance(row.memory, int)})
    parts = [", ".join(streams), f"preset {', '.join(presets)}", ", ".join(ordered({row.label for row in rows}))]
    return "; ".join([*parts, *([f"memory {', '.join(map(str, memory))}"] if memory else []), _seeds(rows)])


def _seeds(rows: Sequence[Row]) -> str:
    """`seed 0` of a single run, `5 seeds`, or `3 to 5 seeds` where groups differ."""
    if len(seeds := {row.seed for row in rows}) == 1:
        return f"seed {seeds.pop()}"
    counts = sorted({len(member.rows) for member in group(rows)})
    return f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
