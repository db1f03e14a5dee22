"""What the paper says and these runs don't test, and why."""

from __future__ import annotations

# Claim, why no run decides it, and the tests of this project that check a part of it.
UNTESTED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Assumption 1, Proposition 1: ε = m_k + Mδ can be met",
     "M and δ, the distance between sets of optimal networks, can't be measured; that a run misses ε doesn't show "
     "that no network meets it. Slacks under the paper's ε are under *Duals and slacks*; checked on convex problems",
     ("tests/learning/core/test_proposition_1.py",)),
    ("Lemma 1: duals of the convex problem are prices",
     "the networks' problem isn't convex; checked on convex ones against an exact solver",
     ("tests/learning/core/test_convex_oracle.py", "tests/release/test_convex_prices.py")),
    ("Lemmas 2 and 3, Proposition 2: how far duals are from those of the convex problem; Fig. 1 and ν",
     "ν, ζ and the curvature μ of a dual function that nobody can compute; the rows on width and memory test what "
     "follows from them", ()),
    ("Corollary 1: duals of samples are prices",
     "a sample's price is far below the noise between two solutions; checked on convex problems",
     ("tests/learning/core/test_convex_oracle.py",)),
    ("Samples with λ = 0 are uninformative",
     "it takes runs that store those alone; the paper shows none either", ()),
    ("Sample-wise constraints make the dual problem harder",
     "a reason for what selection does, by the condition number of a dual function; not measured", ()),
    ("BP without a least size gives all of memory to the highest dual",
     "a statement about a formula, no outcome of runs; that the partition is the best one above that size is tested",
     ("tests/algorithm/test_partition.py",)),
)  # fmt: skip


def untested() -> str:
    """The section of the page."""
    lines = []
    for says, why, files in UNTESTED:
        checked = f" ({', '.join(f'`{file}`' for file in files)})" if files else ""
        lines.append(f"- {says}: {why}{checked}.")
    return "\n".join(["## Claims not tested", "", *lines])
