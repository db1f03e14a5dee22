"""How often is a verdict on two logs wrong, and what does it catch? Simulated logs of 1,319 items (GSM8K's size).

    python benchmarks/evidence/gate_on_logs.py --out runs/gate-on-logs           minutes; resumable
    python benchmarks/evidence/gate_on_logs.py --out runs/gate-on-logs --table   tables and figure

Each cell has 2,000 verdicts or more, each from its own log. Wrong verdicts are counted where they are likeliest: the
true change is exactly the limit. Every cell is a line of results.jsonl.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom, norm

from pdcl.judging.bounds import mean_above, mean_below
from pdcl.judging.paired import change_above, signed_root

ITEMS, VERDICTS, LEVEL, LOOKS = 1319, 2000, 0.05, 12
ERROR = 0.3
Cell = dict[str, Any]


@cache
def refuted(newly_wrong: int, newly_right: int, limit: float, level: float) -> bool:
    """Whether "worse by more than the limit" is refuted."""
    return change_above(newly_wrong, newly_right, ITEMS, limit, level) <= level


@cache
def most(newly_right: int, limit: float, level: float) -> int:
    """The most newly wrong items that are refuted with so many newly right, −1: none. Found from a good guess."""
    every = np.arange(ITEMS - newly_right + 1.0)
    guess = int((signed_root(every, np.full_like(every, newly_right), ITEMS, limit) <= norm.ppf(level)).sum()) - 1
    while guess >= 0 and not refuted(guess, newly_right, limit, level):
        guess -= 1
    while guess < ITEMS - newly_right and refuted(guess + 1, newly_right, limit, level):
        guess += 1
    return guess


def counted(pairs: np.ndarray, limit: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    """PASS and FAIL of each (newly wrong, newly right), [n, 2]."""
    wrong, right = pairs.T
    passed = wrong <= np.asarray([most(c, limit, level) for c in right.tolist()])
    failed = right <= np.asarray([most(b, -limit, level) for b in wrong.tolist()])
    return passed, failed


def drawn(random: np.random.Generator, changed: float, drop: float, verdicts: int) -> np.ndarray:
    shares = [(changed + drop) / 2, (changed - drop) / 2, 1 - changed]
    return random.multinomial(ITEMS, shares, verdicts)[:, :2]


def scores(random: np.random.Generator, drop: float, verdicts: int) -> np.ndarray:
    """Changes of scores in [0, 1], with this mean: [verdicts, items]."""
    old, new = random.beta(4, 2, (2, verdicts, ITEMS))
    kept = random.random((verdicts, ITEMS)) < 0.8
    # Of the items that change, some lose all they had; so many that the mean drops by as much as it shall.
    lost = random.random((verdicts, ITEMS)) < drop / (2 / 3)
    return np.where(lost, old, np.where(kept, 0.0, old - new))


def answers(random: np.random.Generator, drop: float, verdicts: int, asked: int = 4) -> np.ndarray:
    """Changes of the mean over several answers an item."""
    p = random.beta(1.5, 1.5, (verdicts, ITEMS)) * 0.9 + 0.1
    return random.binomial(asked, p) / asked - random.binomial(asked, p * (1 - drop / 0.55)) / asked


def bet(changes: np.ndarray, limit: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    halved, at = (1 + changes) / 2, (1 + limit) / 2
    return mean_above(halved, at, level) <= level, mean_below(halved, at, level) <= level


def rates(passed: np.ndarray, failed: np.ndarray) -> Cell:
    return {"verdicts": len(passed), "pass": float(passed.mean()), "fail": float(failed.mean())}


def looked(found: list[tuple[np.ndarray, np.ndarray]]) -> Cell:
    """Wrong if any of the looks is."""
    return rates(*(np.any([each[k] for each in found], axis=0) for k in (0, 1)))


def betted(random: np.random.Generator, make: Callable[..., np.ndarray], level: float) -> tuple[np.ndarray, np.ndarray]:
    parts = [bet(make(random, 0.05, 250), 0.05, level) for _ in range(VERDICTS // 250)]
    return np.concatenate([p for p, _ in parts]), np.concatenate([f for _, f in parts])


def wrong(random: np.random.Generator, kind: str, changed: float, looks: int) -> Cell:
    """The true change is the limit, 5 points."""
    level = LEVEL / looks
    if kind == "right or wrong":
        return looked([counted(drawn(random, changed, 0.05, VERDICTS), 0.05, level) for _ in range(looks)])
    make = {"scores": scores, "four answers an item": answers}[kind]
    return looked([betted(random, make, level) for _ in range(looks)])


def caught(random: np.random.Generator, changed: float, drop: float) -> Cell:
    """Limit +2pt, by three rules: FAIL of the gate, the mean drops by more than 5 points, an unpaired test."""
    pairs = drawn(random, changed, drop, VERDICTS)
    passed, failed = counted(pairs, 0.02, LEVEL)
    seen = (pairs[:, 0] - pairs[:, 1]) / ITEMS
    old = random.binomial(ITEMS, ERROR, VERDICTS) / ITEMS
    new = np.clip(old + seen, 0, 1)
    spread = np.sqrt((old * (1 - old) + new * (1 - new)) / ITEMS)
    unpaired = (seen - 0.02) / spread > norm.isf(LEVEL)
    unpaired_pass = (seen - 0.02) / spread < norm.ppf(LEVEL)
    found = {"mean_rule": seen > 0.05, "unpaired_fail": unpaired, "unpaired_pass": unpaired_pass}
    return rates(passed, failed) | {name: float(np.mean(each)) for name, each in found.items()}


def flips(random: np.random.Generator, changed: float) -> Cell:
    """The same model twice, compared with itself at +2pt, and then once more: do PASS and FAIL change places?"""
    one, two = (drawn(random, changed, 0.0, VERDICTS) for _ in range(2))
    first, second = counted(one, 0.02, LEVEL), counted(two, 0.02, LEVEL)
    opposite = (first[0] & second[1]) | (first[1] & second[0])
    means = [(each[:, 0] - each[:, 1]) / ITEMS > 0.02 for each in (one, two)]
    return rates(*first) | {"opposite": float(opposite.mean()), "mean_rule": float((means[0] != means[1]).mean())}


def cells() -> dict[str, Callable[[np.random.Generator], Cell]]:
    every: dict[str, Callable[[np.random.Generator], Cell]] = {}
    for looks in (1, LOOKS):
        for changed in (0.05, 0.1, 0.2, 0.4):
            every[f"wrong|right or wrong, {100 * changed:g} % change|{looks}"] = (
                lambda random, q=changed, n=looks: wrong(random, "right or wrong", q, n)
            )  # fmt: skip
        for kind in ("scores", "four answers an item"):
            every[f"wrong|{kind}|{looks}"] = lambda random, k=kind, n=looks: wrong(random, k, 0.0, n)
    for changed in (0.05, 0.1, 0.2, 0.4):
        for drop in (0.05, 0.0):
            every[f"caught|{changed}|{drop}"] = lambda random, q=changed, d=drop: caught(random, q, d)
        every[f"flips|{changed}"] = lambda random, q=changed: flips(random, q)
    return every


def carry_out(place: Path, known: dict[str, Cell]) -> None:
    for number, (name, make) in enumerate(cells().items()):
        if name not in known:
            line = {"cell": name, **make(np.random.default_rng(number))}
            with place.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, flush=True)


def bound(verdicts: int, rate: float = LEVEL) -> float:
    """The share of wrong verdicts that a true rate exceeds by chance once in a thousand."""
    return float(binom.isf(0.001, verdicts, rate)) / verdicts


def tables(known: dict[str, Cell]) -> str:
    p = lambda share: f"{100 * share:.1f} %"  # noqa: E731
    lines = ["| log | looks | wrong PASS | wrong FAIL | verdicts | bound |", "|---|---|---|---|---|---|"]
    for name, cell in known.items():
        kind, *rest = name.split("|")
        if kind == "wrong":
            words = [*rest, p(cell["pass"]), p(cell["fail"]), f"{cell['verdicts']:,}", p(bound(cell["verdicts"]))]
            lines.append(f"| {' | '.join(words)} |")
    lines += [
        "",
        "| items that change | gate: FAIL | mean drops by more than 5 | unpaired test | no regression, gate: FAIL |",
    ]
    lines[-1] += " no regression, gate: PASS | unpaired: PASS |"
    lines += ["|---" * 7 + "|"]
    for changed in (0.05, 0.1, 0.2, 0.4):
        bad, good = known[f"caught|{changed}|0.05"], known[f"caught|{changed}|0.0"]
        words = [bad["fail"], bad["mean_rule"], bad["unpaired_fail"], good["fail"], good["pass"], good["unpaired_pass"]]
        lines.append(f"| {p(changed)} | {' | '.join(map(p, words))} |")
    lines += ["", "| items that flip | FAIL of the same model | PASS and FAIL swap | rule of the mean: other verdict |"]
    lines += ["|---|---|---|---|"]
    for changed in (0.05, 0.1, 0.2, 0.4):
        cell = known[f"flips|{changed}"]
        lines.append(f"| {p(changed)} | {p(cell['fail'])} | {p(cell['opposite'])} | {p(cell['mean_rule'])} |")
    return "\n".join(lines)


def figure(known: dict[str, Cell], place: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shares, rules = (0.05, 0.1, 0.2, 0.4), ("fail", "unpaired_fail", "mean_rule")
    names = ("pdcl gate (paired)", "two-sample test (unpaired)", "rule: mean drops by more than 5 points")
    shown, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for k, (rule, name, grey) in enumerate(zip(rules, names, ("0.15", "0.5", "0.8"), strict=True)):
        values = [100 * known[f"caught|{q}|0.05"][rule] for q in shares]
        bars = axes.bar(np.arange(4) + 0.27 * (k - 1), values, 0.25, color=grey, label=name)
        axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.set_xticks(range(4), [f"{100 * q:g} %" for q in shares])
    axes.set(xlabel="answers that change between the two models", ylabel="caught, %", ylim=(0, 118))
    axes.set_title("The new model is 5 points worse (2 allowed, 1,319 items): how often is it stopped?", fontsize=10)
    axes.legend(fontsize=8, ncols=3, frameon=False, loc="upper center")
    axes.spines[["top", "right"]].set_visible(False)
    place.parent.mkdir(parents=True, exist_ok=True)
    shown.savefig(place, dpi=150)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path, required=True)
    asked.add_argument("--table", action="store_true")
    options = asked.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    book = options.out / "results.jsonl"
    lines = map(json.loads, book.read_text().splitlines()) if book.exists() else ()
    known = {line.pop("cell"): line for line in lines}
    if not options.table:
        carry_out(book, known)
        return
    print(tables(known))
    figure(known, Path(__file__).parents[2] / "docs" / "results" / "gate" / "caught.png")


if __name__ == "__main__":
    main()
