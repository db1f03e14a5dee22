"""Is what `pdcl update --plan` says beforehand what happens? Monthly updates, 750 audit rows each, twelve looks.

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
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pdcl
from pdcl.release.ledger import Ledger
from pdcl.release.update_plan import plan_update
from pdcl.streams.data import everything

ROWS, AUDIT, LOOKS, EPOCHS = 4500, 750, 12, 3
LIMITS = ("+2pt", "+5pt")
WHY = "the simulation goes on"
Row = dict[str, Any]


def months(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    data = [task.data.fetch(everything(task.data)) for task in pdcl.stream("mnist").tasks]
    x, y = (np.concatenate([np.asarray(each[part]) for each in data]) for part in (0, 1))
    order = np.random.default_rng(seed).permutation(len(x))[: LOOKS * ROWS].reshape(LOOKS, ROWS)
    return [(x[rows], y[rows]) for rows in order]


def promised(line: str) -> float | None:
    """The share of changed answers up to which the plan says PASS; None: it can't pass."""
    if "can't let it pass" in line:
        return None
    found = re.search(r"fewer than ([\d.]+) %", line)
    return float(found[1]) / 100 if found else 1.0 if "nearly always" in line else 0.0


def lifetime(out: Path, limit: str, seed: int, most: int) -> None:
    """Go on where an earlier call ended, by at most so many months; a line of results.jsonl per month and task."""
    place = out / f"{limit[1:]}-{seed}"
    model, audit, results = place / "model", place / "audit", place / "results.jsonl"
    first, *later = months(seed)
    if not model.exists():
        place.mkdir(parents=True)
        learner = pdcl.PDCL("mlp:64", memory=500, seed=seed)
        learner.learn(*first, name="01", audit=str(audit), audit_share=AUDIT / ROWS, epochs=EPOCHS)
        learner.save(model)
    done = {row["month"] for row in read(place)}
    left = [(f"{number:02d}", data) for number, data in enumerate(later, 2) if f"{number:02d}" not in done]
    for name, data in left[:most]:
        asked = {"name": name, "audit": audit, "max_drop": limit, "looks": LOOKS, "audit_share": AUDIT / ROWS}
        plan = plan_update(model, data, **asked).splitlines()
        evidence = place / "evidence" / name
        made = pdcl.update(
            model, data, **asked, epochs=EPOCHS, accept_undecided=True, why=WHY, evidence=evidence, samples=False
        )
        assert made.verdict is not None
        with np.load(evidence / "outcomes.npz") as held:
            moved, division = held["error"] != held["old"], held["division"]
        with results.open("a") as file:
            for row in made.verdict.rows:
                if row.criterion == "drop":
                    line = next(each for each in plan if each.startswith(f"  {row.group}, "))
                    changed = float(moved[division == row.group].mean())
                    told = {"month": name, "task": row.group, "planned": promised(line), "changed": changed}
                    told |= {"drop": row.estimate, "verdict": row.verdict, "whole": made.verdict.verdict}
                    file.write(json.dumps({**told, "limit": limit, "seed": seed, "decision": made.decision}) + "\n")
    check_overrides(model, audit)


def read(place: Path) -> list[Row]:
    file = place / "results.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def check_overrides(model: Path, audit: Path) -> None:
    """Every month that was accepted by hand stands in ledger, lineage and MODEL.md."""
    accepted = [entry["update"] for entry in Ledger(audit / "ledger.jsonl").entries() if entry["kind"] == "accepted"]
    records = [(entry["name"], entry["result"].get("update") or {}) for entry in pdcl.load(model).lineage.entries]
    assert accepted == [name for name, record in records if record.get("override") == WHY]
    assert (model / "MODEL.md").read_text().count(f"Accepted by hand: {WHY}") == len(accepted)


def table(rows: list[Row]) -> str:
    """Verdicts of groups by what the plan had said of them; groups that can't pass have a row of their own."""
    lines = ["| limit | of the answers of a month | groups | PASS | UNDECIDED | FAIL |", "|---|---|---|---|---|---|"]
    kinds = {
        "fewer changed than the plan named": lambda row: row["planned"] and row["changed"] < row["planned"],
        "more changed, error no higher": lambda row: (
            row["planned"] and row["changed"] >= row["planned"] and row["drop"] <= 0
        ),
        "more changed, error higher": lambda row: (
            row["planned"] and row["changed"] >= row["planned"] and row["drop"] > 0
        ),
        "the plan says: can't pass": lambda row: not row["planned"],
    }
    for limit in LIMITS:
        for told, chosen in kinds.items():
            if mine := [row["verdict"] for row in rows if row["limit"] == limit and chosen(row)]:
                counts = " | ".join(str(mine.count(verdict)) for verdict in ("PASS", "UNDECIDED", "FAIL"))
                lines.append(f"| {limit} | {told} | {len(mine)} | {counts} |")
    return "\n".join(lines)


def run() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--months", type=int, default=LOOKS, help="stop after so many months of each")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    places = [(limit, seed) for limit in LIMITS for seed in range(asked.seeds)]
    if not asked.table:
        torch.set_num_threads(1)
        for limit, seed in places:
            lifetime(asked.out, limit, seed, asked.months)
    print(table([row for limit, seed in places for row in read(asked.out / f"{limit[1:]}-{seed}")]))


if __name__ == "__main__":
    run()
