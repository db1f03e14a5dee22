"""The figure of docs/results/exact.md: accuracy at equal bytes, and excess over strict limits."""

from __future__ import annotations

from statistics import mean

import matplotlib
import numpy as np
from exact_tables import HERE, KINDS, REPLAY, SETTINGS, cases, own, scores

NAMES = {"equal": "equal weights", "exact-frozen": "frozen duals", "exact-offsets": "offsets alone", "exact": "exact"}
SHADES = ("#cccccc", "#999999", "#7aa6c2", "#0b4f7d")


def figure() -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kinds = [kind for kind in KINDS if cases(kind)]
    picture = plt.figure(figsize=(7.2, 3.1))
    left, right = picture.subplots(1, 2, width_ratios=(1, 1.3))
    streams = [name for name in SETTINGS if both(name)]
    for place, name in enumerate(streams):
        memory = SETTINGS[name].memories[1]
        rivals = [100 * mean(each) for rival in REPLAY if (each := scores(name, memory, rival))]
        first = not place
        left.plot([place] * len(rivals), rivals, "o", color="#999999", label="replay methods" if first else None)
        left.plot(place, own(name), "D", color="#0b4f7d", label="exact" if first else None)
    left.set_ylim(0, 104)
    left.set_xticks(range(len(streams)), streams, rotation=35, ha="right", fontsize=9)
    left.set_ylabel("mean accuracy, %")
    left.set_title("The same bytes of memory", fontsize=10)
    left.legend(frameon=False, fontsize=9, loc="lower left")
    for place, (name, label) in enumerate(NAMES.items()):
        heights = [mean(case[name] for case in cases(kind) if name in case) for kind in kinds]
        right.bar(np.arange(len(kinds)) + 0.2 * place - 0.3, heights, 0.2, color=SHADES[place], label=label)
    # Room for the legend above the bars.
    right.set_ylim(0, 1.35 * right.get_ylim()[1])
    right.set_xticks(range(len(kinds)), [kind.replace(" ", "\n") for kind in kinds], fontsize=9)
    right.set_ylabel("mean excess, points")
    right.set_title("Strict limits: test error above them", fontsize=10)
    right.legend(frameon=False, fontsize=9, loc="upper center", ncols=2)
    for each in (left, right):
        each.spines[["top", "right"]].set_visible(False)
    picture.tight_layout()
    picture.savefig(HERE.parent / "images/exact.png", dpi=160)


def both(name: str) -> bool:
    """Whether exact and replay were measured at the same bytes."""
    memory = SETTINGS[name].memories[1]
    return all(any(scores(name, memory, each) for each in methods) for methods in (("exact",), REPLAY))
