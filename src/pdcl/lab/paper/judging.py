"""How runs decide the paper's claims: one function per kind of claim, from runs to a number, interval and verdict."""

from __future__ import annotations

from collections.abc import Callable
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
    BySeed,
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
)  # fmt: skip
from pdcl.lab.paper.settings import Setting
from pdcl.records import Row

STREAMS = ("mnist", "speech", "organa")
BASELINES = ("er", "er-ring", "agem", "gss", "xder")
# The baselines of Sec. 5 and Fig. 6.
COMPARED = ("er", "gss", "xder", "agem")
OURS = ("pdcl0", "pdcl", "pdcl-s")
# Points of accuracy below which a difference counts as none.
MARGIN = 1.0
# ε of our parts `epsilon` and `epsilon-mnist`: the tightest, both that are next to the paper's, the loosest.
EPSILONS = {"organa": (0.005, 0.015, 0.15, 1.5), "mnist": (0.0005, 0.0015, 0.015, 0.5)}
TIGHT, NEAR, LOOSE = 0, {1: "0.3", 2: "3"}, 3
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
BP = {"partition": "generalization"}
NOISE = {"noise": 0.1}

# A method as it was run: its label, and what it was given beside the preset.
Form = tuple[str, dict[str, Any]]


def accuracy(stream: str, form: Form, runs: Runs) -> BySeed:
    return metric(runs.find(stream, form[0], SIZE, **form[1]), "mean_accuracy")


def beats(first: str, second: str, stream: str, memory: int, name: str, runs: Runs) -> Finding:
    return Setting("", stream, memory).difference(first, second, name, runs)


def form_beats(first: Form, second: Form, stream: str, runs: Runs) -> Finding:
    return more(accuracy(stream, first, runs), accuracy(stream, second, runs))


def no_worse_than_printed(options: dict[str, Any], stream: str, runs: Runs) -> Finding:
    """pdcl with these options is no worse than as printed, but for a margin."""
    return no_less(accuracy(stream, ("pdcl", options), runs), accuracy(stream, ("pdcl", {}), runs), MARGIN)


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
    unit = f"of {len(known)} settings, {lost} the other way"
    return Finding(verdict, won, n=min(each.n for each in known), unit=unit)


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


def at_epsilon(place: int | None, stream: str, runs: Runs) -> dict[int, Row]:
    """pdcl at one of `EPSILONS`; None: the paper's."""
    return runs.find(stream, "pdcl", SIZE, **({} if place is None else {"tolerance": EPSILONS[stream][place]}))


def loose_forgets(stream: str, runs: Runs) -> Finding:
    loose, right = (metric(at_epsilon(each, stream, runs), "mean_forgetting") for each in (LOOSE, None))
    return more(loose, right)


def tight_loses(stream: str, runs: Runs) -> Finding:
    tight, right = (metric(at_epsilon(each, stream, runs), "mean_accuracy") for each in (TIGHT, None))
    return more(right, tight, "points lost")


def insensitive(place: int, stream: str, runs: Runs) -> Finding:
    near, right = (metric(at_epsilon(each, stream, runs), "mean_accuracy") for each in (place, None))
    return within(near, right, 2 * MARGIN)


def tight_grows(stream: str, runs: Runs) -> Finding:
    """Held if λ still grows in the second half of tasks. It follows the slack, so that says that ε stays violated."""
    return above(measured(at_epsilon(TIGHT, stream, runs), measures.late_growth), 0, "λ, end − middle of a task")


def loose_vanishes(stream: str, runs: Runs) -> Finding:
    """Held if λ at the loose ε is below a tenth of that at the paper's."""
    loose, right = (measured(at_epsilon(each, stream, runs), measures.past_dual) for each in (LOOSE, None))
    return more({seed: right[seed] / 10 for seed in right}, loose, "λ / 10 − λ loose")


def is_above(
    measure: Callable[[Row], float | None], bound: float, unit: str, form: Form, stream: str, runs: Runs
) -> Finding:
    """Held if what is measured on these runs is above a bound."""
    return above(measured(runs.find(stream, form[0], SIZE, **form[1]), measure), bound, unit)


def harder_hold_more(stream: str, runs: Runs) -> Finding:
    """Held if a past task's places go along with its final error under er, which divides nothing by difficulty."""
    errors = {seed: measures.past_errors(row) for seed, row in runs.find(stream, "er", SIZE).items()}
    places = {seed: measures.places(row)[:-1] for seed, row in runs.find(stream, "pdcl", SIZE).items()}
    found = {seed: measures.correlation(places[seed], errors[seed]) for seed in places.keys() & errors.keys()}
    return correlated({seed: value for seed, value in found.items() if value is not None})


def modest_on_small(runs: Runs) -> Finding:
    """Held if pdcl gains less over er with the smallest memory than with the largest: the paper says no more of it."""
    gains = []
    for memory in (200, 1000):
        a, b = (Setting("", "speech", memory).scores(label, "mean_accuracy", runs) for label in ("pdcl", "er"))
        gains.append({seed: a[seed] - b[seed] for seed in a.keys() & b.keys()})
    return more(gains[1], gains[0], "points less")


def no_selection_gain(runs: Runs) -> Finding:
    a, b = (Setting("", "speech", 200).scores(label, "mean_accuracy", runs) for label in ("pdcl-s", "pdcl"))
    return no_more(a, b, MARGIN)


def outliers_stored(label: str, options: dict[str, Any], runs: Runs) -> Finding:
    forms = ((label, NOISE | options), ("pdcl", NOISE))
    a, b = (measured(runs.find("mnist", form, SIZE, **own), measures.wrong_stored) for form, own in forms)
    return more(a, b)


def price_holds(side: int, options: dict[str, Any], stream: str, runs: Runs) -> Finding:
    """Held if points on one side of ε lie above −λγ: P(ε + γ) − P(ε) + λγ by unit of |γ|, beyond the noise of seeds."""
    return is_above(partial(prices.above_line, side=side), 0, "by unit of γ", ("pdcl0", options), stream, runs)


def price_is_slope(runs: Runs) -> Finding:
    """Held if the slope of P on both sides of ε is −λ to within half of λ: the inequality alone has many solutions."""
    settled = runs.find("mnist", "pdcl0", SIZE, **SETTLED)
    dual, slope = measured(settled, prices.dual_of), measured(settled, prices.slope)
    return within(slope, dual, OFF * mean(dual), "λ") if dual else ABSENT


def further_below(first: tuple[str, int], second: tuple[str, int], runs: Runs) -> Finding:
    """Whether prices of a network with a memory are worse than those of another: P lies further below −λγ."""
    a, b = (runs.find("mnist", "pdcl0", memory, **SETTLED, network=network) for network, memory in (first, second))
    return more(measured(b, prices.above_line), measured(a, prices.above_line), BELOW)


wider_is_better = partial(further_below, (NARROW, SIZE), (WIDE, SIZE))
larger_is_better = partial(further_below, (WIDE, 50), (WIDE, SIZE))
