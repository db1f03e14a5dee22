"""`exact`: accuracy, limits, ablations, small tables, growth. docs/results/exact.md is made of what this writes.

    python benchmarks/evidence/exact.py                          all parts, what is missing
    python benchmarks/evidence/exact.py --parts limits --seeds 5
    python benchmarks/evidence/exact.py --minutes 20             stop after some time; the same command goes on
    python docs/results/exact.py                                 the page

Every result is a line of exact_PART.jsonl in --out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib import import_module
from pathlib import Path

import torch
from exact_book import HERE, Book

from pdcl.learning.placement import keep_freed_memory

PARTS = ("accuracy", "limits", "ablations", "small", "growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / "docs/results/data")
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=1e9)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    warnings.simplefilter("ignore")
    until = time.time() + 60 * asked.minutes
    for part in asked.parts:
        jobs = import_module(f"exact_{part}").jobs(asked.seeds)
        if not Book(asked.out, part).carry_out(jobs, until):
            break


if __name__ == "__main__":
    main()
