"""`MODEL.md`: what a saved learner is, for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pdcl.lifelong.learner import Learner


def card(learner: Learner) -> str:
    """What it learned and when, tolerances, accuracies, and what memory holds by task and class."""
    spec = learner.spec
    assert spec is not None
    size = sum(p.numel() for p in learner.model.parameters())
    about = [
        f"# A model that learned {learner.tasks_learned} tasks",
        f"Method {type(learner).__name__}, network {type(learner.model).__name__} with {size:,} parameters, "
        f"inputs {spec.inputs()}, {spec.outputs} outputs.",
        f"Classes: {', '.join(map(str, spec.labels)) or '–'}",
        "## Tasks",
        *_tasks(learner),
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
        "| task | name | when (UTC) | | samples | tolerance | score when learned |",
        "|---|---|---|---|---|---|---|",
    ]
    tolerances = learner.report().tolerances
    for entry in learner.lineage.entries:
        k = entry["task"]
        limit = _number(tolerances[k]) if k < len(tolerances) else "–"
        score = _number(entry["result"]["test"])
        name = str(entry["name"]).replace("|", "/")
        cells = [k, name, entry["when"], entry["how"], f"{entry['samples']:,}", limit, score]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    return ["\n".join(rows), *_infeasible(learner)]


def _infeasible(learner: Learner) -> list[str]:
    last = learner.lineage.entries[-1]["result"].get("over_tolerance", []) if learner.lineage.entries else []
    return [
        f"Task {each['task']} is over its tolerance: {_number(each['tolerance'])} was asked for, "
        f"{_number(each['reached'])} is what was reached."
        for each in last
    ]


def _memory(learner: Learner) -> list[str]:
    store, spec = learner.store, learner.spec
    assert spec is not None
    if store is None or not len(store):
        return ["None."]
    if spec.kind != "classification":
        return [f"{len(store)} samples: {store.counts(learner.tasks_learned)} by task."]
    held = Counter(zip(store["task"].tolist(), store["y"].tolist(), strict=True))
    rows = ["| task | class | samples |", "|---|---|---|"]
    rows += [f"| {task} | {spec.labels[c]} | {count} |" for (task, c), count in sorted(held.items())]
    return [f"{len(store)} samples, at most {learner.store.bound}." if learner.store else "", "\n".join(rows)]


def _audit(learner: Learner) -> list[str]:
    """What was set aside for the gate, beside memory: never trained on, on a budget of its own."""
    asides = [(entry["name"], entry["result"].get("audit")) for entry in learner.lineage.entries]
    rows = [
        f"| {str(name).replace('|', '/')} | {each['samples']} | {100 * each['certifies']:.2g} % |"
        for name, each in asides
        if each
    ]
    if not rows:
        return []
    last = next(each for _, each in reversed(asides) if each)
    bound = "" if last["budget"] is None else f", at most {last['budget']}"
    head = ["| task | samples | certifies at best an error rate of |", "|---|---|---|"]
    return [f"Set aside as audit data in `{last['place']}`: {last['total']} samples{bound}.", "\n".join(head + rows)]


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}"
