"""Claims about duals: what they divide, what ε does to them, which samples have large ones, what they are worth."""

from __future__ import annotations

from functools import partial

from pdcl.lab.paper import judging
from pdcl.lab.paper.claim import Claim
from pdcl.lab.paper.judging import ROBUST, STREAMS
from pdcl.lab.paper.prices import MORE_STEPS, SETTLED

SIDES = {-1: "a tighter ε (γ < 0) raises P by no less than −λγ", 1: "a looser ε (γ > 0) lowers P by no more than λγ"}
SWEPT = (("organa", "epsilon"), ("mnist", "epsilon-mnist"))

OF_DUALS: tuple[Claim, ...] = (
    *(
        Claim(
            f"Memory is divided unevenly (by more than 5 %), {s}",
            "Fig. 4 left",
            s,
            f"distance-{s}",
            partial(judging.uneven, s),
        )
        for s in STREAMS
    ),
    *(
        Claim(
            f"Memory is divided unevenly among past tasks (by more than 5 %), {s}",
            "ours",
            s,
            f"partition-{s}",
            partial(judging.uneven_among_past, s),
        )
        for s in STREAMS
    ),
    *(
        Claim(
            f"Harder tasks get more of memory: places of past tasks go along with their errors under er, {s}",
            "Sec. 3.2, conclusion",
            s,
            f"partition-{s}",
            partial(judging.harder_hold_more, s),
        )
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
            f"ε = 1.1 m_k works: no worse than the paper's ε, {s}",
            "Appendix, details",
            "relative",
            f"variants-{s}",
            partial(judging.relative_works, s),
        )
        for s in ("mnist", "organa")
    ),
    *(
        Claim(
            f"λ still grows in the second half of tasks where ε is tight, {s}",
            "Fig. 4 right",
            p,
            f"duals-tolerance-{s}",
            partial(judging.tight_grows, s),
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
        Claim(f"BP is no worse than PB, {s}", "ours", "bp", f"variants-{s}", partial(judging.bp_is_no_worse, s))
        for s in STREAMS
    ),
    *(
        Claim(
            f"BP improves on a uniform partition: over pdcl0, {s}",
            "ours",
            "bp",
            f"variants-{s}",
            partial(judging.bp_beats_uniform, s),
        )
        for s in STREAMS
    ),
    *(
        Claim(
            f"Large duals lie at the borders of their task's classes, {s}",
            "Fig. 5",
            s,
            f"map-{s}",
            partial(judging.at_borders, s),
        )
        for s in STREAMS
    ),
    Claim(
        "Outliers have large duals: wrong labels among the highest tenth of each task",
        "Sec. 5",
        "noise",
        "what-wrong-labels-do",
        judging.outliers_found,
    ),
    Claim(
        "Selection by dual stores outliers: wrong labels in memory, pdcl-s over pdcl",
        "Sec. 5",
        "noise",
        "what-wrong-labels-do",
        partial(judging.outliers_stored, "pdcl-s", {}),
    ),
    Claim(
        "Clipped and mixed selection stores them too: pdcl-s-robust over pdcl",
        "ours",
        "noise",
        "what-wrong-labels-do",
        partial(judging.outliers_stored, "pdcl-s-robust", dict(ROBUST)),
    ),
    *(
        Claim(
            f"Duals are prices: {SIDES[side]}, {s}",
            "Theorem 1",
            "prices",
            f"prices-{s}",
            partial(judging.price_holds, side, s, MORE_STEPS),
        )
        # A tighter ε than the paper's .005 on mnist isn't run.
        for s, side in (("mnist", 1), ("organa", -1), ("organa", 1))
    ),
    *(
        Claim(
            f"Duals that have settled are prices: {says}, plain SGD and ε = .1, mnist",
            "Theorem 1",
            "settled",
            "prices-mnist",
            partial(judging.price_holds, side, "mnist", SETTLED),
        )
        for side, says in SIDES.items()
    ),
    Claim(
        "A dual that has settled is the slope of P at ε, to within half of λ, mnist",
        "ours",
        "settled",
        "prices-mnist",
        judging.price_is_slope,
    ),
    Claim(
        "Prices of a narrow network are worse than those of a wide one: P lies further below −λγ",
        "Sec. 3.1",
        "capacity",
        "capacity-mnist",
        judging.wider_is_better,
    ),
    Claim(
        "Prices from a small memory are worse than those from a large one: P lies further below −λγ",
        "Sec. 3.1",
        "capacity",
        "capacity-mnist",
        judging.larger_is_better,
    ),
)
