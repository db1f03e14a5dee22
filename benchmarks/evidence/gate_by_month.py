"""Is what `pdcl update --plan` says beforehand what happens? Twelve monthly updates with 750 new audit rows each.

    python benchmarks/evidence/gate_by_month.py --out runs/gate-by-month           some minutes; resumable
    python benchmarks/evidence/gate_by_month.py --out runs/gate-by-month --table   the table of docs/results/gate.md

MNIST in months of 4,500 rows, every digit in each; an MLP learns one after another, its memory holds 500 samples. The
first month is the model; eleven updates follow under one limit, and where the gate can't tell, the month is accepted by
hand, so that the next one follows. The plan is made on the day before, by a call that learns nothing and takes no look.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pdcl
from pdcl.release.ledger import Ledger
from pdcl.release.update_plan import plan_update
from pdcl.streams.data import everything

ROWS, AUDIT, LOOKS = 4500, 750, 12
LIMITS = ("+2pt", "+5pt")
WHY = "the simulation goes on"
Row = dict[str, Any]


def months(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    data = [everything(task.data) for task in pdcl.stream("mnist").tasks]
    x = np.concatenate([each.inputs.numpy() for each in data])
    y = np.concatenate([each.targets.numpy() for each in data])
    order = np.random.default_rng(seed).permutation(len(x))[: LOOKS * ROWS].reshape(LOOKS, ROWS)
    return [(x[rows], y[rows]) for rows in order]


def promised(line: str) -> float | None:
    """The share of changed answers up to which the plan says PASS; None: it can't pass."""
    if "can't let it pass" in line:
        return None
    found = re.search(r"fewer than ([\d.]+) %", line)
    return float(found[1]) / 100 if found else 1.0 if "nearly always" in line else 0.0


def lifetime(out: Path, limit: str, seed: int) -> list[Row]:
    place = out / f"{limit[1:]}-{seed}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    model, audit, found = place / "model", place / "audit", []
    first, *later = months(seed)
    learner = pdcl.PDCL("mlp:64", memory=500, seed=seed)
    learner.learn(*first, name="01", audit=str(audit), audit_share=AUDIT / ROWS, epochs=3)
    learner.save(model)
    for number, data in enumerate(later, 2):
        name = f"{number:02d}"
        asked = {"name": name, "audit": audit, "max_drop": limit, "looks": LOOKS, "audit_share": AUDIT / ROWS}
        plan = plan_update(model, data, **asked)
        evidence = place / "evidence" / name
        made = pdcl.update(
            model, data, **asked, epochs=3, accept_undecided=True, why=WHY, evidence=evidence, samples=False
        )
        assert made.verdict is not None
        with np.load(evidence / "outcomes.npz") as held:
            moved, division = held["error"] != held["old"], held["division"]
        for row in made.verdict.rows:
            if row.criterion != "drop":
                continue
            line = next(each for each in plan.splitlines() if each.startswith(f"  {row.group}, "))
            share = float(moved[division == row.group].mean())
            found.append({"limit": limit, "seed": seed, "month": name, "task": row.group, "planned": promised(line),
                          "changed": share, "drop": row.estimate, "verdict": row.verdict, "alone": row.alone,
                          "whole": made.verdict.verdict, "decision": made.decision})  # fmt: skip
    accepted = [entry["update"] for entry in Ledger(audit / "ledger.jsonl").entries() if entry["kind"] == "accepted"]
    told = (model / "MODEL.md").read_text()
    entries = pdcl.load(model).lineage.entries
    overrides = [e["name"] for e in entries if (e["result"].get("update") or {}).get("override") == WHY]
    assert accepted == overrides
    assert told.count(f"Accepted by hand: {WHY}") == len(overrides)
    return found


def table(rows: list[Row]) -> str:
    lines = ["| limit | the plan said | groups | PASS | UNDECIDED | FAIL |", "|---|---|---|---|---|---|"]
    for limit in LIMITS:
        mine = [row for row in rows if row["limit"] == limit]
        for told, chosen in (
            (
                "passes: fewer answers changed than it named",
                [r for r in mine if r["planned"] and r["changed"] < r["planned"]],
            ),
            (
                "UNDECIDED is likely: as many or more changed",
                [r for r in mine if r["planned"] and r["changed"] >= r["planned"]],
            ),
            ("can't pass", [r for r in mine if r["planned"] is None]),
        ):
            if chosen:
                shares = [sum(r["verdict"] == v for r in chosen) / len(chosen) for v in ("PASS", "UNDECIDED", "FAIL")]
                lines.append(
                    f"| {limit} | {told} | {len(chosen)} | " + " | ".join(f"{100 * s:.0f} %" for s in shares) + " |"
                )
    return "\n".join(lines)


def run() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if not asked.table:
        torch.set_num_threads(1)
        for limit in LIMITS:
            for seed in range(asked.seeds):
                place = asked.out / f"{limit[1:]}-{seed}.json"
                if not place.exists():
                    place.write_text(json.dumps(lifetime(asked.out, limit, seed)))
    print(table([row for place in sorted(asked.out.glob("*.json")) for row in json.loads(place.read_text())]))


if __name__ == "__main__":
    run()
