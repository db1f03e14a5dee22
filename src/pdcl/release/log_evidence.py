"""Evidence of a verdict on two logs: the scores of every item, the plan, the looks, and what an auditor asks for.

verdict.json, verdict.md, junit.xml   the verdict
outcomes.npz                          task, id, error before and after of each item, and which row each belongs to
release.json                          use, person, change, protocol, criteria, impact, data, decision: docs/audits.md
ledger.jsonl, logs.json, limits.toml  the looks so far; sha256 of each log file; the plan
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pdcl.limits.limits import as_limits
from pdcl.logs.log import digest
from pdcl.release.changes import change_of
from pdcl.release.deciding import PASS, UNDECIDED, Row, decide
from pdcl.release.estimates import estimate_of
from pdcl.release.folder import BadEvidence, check_place, json_bytes, packed, write_folder
from pdcl.release.ledger import Ledger
from pdcl.release.outcome import Verdict
from pdcl.release.output import as_json, as_junit, as_markdown
from pdcl.release.pairing import value_of
from pdcl.release.plan_file import Plan

if TYPE_CHECKING:
    from pdcl.release.pairing import Compared

__all__ = ["check_place", "recompute", "release_fields", "write_log_evidence"]


def write_log_evidence(case: Compared, verdict: Verdict, ledger: Ledger, plan: Plan | None, place: Path) -> Path:
    outcomes: dict[str, Any] = {
        "task": np.array([key[0] for key in case.keys]),
        "id": np.array([key[1] for key in case.keys]),
        "old": case.old,
        "new": case.new,
        "member": np.stack([mask for _, mask in case.made]),
    }
    if case.groups is not None:
        outcomes["clusters"] = np.unique(case.single(case.groups), return_inverse=True)[1]
    parts = {
        "verdict.json": as_json(verdict).encode(),
        "verdict.md": as_markdown(verdict).encode(),
        "junit.xml": as_junit(verdict).encode(),
        "outcomes.npz": packed(outcomes),
        "ledger.jsonl": ledger.text().encode(),
        "logs.json": json_bytes({"before": case.before.files, "after": case.after.files}),
        "release.json": json_bytes(release_fields(case, verdict, plan)),
    }
    if plan is not None:
        parts["limits.toml"] = plan.path.read_bytes()
    return write_folder(place, parts)


def release_fields(case: Compared, verdict: Verdict, plan: Plan | None) -> dict[str, Any]:
    """What was planned, how it was judged, what came out: the fields that docs/audits.md maps. null: not stated."""
    said = {} if plan is None else plan.content
    look = verdict.look
    return {
        "intended_use": said.get("intended_use"),
        "responsible": said.get("responsible"),
        "planned_modification": said.get("change"),
        "data": {"stated": said.get("data"), "items": len(case.keys), "sha256": verdict.question["audit"]},
        "protocol": {
            "methods": list(dict.fromkeys(row.method for row in verdict.rows)),
            "confidence": look.confidence,
            "looks": look.looks,
            "look": look.number,
            "plan_sha256": None if plan is None else plan.hash,
        },
        "acceptance_criteria": said.get("limits") or {"limits": verdict.question["limits"]},
        "impact": [row.as_json() for row in verdict.rows],
        "on_fail": said.get("on_fail"),
        "decision": verdict.verdict,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def recompute(verdict: dict[str, Any], held: dict[str, Any]) -> None:
    """Raise BadEvidence unless the scores of the items give this verdict."""
    limits, made = as_limits(verdict["question"]["limits"]), []
    keys = sorted([str(task), str(id)] for task, id in zip(held["task"], held["id"], strict=True))
    if digest(keys) != verdict["question"]["audit"]:
        raise BadEvidence("the items of outcomes.npz are not those of the verdict")
    for stated, mask in zip(verdict["rows"], held["member"], strict=True):
        new, old = held["new"][mask], held["old"][mask]
        who = held["clusters"][mask] if "clusters" in held else None
        column, _, value = stated["group"].partition("=")
        limit = limits.segments.get((column, value)) or limits.of(stated["group"], 0)
        if limit is None or stated["limit"] != value_of(limit):
            raise BadEvidence(f"{stated['group']} is judged by {stated['limit']:g}, not by its stated limit")
        estimate = change_of(new, old, who) if stated["criterion"] == "drop" else estimate_of(new, who)
        made.append(Row(stated["criterion"], stated["group"], stated["limit"], estimate, int(mask.sum())))
    again = decide(made, verdict["look"]["level"])
    open_ = verdict["question"]["unpaired"] and not verdict["question"]["drop"]
    expected = UNDECIDED if again.verdict == PASS and open_ else again.verdict
    same = [(row.verdict, round(row.estimate, 9), round(row.lower, 5)) for row in again.rows]
    said = [(row["verdict"], round(row["estimate"], 9), round(row["lower"], 5)) for row in verdict["rows"]]
    if same != said or expected != verdict["verdict"]:
        raise BadEvidence(f"the outcomes give {expected} with {same}, not {verdict['verdict']} with {said}")
