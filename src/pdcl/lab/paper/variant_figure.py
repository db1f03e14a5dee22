"""Changed forms of the methods beside the printed ones: BP, another start, selection or setting, wrong labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pdcl.lab.figures.drawn import Drawn
from pdcl.lab.figures.style import COLOURS, figure
from pdcl.lab.figures.sweeps import FEWEST
from pdcl.lab.paper.judging import NOISE, OURS, REPORTED
from pdcl.lab.paper.prices import MORE_STEPS
from pdcl.lab.paper.reasons import CHANGED
from pdcl.lab.paper.runs import SIZE, Runs, metric
from pdcl.lab.paper.settings import SLOW
from pdcl.metrics import interval
from pdcl.records import Row

PLAIN: dict[str, tuple[str, dict[str, Any]]] = {label: (label, {}) for label in ("er", *OURS)}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "pdcl, BP": ("pdcl", {"partition": "generalization"}),
    **{f"{label}, λ from 1": (label, {"start": 1.0}) for label in OURS},
    **{f"{label}, {MORE_STEPS['dual_steps']} dual steps": (label, dict(MORE_STEPS)) for label in OURS},
    "pdcl, ε = 1.1 m_k": ("pdcl", {"tolerance": "1.1x"}),
    **{label: (label, options) for label, options in CHANGED.items()},
    **{f"{label}, tuned for SGD": (f"{label}-reported", options) for label, options in REPORTED.items()},
    **{f"{label}, Adam at .001": (label, dict(SLOW)) for label in ("er", "agem")},
}
REASON = "no changed form of a method was run"


@dataclass(frozen=True)
class Pair:
    """Runs of one form by seed, with right labels and with wrong ones."""

    clean: Mapping[int, Row]
    noisy: Mapping[int, Row]


def draw_variants(drawn: Drawn, runs: Runs, stream: str, suffix: str) -> None:
    found = {
        name: Pair(*(runs.find(stream, label, SIZE, **options, **noise) for noise in ({}, NOISE)))
        for name, (label, options) in (PLAIN | VARIANTS).items()
    }
    found = {name: pair for name, pair in found.items() if pair.clean or pair.noisy}
    shown = [row for pair in found.values() for rows in (pair.clean, pair.noisy) for row in rows.values()]
    changed = any(pair.noisy or name in VARIANTS for name, pair in found.items())
    drawn.put("variants", suffix, partial(variants, found) if changed else None, REASON, shown)


def variants(found: Mapping[str, Pair]) -> Any:
    """Mean accuracy of each form, one below the other; those with wrong labels as open squares."""
    kinds = {
        "right labels": ("clean", "o", COLOURS[0]),
        f"{100 * NOISE['noise']:.0f} % wrong labels": ("noisy", "s", COLOURS[1]),
    }
    kinds = {name: each for name, each in kinds.items() if any(getattr(pair, each[0]) for pair in found.values())}
    with figure(width=1.3, height=0.35 + 0.085 * len(found)) as (made, axes):
        for shift, (kind, (name, marker, colour)) in zip((0.0, 0.3), kinds.items(), strict=False):
            at = [place + shift for place, pair in enumerate(found.values()) if getattr(pair, name)]
            rows = [getattr(pair, name) for pair in found.values() if getattr(pair, name)]
            values = [list(metric(each, "mean_accuracy").values()) for each in rows]
            # Where there are too few runs for an interval, there is none.
            means = [interval(each)[0] for each in values]
            halves = [interval(each)[1] if len(each) >= FEWEST else 0.0 for each in values]
            face = colour if name == "clean" else "white"
            shown = {"fmt": marker, "color": colour, "mfc": face, "capsize": 2, "elinewidth": 0.8, "label": kind}
            axes.errorbar(means, at, xerr=halves, **shown)
        axes.set_yticks(range(len(found)), list(found))
        axes.set(xlabel="mean accuracy (%)", ylim=(len(found) - 0.4, -0.6))
        # Between the printed methods and the changed ones.
        axes.axhline(sum(name in PLAIN for name in found) - 0.4, color="#c9ced4", linewidth=0.6)
        if len(kinds) > 1:
            made.legend(loc="outside lower center", ncols=2)
        return made
