"""Four months of a model that sorts parts by twelve measurements; each month brings two kinds nobody knew of.

python examples/months.py
"""

import numpy as np

import pdcl

MONTHS = ("2026-09", "2026-10", "2026-11", "2026-12")
# How many points of error a month may gain: one for the first, five for all others.
LIMITS = {"2026-09": "+1pt", "*": "+5pt"}
CENTRES = np.random.default_rng(0).normal(size=(8, 12)) * 1.8


def month(number, samples=5000, stage="train"):
    """Measurements, and the kind of each part by name."""
    rng = np.random.default_rng([number, len(stage)])
    kind = rng.integers(2 * number, 2 * number + 2, samples)
    return (CENTRES[kind] + rng.normal(size=(samples, 12))).astype("float32"), [f"kind {k}" for k in kind]


def new_learner():
    return pdcl.PDCL("mlp:64", memory=4000, tolerance=LIMITS, guard=0, witness=500, seed=0)


if __name__ == "__main__":
    learner = new_learner()
    for number, name in enumerate(MONTHS):
        entry = learner.learn(*month(number), name=name)
    print(entry.promises)
