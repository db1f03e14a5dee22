"""`MODEL.md`: what a saved learner is, for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pdcl.lifelong.entry import REBASED, decided, moved
from pdcl.printable import counted, for_markdown

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def card(learner: Learner) -> str:
    """What it learned and when, limits, accuracies, and what memory holds by task and class."""
    spec = learner.spec
    assert spec is not None
    size = sum(p.numel() for p in learner.model.parameters())
    about = [
        f"# A model that learned {counted(learner.tasks_learned, 'task')}",
        f"Method {type(learner).__name__}, network {type(learner.model).__name__} with {size:,} parameters, "
        f"inputs {spec.inputs()}, {spec.outputs} outputs.",
        f"Classes: {', '.join(map(for_markdown, spec.labels)) or '–'}",
        "## Tasks",
        *_tasks(learner),
        *_limits(learner),
        "## Memory",
        *_memory(learner),
        *_audit(learner),
        "## Files",
        "`network.safetensors`: the weights, for torch alone. `memory.safetensors`: stored samples. "
        "`seen.safetensors`: a keyed hash of every sample ever learned. Load all of it with `pdcl.load`.",
    ]
    return "\n\n".join(about) + "\n"


def _tasks(learner: Learner) -> list[str]:
    rows = [
        "| task | name | when (UTC) | | samples | score when learned |",
        "|---|---|---|---|---|---|",
    ]
    for entry in learner.lineage.entries:
        name, score = for_markdown(entry["name"]), _number(entry["result"].get("test"))
        told = map(for_markdown, (entry["when"], entry["how"], entry["samples"] or "–"))
        task = for_markdown(entry["task"]) if name else "–"
        rows.append("| " + " | ".join([task, name or "–", *told, score]) + " |")
    return ["\n".join(rows), *_decisions(learner), *_changes(learner)]


def _decisions(learner: Learner) -> list[str]:
    """Promotions, refusals, overrides, rollbacks and erasures, in the order of time."""
    told = [
        f"- {for_markdown(entry['when'])} {for_markdown(entry['name'] or entry['how'])}: {for_markdown(said)}"
        for entry in learner.lineage.entries
        if (said := decided(entry))
    ]
    return ["\n".join(["Decisions, in the order of time:", "", *told])] if told else []


def _changes(learner: Learner) -> list[str]:
    """References that were moved, with the limit before and after."""
    found = [entry for entry in learner.lineage.entries if entry["how"] == REBASED]
    return [f"{for_markdown(entry['name'])} was rebased: {for_markdown(moved(entry['result']))}." for entry in found]


def _limits(learner: Learner) -> list[str]:
    """The newest table of limits; a model that was saved before there were tables shows its tolerances."""
    table = learner.lineage.promises
    if table is not None:
        return ["## Limits", "As measured after the newest task.", table.markdown()]
    report = learner.report()
    if not report.has_tolerances:
        return []
    names = [for_markdown(entry["name"]) for entry in learner.lineage.tasks]
    rows = [
        f"| {name} | {_value(limit, unit)} |"
        for name, limit, unit in zip(names, report.tolerances, report.units, strict=False)
    ]
    return ["## Limits", "\n".join(["| task | at most |", "|---|---|", *rows])]


def _value(value: float | None, unit: str) -> str:
    """A number in its unit; – where there is no limit."""
    if value is None or value != value:
        return "–"
    return f"{100 * value:.1f} % error" if unit == "error" else f"a loss of {value:.3g}"


def _memory(learner: Learner) -> list[str]:
    store, spec = learner.store, learner.spec
    assert spec is not None
    if store is None or not len(store):
        return ["None."]
    if spec.kind != "classification":
        return [f"{counted(len(store), 'sample')}: {store.counts(learner.tasks_learned)} by task."]
    held = Counter(zip(store["task"].tolist(), store["y"].tolist(), strict=True))
    rows = ["| task | class | samples |", "|---|---|---|"]
    rows += [f"| {task} | {for_markdown(spec.labels[c])} | {count} |" for (task, c), count in sorted(held.items())]
    return [
        f"{counted(len(store), 'sample')}, at most {learner.store.bound}." if learner.store else "",
        "\n".join(rows),
    ]


def _audit(learner: Learner) -> list[str]:
    """What was set aside for the gate, beside memory: never trained on, on a budget of its own."""
    asides = [(entry["name"], entry["result"].get("audit")) for entry in learner.lineage.entries]
    rows = [
        f"| {for_markdown(name)} | {each['samples']} | {100 * each['certifies']:.2g} % |"
        for name, each in asides
        if each
    ]
    if not rows:
        return []
    last = next(each for _, each in reversed(asides) if each)
    bound = "" if last["budget"] is None else f", at most {last['budget']}"
    head = ["| task | samples | certifies at best an error rate of |", "|---|---|---|"]
    return [
        f"Set aside as audit data in {for_markdown(last['place'])}: {last['total']} samples{bound}.",
        "\n".join(head + rows),
    ]


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}"
