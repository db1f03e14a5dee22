"""Six months of updates with a FAIL, an UNDECIDED, kills and a rollback: no reader sees anything half-done."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from months import WORDS, month, seen, updated, write, wrong

import pdcl
from pdcl.cli import main
from pdcl.errors import PdclError, StateError, UsageError
from pdcl.lifelong.entry import REFUSED, ROLLED_BACK
from pdcl.release.evidence import verify
from pdcl.release.gate import model_hash
from pdcl.release.update_job import data_hash, samples_of
from pdcl.reports.writing import report
from pdcl.streams.audits import read_audit


def test_six_months(life: Path) -> None:
    model, audit = life / "model", life / "audit"
    one = updated(life, "m1", month(1), evidence=life / "evidence" / "m1")
    assert one, one
    assert verify(life / "evidence" / "m1")["verdict"] == "PASS"
    before = seen(life)

    two = updated(life, "m2", wrong(2))
    assert (two.decision, two.exit_code, two.verdict.verdict) == (REFUSED, 1, "FAIL")
    three = updated(life, "m3", month(3, 24))
    assert (three.decision, three.exit_code, three.verdict.verdict) == (REFUSED, 2, "UNDECIDED")
    after = seen(life)
    assert (after[0], after[2]) == (before[0], before[2]), "the old model and its audit set stay"
    assert [how for _, how, _ in after[1]] == ["learned", "learned", REFUSED, REFUSED]

    four = updated(life, "m4", month(4, classes=(0, 1, 2)))
    assert four, four
    assert {"m0", "m1", "m4"} == set(read_audit(audit).columns["task"].tolist())
    before = seen(life)
    five = updated(life, "m5", month(5))
    assert five
    entry = pdcl.rollback(model, why="complaints")
    assert entry["how"] == ROLLED_BACK
    after = seen(life)
    assert (after[0], after[2]) == (before[0], before[2]), "the model and its audit set are what they were"
    assert after[1][-1] == ("m5", ROLLED_BACK, "Rolled back: complaints.")
    again = pdcl.rollback(model)
    assert (again, again.repeated, seen(life)) == (entry, True, after), "made again it goes no further back"
    assert updated(life, "m5", month(5)).decision == ROLLED_BACK, "recognised, and not learned again unasked"

    six = updated(life, "m6", month(6))
    assert six, six
    lineage = pdcl.load(model).lineage
    assert [e["name"] for e in lineage.tasks] == ["m0", "m1", "m4", "m6"]
    assert [e["name"] for e in lineage.entries if e["how"] == REFUSED] == ["m2", "m3"]
    page = report([model])
    assert "The gate says FAIL" in page
    assert "Rolled back: complaints" in page
    assert not list((model / ".update").iterdir())


def test_the_same_month_twice_is_recognised_and_takes_no_second_look(life: Path) -> None:
    assert updated(life, "m1", month(1))
    assert not updated(life, "m2", wrong(2))
    before = seen(life)
    data = month(1)
    mixed = np.random.default_rng(0).permutation(len(data["y"]))
    again = updated(life, "m1", {name: values[mixed] for name, values in data.items()})
    assert again
    assert again.repeated
    refused = updated(life, "m2", wrong(2))
    assert not refused
    assert refused.repeated
    assert "decided before" in str(refused)
    assert seen(life) == before
    with pytest.raises(UsageError, match="from other data"):
        updated(life, "m1", month(7))
    with pytest.raises(UsageError, match="learned this very data as 'm1'"):
        updated(life, "m7", month(1))
    assert not updated(life, "m2", wrong(2), again=True).repeated
    assert updated(life, "m2", month(2)), "other data under a name that was refused"


def test_a_broken_promise_refuses_without_a_look(tmp_path: Path) -> None:
    learner = pdcl.PDCL("mlp:12", memory=300, tolerance="+5pt", witness=60, base=0.0, dual="frozen", seed=0, lr=0.02)
    first = month(0, 600)
    learner.learn(first["x"], first["y"], name="m0", epochs=6, audit=tmp_path / "audit", audit_share=0.3)
    learner.save(tmp_path / "model")
    with pytest.warns(pdcl.LimitBroken):
        found = pdcl.update(
            tmp_path / "model", {k: wrong(2)[k] for k in ("x", "y")}, name="m1", audit=tmp_path / "audit", max_drop=0.9,
            epochs=6,
        )  # fmt: skip
    assert not found
    assert "A limit is broken: m0" in found.why
    assert not (tmp_path / "audit" / "ledger.jsonl").exists()
    assert pdcl.load(tmp_path / "model").lineage.entries[-1]["how"] == REFUSED


def test_a_refused_update_leaves_the_state_to_go_back_to(life: Path) -> None:
    assert updated(life, "m1", month(1))
    first = model_hash(pdcl.load(life / "model" / "previous"))
    assert not updated(life, "m2", wrong(2))
    assert model_hash(pdcl.load(life / "model" / "previous")) == first
    pdcl.rollback(life / "model")
    assert model_hash(pdcl.load(life / "model")) == first


def test_segments_of_the_month_are_audited(life: Path) -> None:
    found = updated(life, "m1", month(1), by="plan")
    assert {row.group for row in found.verdict.rows} == {"gold", "basic"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"audit_share": 1.5}, "share"),
        ({"max_drop": None}, "say what the limit is on"),
        ({"max_drop": -1}, "positive"),
        ({"audit_share": 0, "audit_budget": 5}, "no effect"),
        ({"groups": "nobody"}, "no column"),
        ({"epochs": 0}, "epochs"),
    ],
)
def test_what_can_not_be_done_changes_nothing(life: Path, change: dict[str, Any], words: str) -> None:
    before = seen(life)
    with pytest.raises(PdclError, match=words):
        updated(life, "m1", month(1), **change)
    assert seen(life) == before


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="holds no model"):
        pdcl.update(tmp_path, month(1), name="m1", audit=tmp_path / "audit", max_drop=0.1)
    with pytest.raises(StateError, match="no model"):
        pdcl.rollback(tmp_path)


def test_the_command_line(life: Path, capsys: Any) -> None:
    good, bad = write(life / "m1.npz", month(1)), write(life / "m2.npz", wrong(2))
    head = ["update", str(life / "model"), "--audit", str(life / "audit"), *WORDS]
    assert main([*head, "--data", str(good), "--name", "m1"]) == 0
    assert "m1: promoted" in capsys.readouterr().out
    assert main([*head, "--data", str(bad), "--name", "m2"]) == 1
    assert "m2: refused" in capsys.readouterr().out
    assert main([*head, "--data", str(life / "nowhere.npz"), "--name", "m3"]) == 3
    assert "no such directory or file" in capsys.readouterr().err
    assert main(["rollback", str(life / "model"), "--why", "test"]) == 0
    assert "m1 is rolled back" in capsys.readouterr().out


def test_data_is_known_by_its_content_whatever_the_order() -> None:
    data = month(1)
    turned = {name: values[::-1].copy() for name, values in data.items()}
    assert data_hash(samples_of(data, None)) == data_hash(samples_of(turned, None))
    assert data_hash(samples_of(data, None)) != data_hash(samples_of(month(2), None))
    assert len(data_hash(samples_of(data, "plan"))) == len(hashlib.sha256().hexdigest())
    assert json.dumps(data_hash(samples_of(data, "plan")))
