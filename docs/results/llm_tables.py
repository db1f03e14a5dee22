"""Tables and the figure of docs/results/llm.md, from docs/results/data/llm.jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from scipy.stats import t as student

HERE = Path(__file__).resolve().parent
DATA = HERE / "data/llm.jsonl"
OLD = ("code", "shakespeare", "manual")
Row = dict[str, Any]
ROWS: list[Row] = []
PARTS = {
    "limits": "limits, moving duals",
    "frozen": "frozen at the last duals",
    "mean": "frozen at their mean",
    "beside": "beside the batch",
    "again": "another seed",
    "self": "self-made text",
}


def read() -> None:
    ROWS[:] = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


def of(method: str, seed: int | None = None) -> list[Row]:
    return [row for row in ROWS if row["run"]["method"] == method and seed in (None, row["run"]["seed"])]


# What a run reached.


def over(row: Row, stated: Iterable[float | None]) -> list[float]:
    """Reached less stated, of every limit."""
    return [row["reached"][name] - limit for name, limit in zip(OLD, stated, strict=True) if limit is not None]


def beyond(row: Row, stated: Iterable[float | None]) -> list[bool]:
    """Whether each limit is exceeded by more than noise."""
    pairs = [(name, limit) for name, limit in zip(OLD, stated, strict=True) if limit is not None]
    return [row["reached"][name] - limit > 2 * row["se"][name] for name, limit in pairs]


def keeps(row: Row, stated: Iterable[float | None]) -> bool:
    return not any(beyond(row, stated))


def bound(row: Row) -> list[bool]:
    """Which limits had a price at the end of the run with moving duals."""
    return [dual > 0 for dual in partner(row)["duals"]["last"]]


def settings() -> list[list[float | None]]:
    """As the study lists them: fewer limits first."""
    seen = {json.dumps(row["run"]["stated"]): row["run"]["stated"] for row in of("limits")}
    return sorted(seen.values(), key=lambda stated: sum(limit is not None for limit in stated))


def written(stated: Iterable[float | None]) -> str:
    return " · ".join("–" if limit is None else f"{limit:g}x" for limit in stated)


def shown(values: list[float], digits: int = 3) -> str:
    """A mean, and its 95 % interval over seeds."""
    if len(values) < 2:
        return f"{values[0]:.{digits}f}" if values else "–"
    half = student.ppf(0.975, len(values) - 1) * stdev(values) / len(values) ** 0.5
    return f"{fmean(values):.{digits}f} ± {half:.{digits}f}"


def by_seed(rows: list[Row], value: Any) -> list[float]:
    """A mean for each seed, of runs that have a value."""
    seeds = sorted({row["run"]["seed"] for row in rows})
    parts = [[v for row in rows if row["run"]["seed"] == seed for v in value(row)] for seed in seeds]
    return [fmean(part) for part in parts if part]


def table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *rows])


# The page, part by part.


def limits_kept(rows: list[Row]) -> tuple[int, int]:
    found = [each for row in rows for each in beyond(row, row["run"]["stated"])]
    return len(found) - sum(found), len(found)


def mixed_kept(share: float) -> tuple[int, int]:
    """Limits of all settings that this mix keeps, where a run with limits of the same seed is there."""
    found = []
    for row in of("limits"):
        for mix in of("mix", row["run"]["seed"]):
            if abs(sum(mix["run"]["shares"]) - share) < 1e-6:
                found += beyond(mix, row["run"]["stated"])
    return len(found) - sum(found), len(found)


def kill() -> str:
    ours, mixed = limits_kept(of("limits")), mixed_kept(0.01)
    verdict = "so mixing would do" if mixed[0] >= ours[0] else "so steering has its place"
    return (
        f"**Fixed mixing of 1 % old text keeps {mixed[0]} of {mixed[1]} limits within noise, stated limits keep "
        f"{ours[0]} of {ours[1]}**: {verdict}. (The criterion was stated first: if 1 % kept all limits equally well, "
        "this line would say so.)"
    )


def seeds() -> str:
    counts = {method: len({row["run"]["seed"] for row in of(method)}) for method in (*PARTS, "mix", "anchor")}
    runs = f"{len(ROWS)} runs"
    if len(set(counts.values())) == 1:
        return f"{runs}, {counts['mix']} seeds; intervals are of 95 % over seeds."
    listed = ", ".join(f"{method} {count}" for method, count in counts.items())
    return f"{runs}; seeds of each method: {listed}. Intervals are of 95 % over seeds."


def misses(rows: list[Row]) -> list[list[float]]:
    """Signed misses of limits with a price at the end, of each run."""
    return [
        [miss for miss, priced in zip(over(row, row["run"]["stated"]), bound(row), strict=True) if priced]
        for row in rows
    ]


def short() -> str:
    rows = of("limits")
    three = [row for row in rows if None not in row["run"]["stated"]]
    kept, total = limits_kept(three)
    flat = [miss for part in misses(rows) for miss in part]
    spread = (fmean(m * m for m in flat)) ** 0.5
    strictly = [miss <= 0 for row in rows for miss in over(row, row["run"]["stated"])]
    regrets = [value for stated in settings() for value in regrets_of(stated, with_grid=False)]
    everywhere = [value for stated in settings() for value in regrets_of(stated, with_grid=True)]
    gridded = [value for stated in settings() if None not in stated for value in regrets_of(stated, with_grid=True)]
    lines = [
        f"- **Three limits in one run**: {kept} of {total} kept within noise. Of all {len(strictly)} limits "
        f"{sum(strictly)} are kept to the letter.",
        f"- **Miss** of limits that have a price at the end: {fmean(flat):+.3f} on average (in factors of the loss: "
        f"{spread:.3f} root mean square over {len(flat)} limits). The aim is half a standard error of a look inside.",
        f"- **Regret** against the best of seven fixed mixes: {percent(regrets)} on average; with a grid of shares "
        f"for each corpus, three limits: {percent(gridded)}, at worst {100 * max(everywhere):+.1f} % of all "
        f"fifteen. The goal was at most 1 %: {'met' if max(everywhere) <= 0.01 else 'not met'}.",
        f"- **Moving duals against frozen ones**: {compared('frozen')}; {compared('mean')}.",
    ]
    return "\n".join(lines)


def percent(values: list[float]) -> str:
    return f"{100 * fmean(values):+.1f} % ({len(values)} runs)" if values else "not run"


def compared(method: str) -> str:
    """Kept limits and the new text's loss, paired with the moving run of the same setting and seed."""
    pairs = [(row, partner(row)) for row in of(method)]
    ours, theirs = limits_kept([b for _, b in pairs]), limits_kept([a for a, _ in pairs])
    gain = by_seed([a for a, _ in pairs], lambda row: [row["reached"]["new"] - partner(row)["reached"]["new"]])
    return (
        f"{PARTS[method]} {theirs[0]} of {theirs[1]} limits kept, moving {ours[0]}; new text's loss of the frozen run "
        f"{'+' if fmean(gain) >= 0 else ''}{shown(gain)}"
    )


def partner(row: Row) -> Row:
    """The run with moving duals of the same setting and seed."""
    same = [r for r in of("limits", row["run"]["seed"]) if r["run"]["stated"] == row["run"]["stated"]]
    return same[0]


def stated() -> str:
    lines = []
    for setting in settings():
        rows = [row for row in of("limits") if row["run"]["stated"] == setting]
        cells = []
        for name, limit in zip(OLD, setting, strict=True):
            cell = shown([row["reached"][name] for row in rows])
            noise = 2 * fmean(row["se"][name] for row in rows) / len(rows) ** 0.5
            broken = limit is not None and fmean(row["reached"][name] for row in rows) - limit > noise
            cells.append(f"**{cell}**" if broken else cell)
        lines.append([written(setting), *cells, shown([row["reached"]["new"] for row in rows])])
    return table(["stated: code · Shakespeare · manual", "code", "Shakespeare", "manual", "new text's loss"], lines)


def mixes() -> str:
    lines = []
    for share in sorted({round(sum(row["run"]["shares"]), 6) for row in of("mix")}):
        rows = [row for row in of("mix") if abs(sum(row["run"]["shares"]) - share) < 1e-6]
        cells = [shown([row["reached"][name] for row in rows]) for name in (*OLD, "new")]
        kept = sum(all(keeps(row, setting) for row in rows) for setting in settings())
        lines.append([f"{share:.0%}", *cells, f"{kept} of {len(settings())}"])
    return table(["old text", "code", "Shakespeare", "manual", "new text's loss", "settings kept"], lines)


def regrets_of(setting: list[float | None], with_grid: bool) -> list[float]:
    """(ours − best) / best of the new text's loss, of each seed where a rival keeps the limits."""
    found = []
    for row in of("limits"):
        seed = row["run"]["seed"]
        if row["run"]["stated"] != setting or (with_grid and seed):
            continue
        rivals = of("mix", seed) + (of("grid") if with_grid else [])
        losses = [each["reached"]["new"] for each in rivals if keeps(each, setting)]
        if losses:
            found.append(row["reached"]["new"] / min(losses) - 1)
    return found


def regret() -> str:
    lines = []
    for setting in settings():
        plain, gridded = regrets_of(setting, False), regrets_of(setting, True)
        cells = [shown([100 * value for value in values], 1) + " %" if values else "–" for values in (plain, gridded)]
        lines.append([written(setting), *cells])
    return table(["stated", "against seven mixes", "and the grid"], lines)


def parts() -> str:
    lines = []
    for method, name in PARTS.items():
        rows = [row for row in of(method) if None not in row["run"]["stated"]]
        if not rows:
            continue
        kept, total = limits_kept(rows)
        miss = by_seed(rows, lambda row: misses([row])[0])
        spread = fmean(m * m for part in misses(rows) for m in part) ** 0.5
        new = by_seed(rows, lambda row: [row["reached"]["new"]])
        lines.append([name, f"{kept} of {total}", shown(miss), f"{spread:.3f}", shown(new)])
    heads = [
        "",
        "limits kept within noise",
        "mean signed miss of limits with a price",
        "root mean square",
        "new text's loss",
    ]
    return table(heads, lines)


def words() -> str:
    """Same limits, two seeds: how far two runs differ where nothing but chance does."""
    twins = [(row, partner(row)) for row in of("again")]
    apart = [abs(a["reached"][name] - b["reached"][name]) for a, b in twins for name in OLD]
    new = [abs(a["reached"]["new"] - b["reached"]["new"]) for a, b in twins]
    lines = []
    if twins:
        lines.append(
            f"Two runs that differ in the seed alone are {fmean(apart):.3f} apart in what they reach and "
            f"{fmean(new):.3f} in the new text's loss: smaller differences between methods mean nothing."
        )
    own = of("self")
    if own:
        worst = {name: [row["reached"][name] - row["run"]["stated"][i] for row in own] for i, name in enumerate(OLD)}
        told = ", ".join(f"{name} {fmean(values):+.3f}" for name, values in worst.items())
        kept, total = limits_kept(own)
        lines.append(
            f"\nOn text of its own the model keeps {kept} of {total} limits of real text within noise; reached less "
            f"stated, on real text: {told}. A model of this size writes words that don't exist: a limit on what it "
            "writes is a limit on how far it moves there, not on what people wrote."
        )
    return "\n".join(lines)


def anchors() -> str:
    lines = []
    for weight in sorted({row["run"]["weight"] for row in of("anchor")}):
        rows = [row for row in of("anchor") if row["run"]["weight"] == weight]
        cells = [shown([row["reached"][name] for row in rows]) for name in (*OLD, "new")]
        lines.append([f"{weight:g}", *cells])
    return table(["weight", "code", "Shakespeare", "manual", "new text's loss"], lines)


def costs() -> str:
    plain = {row["run"]["seed"]: row["cpu"] for row in of("mix") if not sum(row["run"]["shares"])}
    kinds: dict[str, list[float]] = {}
    for row in ROWS:
        run = row["run"]
        if run["seed"] in plain:
            count = sum(limit is not None for limit in run["stated"]) if "stated" in run else 0
            name = f"limits, K = {count}" if run["method"] == "limits" else PARTS.get(run["method"], run["method"])
            kinds.setdefault(name, []).append(row["cpu"] / plain[run["seed"]])
    return table(["", "median ratio", "runs"], [[k, f"{median(v):.2f}", str(len(v))] for k, v in sorted(kinds.items())])


# The figure.


def figure() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    picture, (left, right) = plt.subplots(1, 2, figsize=(10, 4.3))
    colours = {"limits": "#0b4f7d", "frozen": "#7aa6c2", "self": "#b35900"}
    for method, colour in colours.items():
        reached: dict[float, list[float]] = {}
        for row in of(method):
            for name, limit in zip(OLD, row["run"]["stated"], strict=True):
                if limit is not None:
                    reached.setdefault(limit, []).append(row["reached"][name])
                    left.plot(limit, row["reached"][name], ".", color=colour, alpha=0.35, markersize=4)
        at = sorted(reached)
        left.plot(at, [fmean(reached[x]) for x in at], color=colour, label=PARTS[method], linewidth=1.8)
    ends = [1.01, 1.21]
    left.plot(ends, ends, color="#999999", linewidth=0.8, linestyle=":", label="stated")
    for share, style in ((0.01, "--"), (0.1, "-.")):
        rows = [row for row in of("mix") if abs(sum(row["run"]["shares"]) - share) < 1e-6]
        level = fmean(row["reached"][name] for row in rows for name in OLD)
        left.plot(ends, [level] * 2, color="#666666", linewidth=1, linestyle=style, label=f"{share:.0%} mixed in")
    left.set(xlabel="stated: factor of the loss before", ylabel="reached on test text")
    left.set_ylim(top=1.38)
    left.legend(fontsize=8, frameon=False, loc="upper left")
    _front(right)
    picture.tight_layout()
    picture.savefig(HERE.parent / "images/llm.png", dpi=130)


def _front(axis: Any) -> None:
    """The new text's loss against the mean factor of the old ones."""

    def points(rows: list[Row]) -> tuple[list[float], list[float]]:
        return [fmean(row["reached"][name] for name in OLD) for row in rows], [row["reached"]["new"] for row in rows]

    axis.plot(*points(of("grid")), ".", color="#bbbbbb", label="grid of shares")
    for method, key, colour in (("mix", "shares", "#444444"), ("anchor", "weight", "#8a6d3b")):
        groups: dict[str, list[Row]] = {}
        for row in of(method):
            groups.setdefault(json.dumps(row["run"][key]), []).append(row)
        means = [[fmean(values) for values in points(rows)] for rows in groups.values()]
        xs, ys = zip(*sorted(means), strict=True) if means else ((), ())
        name = "fixed mixes" if method == "mix" else "anchor"
        axis.plot(xs, ys, "o-", color=colour, markersize=4, linewidth=1, label=name)
    marks = {"limits": "s#0b4f7d", "frozen": "x#7aa6c2", "beside": "^#3b8a4f", "self": "D#b35900"}
    for method, (mark, *colours) in marks.items():
        three = [row for row in of(method) if None not in row["run"]["stated"]]
        axis.plot(
            *points(three),
            mark,
            color="".join(colours),
            markersize=4,
            label=f"{PARTS[method]}, K = 3",
            linestyle="none",
        )
    axis.set(xlabel="old texts: mean factor of the loss before", ylabel="new text's loss")
    axis.legend(fontsize=8, frameon=False)
