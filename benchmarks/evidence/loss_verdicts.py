"""How often is a mean loss that is exactly its limit called kept, or BROKEN? Means of losses of several laws.

    python benchmarks/evidence/loss_verdicts.py

Each cell: percent of 4,000 tables of one row, so that 4.5 % are allowed; seed 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pdcl.judging.bounds import Floats, mean_above, mean_below
from pdcl.judging.clipping import span_of
from pdcl.judging.intervals import TOWARD
from pdcl.limits.limit import Limit

RUNS, SIZES, LEVEL = 4000, (50, 100, 200, 1000), TOWARD * 0.05
Law = Callable[[np.random.Generator, tuple[int, int]], Floats]


def margins(deviation: float) -> Law:
    """Cross-entropy of two classes with normal margins, right in 95 %."""
    return lambda rng, shape: np.log1p(np.exp(-rng.normal(3.29 * deviation, 2 * deviation, shape)))


LAWS: dict[str, Law] = {
    "cross-entropy, sure": margins(1.0),
    "cross-entropy, very sure": margins(2.0),
    "squared normal": lambda rng, shape: rng.normal(size=shape) ** 2,
    "log-normal, σ = 1": lambda rng, shape: rng.lognormal(0, 1, shape) / math.exp(0.5),
    "log-normal, σ = 2": lambda rng, shape: rng.lognormal(0, 2, shape) / math.exp(2),
    "squared Student, 3 degrees": lambda rng, shape: rng.standard_t(3, shape) ** 2 / 3,
    "one in fifty is 45 times the limit": lambda rng, shape: np.where(rng.random(shape) < 0.02, 45, 0.1 / 0.98),
}


def cell(law: Law, mean: float, n: int) -> str:
    losses = law(np.random.default_rng(0), (RUNS, n))
    top = span_of(Limit("at", "loss", value=mean), n).top
    shares = np.minimum(losses, top) / top
    kept = (mean_above(shares, mean / top, LEVEL) <= LEVEL) & (losses < top).all(axis=1)
    broken = mean_below(shares, mean / top, LEVEL) <= LEVEL
    return f"{100 * kept.mean():.1f}, {100 * broken.mean():.1f}"


if __name__ == "__main__":
    print("| kept, BROKEN (%) |", " | ".join(f"n = {n:,}" for n in SIZES), "|")
    print("|---" * (len(SIZES) + 1) + "|")
    for name, law in LAWS.items():
        exact = not name.startswith("cross")
        mean = 1.0 if exact else float(law(np.random.default_rng(1), (1, 10**7)).mean())
        print(f"| {name} |", " | ".join(cell(law, mean, n) for n in SIZES), "|", flush=True)
