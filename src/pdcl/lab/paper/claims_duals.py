"""Claims about duals: what they divide, what ε does to them, which samples have large ones, what they are worth."""

from __future__ import annotations

from functools import partial

from pdcl.lab.paper import judging, measures
from pdcl.lab.paper.claim import Claim, on
from pdcl.lab.paper.judging import BP, NEAR, NOISE, ROBUST, STREAMS, UNEVEN, Form
from pdcl.lab.paper.prices import MORE_STEPS, SETTLED

TIGHTER, LOOSER = "a tighter ε (γ < 0) raises P by no less than −λγ", "a looser ε (γ > 0) lowers P by no more than λγ"
EACH = dict(zip(STREAMS, STREAMS, strict=True))
SWEPT = {"organa": "epsilon", "mnist": "epsilon-mnist"}
PLAIN: Form = ("pdcl", {})
BY_SAMPLE: Form = ("pdcl-s", {})
WRONG = "what-wrong-labels-do"

OF_DUALS: tuple[Claim, ...] = (
    # All tasks: PB divides memory among the newest, by its artificial dual, and the past ones.
    *on(EACH, "Memory is divided unevenly (by more than 5 %), {}", "Fig. 4 left", "distance-{}",
        judging.is_above, measures.distance, UNEVEN, "% of places", PLAIN),
    # The newest task left out: its share follows an artificial dual, which is no price of a limit.
    *on(EACH, "Memory is divided unevenly among past tasks (by more than 5 %), {}", "ours", "partition-{}",
        judging.is_above, measures.past_distance, UNEVEN, "% of past tasks' places", PLAIN),
    *on(EACH, "Harder tasks get more of memory: places of past tasks go along with their errors under er, {}",
        "Sec. 3.2, conclusion", "partition-{}", judging.harder_hold_more),
    *on(SWEPT, "A loose ε forgets more, {}", "Fig. 4 centre", "tolerance-{}", judging.loose_forgets),
    *on(SWEPT, "A tight ε loses accuracy, {}", "Fig. 4 centre", "tolerance-{}", judging.tight_loses),
    *(
        claim
        for stream, part in SWEPT.items()
        for place, word in NEAR.items()
        for claim in on({stream: part}, f"{word} times the paper's ε changes accuracy by less than 2 points, {{}}",
                        "Appendix, details", "tolerance-{}", judging.insensitive, place)
    ),
    *on({"mnist": "relative", "organa": "relative"}, "ε = 1.1 m_k works: no worse than the paper's ε, {}",
        "Appendix, details", "variants-{}", judging.no_worse_than_printed, {"tolerance": "1.1x"}),
    *on(SWEPT, "λ still grows in the second half of tasks where ε is tight, {}", "Fig. 4 right", "duals-tolerance-{}",
        judging.tight_grows),
    *on(SWEPT, "λ vanishes where ε is loose (below a tenth), {}", "Fig. 4 right", "duals-tolerance-{}",
        judging.loose_vanishes),
    *(
        Claim(f"α = 0.5 improves on {what}, speech", "Fig. 2 right", "alpha", "alpha-speech",
              partial(judging.form_beats, PLAIN, ("pdcl", {"alpha": alpha}), "speech"))
        for alpha, what in ((0.0, "uniform shares (α = 0)"), (1.0, "no least share (α = 1)"))
    ),
    *on(dict.fromkeys(STREAMS, "bp"), "BP is no worse than PB, {}", "ours", "variants-{}",
        judging.no_worse_than_printed, BP),
    *on(dict.fromkeys(STREAMS, "bp"), "BP improves on a uniform partition: over pdcl0, {}", "ours", "variants-{}",
        judging.form_beats, ("pdcl", BP), ("pdcl0", {})),
    *on(EACH, "Large duals lie at the borders of their task's classes, {}", "Fig. 5", "map-{}",
        judging.is_above, measures.border_gain_in_tasks, 0, "points", BY_SAMPLE),
    *on({"mnist": "noise"}, "Outliers have large duals: wrong labels among the highest tenth of each task", "Sec. 5",
        WRONG, judging.is_above, measures.wrong_among_large_of_tasks, 0, "points", ("pdcl-s", NOISE)),
    Claim("Selection by dual stores outliers: wrong labels in memory, pdcl-s over pdcl", "Sec. 5", "noise", WRONG,
          partial(judging.outliers_stored, "pdcl-s", {})),
    Claim("Clipped and mixed selection stores them too: pdcl-s-robust over pdcl", "ours", "noise", WRONG,
          partial(judging.outliers_stored, "pdcl-s-robust", ROBUST)),
    # A tighter ε than the paper's .005 on mnist isn't run.
    *(
        claim
        for stream, side, says in (("mnist", 1, LOOSER), ("organa", -1, TIGHTER), ("organa", 1, LOOSER))
        for claim in on({stream: "prices"}, f"Duals are prices: {says}, {{}}", "Theorem 1", "prices-{}",
                        judging.price_holds, side, MORE_STEPS)
    ),
    *(
        Claim(f"Duals that have settled are prices: {says}, plain SGD and ε = .1, mnist", "Theorem 1", "settled",
              "prices-mnist", partial(judging.price_holds, side, SETTLED, "mnist"))
        for side, says in ((-1, TIGHTER), (1, LOOSER))
    ),
    Claim("A dual that has settled is the slope of P at ε, to within half of λ, mnist", "ours", "settled",
          "prices-mnist", judging.price_is_slope),
    Claim("Prices of a narrow network are worse than those of a wide one: P lies further below −λγ", "Sec. 3.1",
          "capacity", "capacity-mnist", judging.wider_is_better),
    Claim("Prices from a small memory are worse than those from a large one: P lies further below −λγ", "Sec. 3.1",
          "capacity", "capacity-mnist", judging.larger_is_better),
)  # fmt: skip
