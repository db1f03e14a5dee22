"""Tables and pictures of what `limits_kept.py` has measured so far.

python benchmarks/evidence/limits_page.py runs/limits                  all tables, as Markdown
python benchmarks/evidence/limits_page.py runs/limits --figures DIR    the pictures
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from limits_kept import references_of, scenarios

Rows = list[dict[str, Any]]
Judged = dict[tuple[str, str, str], dict[int, dict[str, float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--figures", type=Path)
    asked = parser.parse_args()
    rows: Rows = [json.loads(line) for line in (asked.runs / "results.jsonl").read_text().splitlines()]
    if asked.figures is not None:
        draw(rows, asked.figures)
        return
    for title, made in (
        ("accuracy", accuracy),
        ("all limits", pooled),
        ("limits", limits_table),
        ("verdicts", verdicts),
    ):
        print(f"{title}\n\n{made(rows)}\n")


def held_to(row: dict[str, Any], limits: list[float]) -> dict[str, float]:
    """Mean and worst excess over limits in points, the share kept, the error of new tasks."""
    excess = [100 * max(0.0, error - limit) for error, limit in zip(row["errors"], limits, strict=True)][:-1]
    kept = statistics.mean(each == 0 for each in excess)
    return {"mean": statistics.mean(excess), "worst": max(excess), "kept": kept, "new": 100 * row["new"]}


def judged(rows: Rows) -> Judged:
    """By stream, scenario and method: what `held_to` says, by seed."""
    found: Judged = defaultdict(dict)
    for stream in sorted({row["stream"] for row in rows}):
        own = [row for row in rows if row["stream"] == stream and row["kind"] != "reference"]
        for scenario, limits in scenarios(references_of(rows, stream)):
            for row in own:
                if row.get("scenario", scenario) == scenario:
                    found[stream, scenario, row["method"]][row["seed"]] = held_to(row, limits)
    return found


def limits_table(rows: Rows) -> str:
    """Mean excess with its difference from `even`, worst excess, share of limits kept, error of new tasks."""
    lines = [
        "| stream | limits | method | seeds | mean excess | worst | kept | new-task error | − even (paired 95 %) |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    results = judged(rows)
    for (stream, scenario, method), runs in sorted(results.items()):
        even = results.get((stream, scenario, "even"), {})
        gaps = [run["mean"] - even[seed]["mean"] for seed, run in runs.items() if seed in even]
        cells = [
            f"{statistics.mean(run[name] for run in runs.values()):.2f}" for name in ("mean", "worst", "kept", "new")
        ]
        paired = "" if method == "even" or len(gaps) < 2 else interval(gaps)
        lines.append(f"| {stream} | {scenario} | {method} | {len(runs)} | {' | '.join(cells)} | {paired} |")
    return "\n".join(lines)


def pooled(rows: Rows) -> str:
    """The primary endpoint: mean excess over all settings of limits that a method ran, against `even`'s in the same
    settings. p: paired t over seeds, by Holm's method for all rows of a stream."""
    results, lines = judged(rows), ["| stream | method | seeds | settings | mean excess | even's | − even | p (Holm) |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for stream in sorted({key[0] for key in results}):
        found = []
        for method in sorted({key[2] for key in results if key[0] == stream} - {"even"}):
            settings = [key[1] for key in results if (key[0], key[2]) == (stream, method)]
            runs = [(results[stream, each, method], results[stream, each, "even"]) for each in settings]
            seeds = set.intersection(*(set(own) & set(even) for own, even in runs)) if runs else set()
            if len(seeds) > 1:
                means = [[statistics.mean(side[seed]["mean"] for side in sides) for seed in sorted(seeds)]
                         for sides in zip(*runs, strict=True)]  # fmt: skip
                found.append((method, len(seeds), len(settings), *means))
        gaps = [[own - even for own, even in zip(each[3], each[4], strict=True)] for each in found]
        for (method, seeds, settings, own, even), gap, p in zip(found, gaps, holm(gaps), strict=True):
            cells = f"{statistics.mean(own):.2f} | {statistics.mean(even):.2f} | {interval(gap)} | {p:.3f}"
            lines.append(f"| {stream} | {method} | {seeds} | {settings} | {cells} |")
    return "\n".join(lines)


def holm(samples: list[list[float]]) -> list[float]:
    """p of a mean of 0 for each sample (Student, two-sided), adjusted so that all hold together."""
    from scipy.stats import ttest_1samp

    each = [float(ttest_1samp(sample, 0.0).pvalue) if len(set(sample)) > 1 else 1.0 for sample in samples]
    adjusted, largest = [1.0] * len(each), 0.0
    for rank, place in enumerate(sorted(range(len(each)), key=each.__getitem__)):
        largest = adjusted[place] = min(1.0, max(largest, (len(each) - rank) * each[place]))
    return adjusted


def accuracy(rows: Rows) -> str:
    """Mean accuracy at the stream's end and right after learning, and the paired difference even − method."""
    lines = ["| stream | method | seeds | mean accuracy | right after learning | even − it (paired 95 %) |"]
    lines.append("|---|---|---|---|---|---|")
    free = [row for row in rows if row["kind"] == "free"]
    for stream, method in sorted({(row["stream"], row["method"]) for row in free}):
        own, even = (
            {row["seed"]: 100 - 100 * statistics.mean(row["errors"]) for row in free
             if (row["stream"], row["method"]) == (stream, name)}
            for name in (method, "even")
        )  # fmt: skip
        new = statistics.mean(
            100 - 100 * row["new"] for row in free if (row["stream"], row["method"]) == (stream, method)
        )
        gaps = [even[seed] - own[seed] for seed in own if seed in even]
        paired = "" if method == "even" or len(gaps) < 2 else interval(gaps)
        mean = statistics.mean(own.values())
        lines.append(f"| {stream} | {method} | {len(own)} | {mean:.1f} | {new:.1f} | {paired} |")
    return "\n".join(lines)


def verdicts(rows: Rows) -> str:
    """What the tables of promises said, against test data: how often an interval holds the test error, and so on."""
    names = ("stream", "method", "rows", "witnesses a task", "intervals that hold the test error", "kept", "false kept")
    heads = [*names, "BROKEN", "false BROKEN", "undecided"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "limited" and row["said"]:
            groups[row["stream"], row["method"]] += _said(row, references_of(rows, row["stream"]))
    for (stream, method), said in sorted(groups.items()):
        seen = [each for each in said if each["samples"]]
        if not seen:
            continue
        kept, broken = ([each for each in said if each["verdict"] == name] for name in ("kept", "BROKEN"))
        numbers = (
            len(said),
            f"{statistics.mean(each['samples'] for each in said):.0f}",
            f"{sum(each['low'] <= each['error'] <= each['high'] for each in seen)} of {len(seen)}",
            len(kept),
            sum(each["error"] > each["limit"] for each in kept),
            len(broken),
            sum(each["error"] <= each["limit"] for each in broken),
            len(said) - len(kept) - len(broken),
        )
        lines.append(f"| {stream} | {method} | {' | '.join(str(number) for number in numbers)} |")
    return "\n".join(lines)


def _said(row: dict[str, Any], references: list[float]) -> list[dict[str, Any]]:
    limits = dict(scenarios(references))[row["scenario"]]
    names = ("verdict", "samples", "low", "high")
    return [
        dict(zip(names, said, strict=True)) | {"error": error, "limit": limit}
        for said, error, limit in zip(row["said"].values(), row["errors"], limits, strict=False)
        if isinstance(said, list)
    ]


def interval(values: list[float]) -> str:
    """Mean and Student's 95 % interval."""
    from scipy.stats import t

    half = t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.mean(values)
    return f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})"


def draw(rows: Rows, place: Path) -> None:
    """Excess against new-task error with the rivals' cloud, a task's own error against its stated limit, and what
    witnesses said of an error against what it is on test data."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    place.mkdir(parents=True, exist_ok=True)
    streams = sorted({row["stream"] for row in rows if row["kind"] == "limited"})
    witnessed = [stream for stream in streams if any(_witnessed(rows, stream))]
    for name, each, own, height in (
        ("limits_excess.png", _cloud, streams, 3.2),
        ("limits_response.png", _response, streams, 3.0),
        ("limits_witnesses.png", _witnesses, witnessed, 3.2),
    ):
        figure, axes = plt.subplots(1, len(own), figsize=(3.1 * len(own), height), squeeze=False)
        for axis, stream in zip(axes[0], own, strict=True):
            each(axis, rows, stream)
            axis.set_title(stream)
        named = {
            label: handle for axis in axes[0] for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        figure.legend(named.values(), named.keys(), fontsize=7, ncols=len(named), loc="lower center")
        figure.tight_layout(rect=(0, 0.06, 1, 1))
        figure.savefig(place / name, dpi=150)


def _cloud(axis: Any, rows: Rows, stream: str) -> None:
    marks = {"pdcl": "*", "even": "o", "derpp": "s", "er": "^", "er-ring": "v", "er-ace": "D"}
    results = judged(rows)
    for method, mark in marks.items():
        found = [runs for key, runs in results.items() if key[0] == stream and key[2] == method and "strict" in key[1]]
        runs = [run for each in found for run in each.values()]
        if runs:
            x, y = statistics.mean(run["new"] for run in runs), statistics.mean(run["mean"] for run in runs)
            axis.plot(x, y, mark, label=method, markersize=10 if method == "pdcl" else 6)
    axis.set_xlabel("error of new tasks, %")
    axis.set_ylabel("mean excess, points (one strict task)")
    axis.set_ylim(bottom=0)


def _response(axis: Any, rows: Rows, stream: str) -> None:
    """The middle task's own test error, by what was stated for it: r − 10, r − 2, r + 10."""
    references = references_of(rows, stream)
    middle = (len(references) - 1) // 2
    stated = {"impossible": -10, f"strict {middle + 1}": -2, "strict 1": 10}
    for method in ("pdcl", "even"):
        points = []
        for scenario, offset in stated.items():
            own = [
                100 * row["errors"][middle]
                for row in rows
                if row["stream"] == stream and row.get("method") == method
                if row.get("scenario", scenario) == scenario
            ]
            if own:
                spread = statistics.stdev(own) / math.sqrt(len(own)) if len(own) > 1 else 0.0
                points.append((offset, statistics.mean(own), spread))
        if points:
            x, y, spread = zip(*points, strict=True)
            style = {"marker": "o"} if method == "pdcl" else {"marker": "s", "linestyle": "--"}
            axis.errorbar(x, y, spread, capsize=3, label=method, **style)
    axis.set_xlabel("stated limit − reference, points")
    axis.set_ylabel(f"test error of task {middle + 1}, %")


def _witnessed(rows: Rows, stream: str) -> list[dict[str, Any]]:
    """Rows of promises that witnesses judged, with the test error."""
    references = references_of(rows, stream)
    own = [row for row in rows if row["stream"] == stream and row["kind"] == "limited" and row["method"] == "pdcl"]
    return [each for row in own for each in _said(row, references) if each["samples"]]


def _witnesses(axis: Any, rows: Rows, stream: str) -> None:
    """Every interval over the test error that it should hold: those that cross the diagonal do."""
    found = _witnessed(rows, stream)
    errors, low, high = ([100 * each[name] for each in found] for name in ("error", "low", "high"))
    holds = [a <= error <= b for a, error, b in zip(low, errors, high, strict=True)]
    for wanted, colour, label in ((True, "tab:blue", "holds the test error"), (False, "tab:red", "doesn't")):
        lines = [k for k, held in enumerate(holds) if held is wanted]
        if lines:
            axis.vlines(
                *([each[k] for k in lines] for each in (errors, low, high)), colour, lw=0.8, alpha=0.5, label=label
            )
    most = max(errors) * 1.05
    axis.plot([0, most], [0, most], "k--", lw=1)
    axis.set_xlabel("test error of a past task, %")
    axis.set_ylabel("interval of its witnesses, %")


if __name__ == "__main__":
    main()
