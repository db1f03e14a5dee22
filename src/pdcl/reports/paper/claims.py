"""The paper's claims, each with the runs that decide it.

A claim holds where its 95 % interval over shared seeds lies on the claimed side of 0 (or within the stated margin),
fails where it lies on the other side, and is undecided in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pdcl.reports.paper import judging
from pdcl.reports.paper.judging import ROBUST, STREAMS
from pdcl.reports.paper.prices import MORE_STEPS, SETTLED
from pdcl.reports.paper.runs import SIZE, Finding, Runs

SWEPT = (("organa", "epsilon"), ("mnist", "epsilon-mnist"))


@dataclass(frozen=True)
class Claim:
    """What the paper says and where, the part of `pdcl study paper` that tests it, and how runs decide."""

    says: str
    source: str
    part: str
    figure: str
    judge: Callable[[Runs], Finding]


def _better(first: str, second: str, why: str, source: str, figure: str, name: str = "mean_accuracy") -> list[Claim]:
    """`first` beats `second` at memory 500, on every stream that has both."""
    what = "accuracy" if name == "mean_accuracy" else "less forgetting"
    tiny = {} if "er-ring" in (first, second) else {"tiny_imagenet": "tiny"}
    return [
        Claim(
            f"{why}: {first} over {second}, {what}, {stream}",
            source,
            part,
            figure,
            partial(judging.beats, first, second, stream, SIZE, name),
        )
        for stream, part in (dict(zip(STREAMS, STREAMS, strict=True)) | tiny).items()
    ]


CLAIMS: tuple[Claim, ...] = (
    *_better("pdcl0", "er", "Dual weights improve on fixed ones", "Fig. 3, Sec. 5", "partitioning"),
    *_better("pdcl0", "er-ring", "Dual weights improve on fixed ones", "Fig. 3", "partitioning"),
    *_better("pdcl0", "er", "Dual weights forget less", "Sec. 5", "sweeps", "mean_forgetting"),
    *_better("pdcl", "pdcl0", "Partition by dual improves on a uniform one", "Fig. 3, Sec. 5", "partitioning"),
    *_better("pdcl", "er-ring", "Partition by dual improves on a uniform one", "Fig. 3", "partitioning"),
    *_better("pdcl-s", "pdcl", "Selection by dual improves on a uniform one", "Sec. 5", "sweeps"),
    *_better("er", "agem", "Gradient projections are worse than replay", "Fig. 3", "partitioning"),
    *(
        Claim(
            f"Dual weights that start at 1 improve on fixed ones: {label} over er, accuracy, {stream}",
            "ours",
            "start",
            "",
            partial(judging.started_beats, label, "er", stream),
        )
        for stream in ("organa", "mnist")
        for label in ("pdcl0", "pdcl")
    ),
    Claim(
        "Gradient projections are worse than replay at a tenth of the rate: er over agem, Adam .001, mnist",
        "ours",
        "projection",
        "",
        partial(judging.better_at_small_rate, "er", "agem"),
    ),
    Claim(
        "Balanced, mixed and clipped selection improves on a uniform one: pdcl-s-robust over pdcl, accuracy, mnist",
        "ours",
        "selection",
        "",
        partial(judging.robust_beats, "pdcl"),
    ),
    Claim(
        "Balanced, mixed and clipped selection improves on the printed one: pdcl-s-robust over pdcl-s, accuracy, mnist",
        "ours",
        "selection",
        "",
        partial(judging.robust_beats, "pdcl-s"),
    ),
    Claim(
        "Primal-dual methods have the highest accuracy in almost all settings",
        "Sec. 5",
        "mnist-sizes",
        "sweeps",
        partial(judging.among_settings, "mean_accuracy"),
    ),
    Claim(
        "Primal-dual methods forget least in almost all settings",
        "Sec. 5",
        "mnist-sizes",
        "sweeps",
        partial(judging.among_settings, "mean_forgetting"),
    ),
    Claim(
        "In some settings no method is clearly better than er", "Sec. 5", "mnist-sizes", "sweeps", judging.er_unbeaten
    ),
    Claim(
        "With a small memory (200) selection is no gain on speech",
        "Sec. 5",
        "speech-sizes",
        "sweeps",
        judging.no_selection_gain,
    ),
    *(
        Claim(f"Memory is divided unevenly, {s}", "Fig. 4 left", s, f"partition-{s}", partial(judging.uneven, s))
        for s in STREAMS
    ),
    *(
        Claim(f"A loose ε forgets more, {s}", "Fig. 4 centre", p, f"tolerance-{s}", partial(judging.loose_forgets, s))
        for s, p in SWEPT
    ),
    *(
        Claim(f"A tight ε loses accuracy, {s}", "Fig. 4 centre", p, f"tolerance-{s}", partial(judging.tight_loses, s))
        for s, p in SWEPT
    ),
    *(
        Claim(
            f"{word} times the paper's ε changes accuracy by less than 2 points, {s}",
            "Appendix, details",
            p,
            f"tolerance-{s}",
            partial(judging.insensitive, side, s),
        )
        for s, p in SWEPT
        for side, word in enumerate(("0.3", "3"))
    ),
    *(
        Claim(
            f"λ grows where ε is tight, {s}", "Fig. 4 right", p, f"duals-tolerance-{s}", partial(judging.tight_grows, s)
        )
        for s, p in SWEPT
    ),
    *(
        Claim(
            f"λ vanishes where ε is loose (below a tenth), {s}",
            "Fig. 4 right",
            p,
            f"duals-tolerance-{s}",
            partial(judging.loose_vanishes, s),
        )
        for s, p in SWEPT
    ),
    Claim(
        "α = 0.5 improves on uniform shares (α = 0), speech",
        "Fig. 2 right",
        "alpha",
        "alpha-speech",
        partial(judging.better_than_alpha, 0.0),
    ),
    Claim(
        "α = 0.5 improves on no least share (α = 1), speech",
        "Fig. 2 right",
        "alpha",
        "alpha-speech",
        partial(judging.better_than_alpha, 1.0),
    ),
    *(
        Claim(f"BP is no worse than PB, {s}", "Appendix, BP", "bp", "", partial(judging.bp_is_no_worse, s))
        for s in STREAMS
    ),
    *(
        Claim(f"Large duals lie at class borders, {s}", "Fig. 5", s, f"map-{s}", partial(judging.at_borders, s))
        for s in STREAMS
    ),
    Claim(
        "Outliers have large duals: wrong labels among the highest tenth", "Sec. 5", "noise", "", judging.outliers_found
    ),
    Claim(
        "Selection by dual stores outliers: wrong labels in memory, pdcl-s over pdcl",
        "Sec. 5",
        "noise",
        "",
        partial(judging.outliers_stored, "pdcl-s", {}),
    ),
    Claim(
        "Clipped and mixed selection stores them too: pdcl-s-robust over pdcl",
        "ours",
        "noise",
        "",
        partial(judging.outliers_stored, "pdcl-s-robust", dict(ROBUST)),
    ),
    *(
        Claim(
            f"Duals are prices: 90 % of what-if points above −λγ, {s}",
            "Theorem 1",
            "prices",
            "",
            partial(judging.price_holds, s, MORE_STEPS),
        )
        for s in ("mnist", "organa")
    ),
    Claim(
        "Duals that have settled are prices: 90 % of what-if points above −λγ, plain SGD and ε = .1, mnist",
        "Theorem 1",
        "settled",
        "",
        partial(judging.price_holds, "mnist", SETTLED),
    ),
    Claim(
        "Prices of a narrow network are worse than those of a wide one",
        "Sec. 3.1",
        "capacity",
        "",
        judging.wider_is_better,
    ),
    Claim(
        "Prices from a small memory are worse than those from a large one",
        "Sec. 3.1",
        "capacity",
        "",
        judging.larger_is_better,
    ),
)
