"""How runs decide the paper's claims: one function per kind of claim, from runs to a number, interval and verdict."""

from __future__ import annotations

from functools import partial
from typing import Any

from pdcl.lab.paper import measures, prices
from pdcl.lab.paper.cells import mean
from pdcl.lab.paper.prices import NARROW, SETTLED, WIDE
from pdcl.lab.paper.runs import (
    ABSENT,
    HELD,
    NOT_HELD,
    SIZE,
    UNDECIDED,
    Finding,
    Runs,
    above,
    correlated,
    measured,
    metric,
    more,
    no_less,
    no_more,
    within,
)

STREAMS = ("mnist", "speech", "organa")
BASELINES = ("er", "er-ring", "agem", "gss", "xder")
# The baselines of Sec. 5 and Fig. 6.
COMPARED = ("er", "gss", "xder", "agem")
OURS = ("pdcl0", "pdcl", "pdcl-s")
# Points of accuracy below which a difference counts as none.
MARGIN = 1.0
# ε of the paper, and of our parts `epsilon` and `epsilon-mnist` its tightest, nearest and loosest.
EPSILONS = {"organa": (0.005, (0.015, 0.15), 1.5), "mnist": (0.0005, (0.0015, 0.015), 0.5)}
# Fewer settings decide nothing about almost all of them; with fewer seeds, not to be told apart says little.
FEWEST_SETTINGS, FEWEST_SEEDS = 3, 5
ALMOST_ALL, HALF = 0.8, 0.5
# Percent of places that lie elsewhere than in an even division: what rounding and chance do is below it.
UNEVEN = 5.0
BELOW = "by unit of γ further below"
# A price is right where it is off by less than this share of itself.
OFF = 0.5
# What the part `reported` gives a baseline beside the preset.
SGD: dict[str, Any] = {"optimizer": "sgd", "lr": 0.1}
REPORTED: dict[str, dict[str, Any]] = {
    "er": SGD,
    "er-ring": SGD,
    "agem": {**SGD, "replay": 128},
    "gss": {**SGD, "batch": 128, "references": 10},
    "xder": {**SGD, "replay": 32, "alpha": 0.3, "beta": 0.8, "eta": 0.5, "past_constraint": True},
}
ROBUST = {"clip": 0.9, "uniform_share": 0.5, "balance": True}


def beats(first: str, second: str, stream: str, memory: int, name: str, runs: Runs) -> Finding:
    a, b = (metric(runs.find(stream, label, memory), name) for label in (first, second))
    return more(a, b) if name == "mean_accuracy" else more(b, a, "points less")


def better_at_small_rate(first: str, second: str, runs: Runs) -> Finding:
    a, b = (metric(runs.find("mnist", label, SIZE, lr=0.001), "mean_accuracy") for label in (first, second))
    return more(a, b)


def started_beats(first: str, second: str, stream: str, name: str, runs: Runs) -> Finding:
    """As `beats`, with duals that start at 1; a method without duals is as it was."""
    a, b = (metric(runs.find(stream, label, SIZE, **_started(label)), name) for label in (first, second))
    return more(a, b) if name == "mean_accuracy" else more(b, a, "points less")


def _started(label: str) -> dict[str, float]:
    return {"start": 1.0} if label in OURS else {}


def robust_beats(other: str, runs: Runs) -> Finding:
    changed = metric(runs.find("mnist", "pdcl-s-robust", SIZE, **ROBUST), "mean_accuracy")
    return more(changed, metric(runs.find("mnist", other, SIZE), "mean_accuracy"))


def among_settings(other: str, name: str, runs: Runs) -> Finding:
    """In how many settings pdcl is above a baseline (or forgets less) beyond its interval.

    Held if in at least four of five settings that have an interval, not held below half; fewer than three decide
    nothing.
    """
    found = [beats("pdcl", other, *setting, name, runs) for setting in runs.settings()]
    known = [each for each in found if each.n > 1]
    if not known:
        return ABSENT
    won, lost = (sum(each.verdict == verdict for each in known) for verdict in (HELD, NOT_HELD))
    share = won / len(known)
    verdict = HELD if share >= ALMOST_ALL else NOT_HELD if share < HALF else UNDECIDED
    verdict = verdict if len(known) >= FEWEST_SETTINGS else UNDECIDED
    return Finding(
        verdict, won, n=min(each.n for each in known), unit=f"of {len(known)} settings, {lost} the other way"
    )


def er_unbeaten(runs: Runs) -> Finding:
    """Held if in some setting with five seeds no method is above er beyond its interval; few settings refute none."""
    settings = []
    for stream, memory in runs.settings():
        found = [beats(label, "er", stream, memory, "mean_accuracy", runs) for label in (*BASELINES[1:], *OURS)]
        settings.append([each for each in found if each.n > 1])
    if not any(settings):
        return ABSENT
    judged = [found for found in settings if found and min(each.n for each in found) >= FEWEST_SEEDS]
    unbeaten = sum(all(each.verdict != HELD for each in found) for found in judged)
    verdict = HELD if unbeaten else NOT_HELD if len(judged) >= FEWEST_SETTINGS else UNDECIDED
    return Finding(verdict, unbeaten, n=FEWEST_SEEDS, unit=f"of {len(judged)} settings")


def loose_forgets(stream: str, runs: Runs) -> Finding:
    loose = runs.find(stream, "pdcl", SIZE, tolerance=EPSILONS[stream][2])
    return more(metric(loose, "mean_forgetting"), metric(runs.find(stream, "pdcl", SIZE), "mean_forgetting"))


def tight_loses(stream: str, runs: Runs) -> Finding:
    tight = runs.find(stream, "pdcl", SIZE, tolerance=EPSILONS[stream][0])
    right = metric(runs.find(stream, "pdcl", SIZE), "mean_accuracy")
    return more(right, metric(tight, "mean_accuracy"), "points lost")


def insensitive(side: int, stream: str, runs: Runs) -> Finding:
    near = runs.find(stream, "pdcl", SIZE, tolerance=EPSILONS[stream][1][side])
    return within(metric(near, "mean_accuracy"), metric(runs.find(stream, "pdcl", SIZE), "mean_accuracy"), 2 * MARGIN)


def tight_grows(stream: str, runs: Runs) -> Finding:
    """Held if λ still grows in the second half of tasks. It follows the slack, so that says that ε stays violated."""
    tight = runs.find(stream, "pdcl", SIZE, tolerance=EPSILONS[stream][0])
    return above(measured(tight, measures.late_growth), 0, "λ, end − middle of a task")


def loose_vanishes(stream: str, runs: Runs) -> Finding:
    """Held if λ at the loose ε is below a tenth of that at the paper's."""
    loose = measured(runs.find(stream, "pdcl", SIZE, tolerance=EPSILONS[stream][2]), measures.past_dual)
    right = measured(runs.find(stream, "pdcl", SIZE), measures.past_dual)
    return more({seed: right[seed] / 10 for seed in right}, loose, "λ / 10 − λ loose")


def better_than_alpha(other: float, runs: Runs) -> Finding:
    changed = runs.find("speech", "pdcl", SIZE, alpha=other)
    return more(metric(runs.find("speech", "pdcl", SIZE), "mean_accuracy"), metric(changed, "mean_accuracy"))


def bp_is_no_worse(stream: str, runs: Runs) -> Finding:
    bp = runs.find(stream, "pdcl", SIZE, partition="generalization")
    return no_less(metric(bp, "mean_accuracy"), metric(runs.find(stream, "pdcl", SIZE), "mean_accuracy"), MARGIN)


def bp_beats_uniform(stream: str, runs: Runs) -> Finding:
    bp = runs.find(stream, "pdcl", SIZE, partition="generalization")
    return more(metric(bp, "mean_accuracy"), metric(runs.find(stream, "pdcl0", SIZE), "mean_accuracy"))


def uneven(stream: str, runs: Runs) -> Finding:
    """All tasks: PB divides memory among the newest, by its artificial dual, and the past ones."""
    return above(measured(runs.find(stream, "pdcl", SIZE), measures.distance), UNEVEN, "% of places")


def uneven_among_past(stream: str, runs: Runs) -> Finding:
    """The newest task is left out: its share follows an artificial dual, which is no price of a limit."""
    return above(measured(runs.find(stream, "pdcl", SIZE), measures.past_distance), UNEVEN, "% of past tasks' places")


def harder_hold_more(stream: str, runs: Runs) -> Finding:
    """Held if a past task's places go along with its final error under er, which divides nothing by difficulty."""
    errors = {seed: measures.past_errors(row) for seed, row in runs.find(stream, "er", SIZE).items()}
    places = {seed: measures.past_places(row) for seed, row in runs.find(stream, "pdcl", SIZE).items()}
    found = {seed: measures.correlation(places[seed], errors[seed]) for seed in places.keys() & errors.keys()}
    return correlated({seed: value for seed, value in found.items() if value is not None})


def modest_on_small(runs: Runs) -> Finding:
    """Held if pdcl gains less over er with the smallest memory than with the largest: the paper says no more of it."""
    small, large = (_gain("pdcl", "er", "speech", memory, runs) for memory in (200, 1000))
    return more(large, small, "points less")


def _gain(first: str, second: str, stream: str, memory: int, runs: Runs) -> dict[int, float]:
    """Points of accuracy by which one method is above another, by seed."""
    a, b = (metric(runs.find(stream, label, memory), "mean_accuracy") for label in (first, second))
    return {seed: a[seed] - b[seed] for seed in a.keys() & b.keys()}


def relative_works(stream: str, runs: Runs) -> Finding:
    """ε = 1.1 m_k against the ε that the paper's grid search chose."""
    given = metric(runs.find(stream, "pdcl", SIZE, tolerance="1.1x"), "mean_accuracy")
    return no_less(given, metric(runs.find(stream, "pdcl", SIZE), "mean_accuracy"), MARGIN)


def beats_reported(first: str, second: str, runs: Runs) -> Finding:
    """Against a baseline with settings for plain SGD: its authors' own, or chosen by us."""
    options = REPORTED[second]
    rival = metric(runs.find("mnist", f"{second}-reported", SIZE, **options), "mean_accuracy")
    return more(metric(runs.find("mnist", first, SIZE), "mean_accuracy"), rival)


def no_selection_gain(runs: Runs) -> Finding:
    a, b = (metric(runs.find("speech", label, 200), "mean_accuracy") for label in ("pdcl-s", "pdcl"))
    return no_more(a, b, MARGIN)


def at_borders(stream: str, runs: Runs) -> Finding:
    return above(measured(runs.find(stream, "pdcl-s", SIZE), measures.border_gain_in_tasks), 0, "points")


def outliers_found(runs: Runs) -> Finding:
    noisy = runs.find("mnist", "pdcl-s", SIZE, noise=0.1)
    return above(measured(noisy, measures.wrong_among_large_of_tasks), 0, "points")


def outliers_stored(label: str, options: dict[str, object], runs: Runs) -> Finding:
    chosen = measured(runs.find("mnist", label, SIZE, noise=0.1, **options), measures.wrong_stored)
    return more(chosen, measured(runs.find("mnist", "pdcl", SIZE, noise=0.1), measures.wrong_stored))


def price_holds(side: int, stream: str, options: dict[str, object], runs: Runs) -> Finding:
    """Held if points on one side of ε lie above −λγ: P(ε + γ) − P(ε) + λγ by unit of |γ|, beyond the noise of seeds."""
    found = runs.find(stream, "pdcl0", SIZE, **options)
    return above(measured(found, partial(prices.above_line, side=side)), 0, "by unit of γ")


def price_is_slope(runs: Runs) -> Finding:
    """Held if the slope of P on both sides of ε is −λ to within half of λ: the inequality alone has many solutions."""
    settled = runs.find("mnist", "pdcl0", SIZE, **SETTLED)
    dual, slope = measured(settled, prices.dual_of), measured(settled, prices.slope)
    return within(slope, dual, OFF * mean(dual), "λ") if dual else ABSENT


def wider_is_better(runs: Runs) -> Finding:
    narrow, wide = (runs.find("mnist", "pdcl0", SIZE, **SETTLED, network=each) for each in (NARROW, WIDE))
    return more(measured(narrow, prices.below_line), measured(wide, prices.below_line), BELOW)


def larger_is_better(runs: Runs) -> Finding:
    small, large = (runs.find("mnist", "pdcl0", m, **SETTLED, network=WIDE) for m in (50, SIZE))
    return more(measured(small, prices.below_line), measured(large, prices.below_line), BELOW)
