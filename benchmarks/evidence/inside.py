"""Replay inside the batch for networks: does it serve at equal samples seen, as it does for language models?

    python benchmarks/evidence/inside.py --out runs/inside            every run that is missing
    python benchmarks/evidence/inside.py --out runs/inside --table    the table so far

The setting of large_memory.py: memory holds all, one pass, the same limits. beside: pdcl as it is, b samples are
replayed beside b new ones. inside: of the same 2b samples a step, 2bΛ/(1 + Λ) are old ones, Λ the sum of base weights
and duals; all weigh the same, and new ones that find no place are left out. With base 0 Λ is mostly below 1: there b
samples a step are enough, half of what `beside` sees.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import product
from typing import Any

import large_memory as study
import torch
from limits_kept import Book, command
from limits_page import interval

import pdcl
from pdcl.trees import cat

STREAMS, MEMORY, PASSES = ("mnist", "organa", "speech"), "all", 1
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "beside": ("pdcl", study.EVEN),
    "inside": ("inside", study.EVEN),
    "beside, base 0": ("pdcl", {**study.EVEN, "base": 0.0}),
    "inside, base 0": ("inside", {**study.EVEN, "base": 0.0, "per_new": 1}),
}
NAMES = {"excess": "mean excess", "strict": "strict task", "others": "other past tasks", "new": "new tasks"}


@dataclass(eq=False)
class Inside(pdcl.PDCL):
    """pdcl with replay inside the batch.

    per_new: samples of a step for each new one that a batch brings
    """

    per_new: int = 2

    def step(self, batch: pdcl.Batch) -> pdcl.Step:
        norm, most = self.core.algorithm.norm, len(batch)
        if not norm:
            return super().step(batch)
        n = self.per_new * most
        chance = float(torch.rand((), dtype=torch.float64, generator=self.generator))
        m = min(max(int(n * norm / (1 + norm) + chance), n - most), n - 1)
        drawn, kept = self.core.draw(m), slice(n - m)
        if drawn is None:
            return super().step(batch)
        terms = self.core.terms(
            self.outputs(cat([batch.x[kept], self.core.past.inputs(drawn.slots)])), batch.y[kept], drawn
        )
        self.descend(terms, torch.full((n,), 1 / n))
        done = terms.detach()
        self.core.observe(batch.index[kept], done, n - m)
        if self.core.due():
            self.core.measure(self.evaluated)
        return pdcl.Step(done[: n - m], {"norm": norm})


def carry_out(book: Book, seeds: int) -> None:
    pdcl.register("inside")(Inside)
    for seed, stream in product(range(seeds), STREAMS):
        cell = (stream, MEMORY, PASSES)
        for (variant, (method, options)), (scenario, limits) in product(VARIANTS.items(), study.limits_of(book, cell)):
            key = f"{stream} {variant} {seed} {scenario}"
            if scenario in study.SCENARIOS and key not in book.known:
                result = study.run(cell, seed, options, limits, method=method)
                row = {"stream": stream, "memory": MEMORY, "passes": PASSES, "variant": variant, "seed": seed}
                book.add(key, **row, scenario=scenario, **study.found(result))


def table(book: Book) -> str:
    """Means over three settings of limits, in points; of each `inside` what it is less `beside`, paired by seed."""
    lines = [f"| replay | stream | seeds | {' | '.join(NAMES.values())} |", "|---" * 7 + "|"]
    for variant in VARIANTS:
        gaps: dict[int, list[dict[str, float]]] = {}
        for stream in STREAMS:
            runs, other = (study.by_seed(book, (stream, MEMORY, PASSES), each) for each in (variant, beside(variant)))
            cells = [f"{statistics.mean(run[name] for run in runs.values()):.1f}" for name in NAMES]
            lines.append(f"| {variant} | {stream} | {len(runs)} | {' | '.join(cells)} |")
            for seed in runs if variant != beside(variant) else ():
                gaps.setdefault(seed, []).append({name: runs[seed][name] - other[seed][name] for name in NAMES})
        if gaps:
            means = [interval([statistics.mean(gap[name] for gap in each) for each in gaps.values()]) for name in NAMES]
            lines.append(f"| less beside | all three (paired 95 %) | {len(gaps)} | {' | '.join(means)} |")
    return "\n".join(lines)


def beside(variant: str) -> str:
    return variant.replace("inside", "beside")


if __name__ == "__main__":
    command(__doc__, "runs/inside", 3, carry_out, table)
