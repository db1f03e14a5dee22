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


def test_every_record_tells_promotions_refusals_rollbacks_and_erasures_in_order_of_time(life: Path) -> None:
    assert updated(life, "zulu", month(1))
    assert not updated(life, "mike", wrong(2))
    pdcl.rollback(life / "model", why="complaints from north")
    assert updated(life, "alpha", month(3))
    x, y = month(3)["x"], month(3)["y"]
    pdcl.forget(life / "model", samples=(x[:50], y[:50]), audit=life / "audit")
    card = (life / "model" / "MODEL.md").read_text()
    told = [
        line.split(" ", 2)[2] for line in card.split("in the order of time:")[1].split("##")[0].strip().splitlines()
    ]
    assert [each.partition(":")[0] for each in told] == ["zulu", "mike", "zulu", "alpha", "forgotten"]
    assert told[0].endswith("Rolled back later.")
    assert told[2] == "zulu: Rolled back: complaints from north."
    assert "stored samples removed" in told[4]
    page = report([life / "model"])
    places = [
        page.find(text)
        for text in ("Rolled back later", "The gate says FAIL", "complaints from north", "samples removed")
    ]
    assert -1 not in places
    assert places == sorted(places)


def test_a_reason_is_given_once(life: Path) -> None:
    made = updated(life, "m1", month(1, 24))
    assert made.verdict is not None
    assert {row.criterion for row in made.verdict.rows if row.group == "m0"} == {"drop", "since"}
    text = f"{made.verdict}\n{made}"
    lines = [line.strip() for line in text.splitlines() if "would decide it" in line or "The gate says" in line]
    assert len(lines) == len(set(lines)), text
