"""What the gate can't decide is accepted by hand, and every record says so; limits are written as people write them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from months import month, updated, wrong

import pdcl
from pdcl.cli import main
from pdcl.errors import UsageError
from pdcl.release.ledger import Ledger
from pdcl.reports.writing import report
from pdcl.streams.audits import read_audit

WHY = "the hotline needs it this week"


def test_an_undecided_month_is_accepted_by_hand_and_found_in_every_record(life: Path) -> None:
    refused = updated(life, "m1", month(1, 24))
    assert (refused.exit_code, refused.verdict.verdict) == (2, "UNDECIDED")
    looks = len(Ledger(life / "audit" / "ledger.jsonl").taken())
    place = life / "evidence"
    made = updated(life, "m1", month(1, 24), accept_undecided=True, why=WHY, evidence=place)
    assert made, made
    assert (made.exit_code, made.verdict.verdict, made.record["override"]) == (0, "UNDECIDED", WHY)
    entries = Ledger(life / "audit" / "ledger.jsonl").entries()
    assert [(e["update"], e["why"]) for e in entries if e["kind"] == "accepted"] == [("m1", WHY)]
    assert len(Ledger(life / "audit" / "ledger.jsonl").taken()) == looks, "the same candidate is the same look"
    assert pdcl.load(life / "model").lineage.entries[-1]["result"]["update"]["override"] == WHY
    assert WHY in report([life / "model"])
    assert WHY in (life / "model" / "MODEL.md").read_text()
    held = json.loads((place / "lineage.json").read_text())["tasks"][-1]["result"]["update"]
    assert held["accept_undecided"] == WHY
    assert "m1" in set(read_audit(life / "audit").columns["task"].tolist())


def test_a_fail_is_never_accepted_and_a_reason_is_needed(life: Path) -> None:
    assert updated(life, "m1", month(1))
    made = updated(life, "m2", wrong(2), accept_undecided=True, why=WHY)
    assert (made.exit_code, made.verdict.verdict) == (1, "FAIL")
    with pytest.raises(UsageError, match="needs why"):
        updated(life, "m3", month(3), accept_undecided=True)
    with pytest.raises(UsageError, match="no effect"):
        updated(life, "m3", month(3), why=WHY)


def test_a_limit_that_changed_is_named(life: Path) -> None:
    assert updated(life, "m1", month(1))
    again = updated(life, "m1", month(1), max_drop="+9pt")
    assert again.repeated
    assert "Decided under other limits (max_drop: 0.06 → 0.09)" in str(again)
    second = updated(life, "m2", month(2), max_drop="9%")
    assert "Limits changed since the update before: max_drop: 0.06 → 0.09." in str(second)
    assert "max_drop: 0.06 → 0.09" in report([life / "model"])


def test_the_plan_of_an_update_takes_no_look_and_writes_nothing(life: Path, capsys) -> None:
    data = life / "m1.npz"
    np.savez(data, **month(1))
    before = sorted((p, p.stat().st_mtime_ns) for p in life.rglob("*") if p.is_file())
    words = ["--audit", str(life / "audit"), "--audit-share", "0.5", "--looks", "12", "--max-drop", "+6pt"]
    assert main(["update", str(life / "model"), "--data", str(data), "--name", "m1", *words, "--plan"]) == 0
    told = capsys.readouterr().out
    assert "With 12 planned looks" in told
    assert "m0, +6pt: 130 samples" in told
    assert "m1, +6pt: 1" in told
    assert sorted((p, p.stat().st_mtime_ns) for p in life.rglob("*") if p.is_file()) == before
    assert main(["update", str(life / "model"), "--data", str(data), "--name", "m1", "--plan", "--epochs", "3"]) == 3
    assert "--epochs has no effect" in capsys.readouterr().err
