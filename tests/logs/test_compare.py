"""Two logs against limits: the verdict is that of the exact paired bounds, and what is odd about the logs is named."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
from log_rows import asked, flipped, write_rows

import pdcl
from pdcl.errors import UsageError
from pdcl.judging.paired import change_above, change_upper
from pdcl.release.changes import change_of
from pdcl.release.deciding import Row, decide
from pdcl.release.evidence import verify
from pdcl.release.folder import BadEvidence
from pdcl.release.looks import LedgerError


@pytest.mark.parametrize(("worse", "expected"), [(0, "PASS"), (30, "UNDECIDED"), (90, "FAIL")])
def test_the_verdict_is_that_of_the_exact_paired_bound(logs, worse, expected):
    rows = asked(1000)
    verdict = pdcl.compare(*logs(rows, flipped(rows, worse)), "+3pt")
    assert verdict.verdict == expected
    (row,) = verdict.rows
    assert row.estimate == worse / 1000
    assert row.upper == pytest.approx(change_upper(worse, 0, 1000, 0.05))
    assert row.p_below == pytest.approx(change_above(0, worse, 1000, -0.03, 0.05))


def test_groups_have_their_own_limits_by_task_and_by_column(logs):
    math, code = asked(600), asked(600, seed=1, task="code")
    rows = [{**row, "level": "hard" if k % 2 else "easy"} for k, row in enumerate([*math, *code])]
    after = [*flipped(rows[:600], 60), *rows[600:]]
    verdict = pdcl.compare(*logs(rows, after), "math:+2pt, level=easy:+8pt, *:+3pt")
    found = {row.group: row.verdict for row in verdict.rows}
    assert (found["math"], found["code"]) == ("FAIL", "PASS")
    assert "level=easy" in found
    assert [row.limit for row in verdict.rows] == [0.03, 0.02, 0.08]


def test_an_absolute_limit_judges_the_new_log_alone(logs):
    rows = asked(400, error=0.0)
    verdict = pdcl.compare(*logs(rows, flipped(rows, 4)), "5%")
    assert verdict.verdict == "PASS"
    assert verdict.rows[0].method.startswith("exact binomial")


def test_several_answers_count_as_one_item(logs):
    rows = [{**row, "epoch": e} for row in asked(300) for e in range(4)]
    after = [{**row, "score": 0} if row["id"] < 60 and row["epoch"] == 1 else row for row in rows]
    verdict = pdcl.compare(*logs(rows, after), "+20pt")
    (row,) = verdict.rows
    assert (row.units, row.samples) == (300, 300)
    was = {(r["id"], r["epoch"]): r["score"] for r in rows}
    assert row.estimate == pytest.approx(sum(was[(r["id"], r["epoch"])] - r["score"] for r in after) / 1200)


def test_lone_items_and_other_prompts_are_named_and_forbid_a_pass(logs):
    rows = asked(500)
    after = [{**row, "prompt": "another"} if row["id"] == 7 else row for row in rows[:-2]]
    paths = logs(rows, after)
    verdict = pdcl.compare(*paths, "+5pt", looks=2)
    assert verdict.verdict == "UNDECIDED"
    text = " ".join(verdict.notes)
    assert "2 items only in before (math/498, math/499)" in text
    assert "1 item with another prompt under the same id (math/7)" in text
    assert pdcl.compare(*paths, "+5pt", unpaired="drop").verdict == "PASS"


def test_the_same_question_is_one_look_and_a_further_one_is_refused(logs, tmp_path):
    rows = asked(500)
    paths = logs(rows, flipped(rows, 20))
    first = pdcl.compare(*paths, "+3pt")
    again = pdcl.compare(*paths, "+3pt")
    assert (again.look.number, again.look.repeated) == (1, True)
    assert again.rows == first.rows
    with pytest.raises(LedgerError, match="planned look"):
        pdcl.compare(*paths, "+4pt")
    # A copy elsewhere is the same data: the user's ledger knows.
    copies = [
        write_rows(tmp_path / "copy" / p.name, [json.loads(x) for x in p.read_text().splitlines()]) for p in paths
    ]
    with pytest.raises(LedgerError, match="planned look"):
        pdcl.compare(*copies, "+4pt")


def test_an_undecided_row_leans_and_says_what_would_decide(logs):
    rows = asked(250)
    verdict = pdcl.compare(*logs(rows, flipped(rows, 12)), "+3pt")
    (lines,) = verdict.levers.values()
    (row,) = verdict.rows
    assert verdict.verdict == "UNDECIDED"
    assert lines[0].startswith("probably broken: +4.8 pt where +3 pt is allowed (p = ")
    assert f"about {row.needed:,} further samples would decide it" in " ".join(lines)


def test_evidence_repeats_the_verdict_and_shows_a_change(logs, tmp_path):
    rows = asked(500)
    verdict = pdcl.compare(*logs(rows, flipped(rows, 60)), "+3pt", evidence=tmp_path / "evidence")
    assert verify(tmp_path / "evidence")["verdict"] == verdict.verdict == "FAIL"
    held = tmp_path / "evidence" / "release.json"
    assert json.loads(held.read_text())["decision"] == "FAIL"
    held.write_text(held.read_text().replace("FAIL", "PASS"))
    with pytest.raises(BadEvidence, match="was changed"):
        verify(tmp_path / "evidence")


@pytest.mark.parametrize("forged", ["limit", "level", "items"])
def test_evidence_that_was_rewritten_with_its_manifest_is_refused(logs, tmp_path, forged):
    rows, place, other = asked(500), tmp_path / "evidence", tmp_path / "other"
    assert pdcl.compare(*logs(rows, flipped(rows, 20)), "+3pt", looks=2, evidence=place).verdict == "UNDECIDED"
    looser = "+20pt" if forged == "limit" else "+3pt"
    kept = rows if forged != "items" else rows[100:]
    assert forged == "level" or pdcl.compare(*logs(kept, kept), looser, evidence=other).verdict == "PASS"
    verdict = json.loads((place / "verdict.json").read_text())
    if forged == "level":
        with np.load(place / "outcomes.npz") as held:
            row = Row("drop", "math", 0.03, change_of(held["new"], held["old"], None), 500)
        lax = decide([row], 0.9)
        verdict |= {"rows": [each.as_json() for each in lax.rows], "verdict": lax.verdict}
        verdict["look"]["level"] = 0.9
    else:
        passed = json.loads((other / "verdict.json").read_text())
        verdict |= {"rows": passed["rows"], "verdict": "PASS"}
        (place / "outcomes.npz").write_bytes((other / "outcomes.npz").read_bytes())
    (place / "verdict.json").write_text(json.dumps(verdict))
    names = json.loads((place / "manifest.json").read_text())
    hashes = {name: hashlib.sha256((place / name).read_bytes()).hexdigest() for name in names}
    (place / "manifest.json").write_text(json.dumps(hashes))
    reason = {"limit": "not by its stated limit", "level": "errs with 0.025", "items": "items of outcomes.npz"}[forged]
    with pytest.raises(BadEvidence, match=reason):
        verify(place)


@pytest.mark.parametrize("limits", ["0.05", "1.1x", "maths:+2pt", "new:5%", "+2%", "", "level=hard:+2pt"])
def test_a_limit_that_says_nothing_here_is_refused_before_a_look(logs, tmp_path, limits):
    rows = asked(50)
    with pytest.raises(UsageError) as told:
        pdcl.compare(*logs(rows, rows), limits)
    assert "\n" not in str(told.value)
    assert not list(tmp_path.glob("*ledger.jsonl"))


def test_the_command_answers_by_its_exit_code_and_never_imports_torch(logs):
    rows = asked(600)
    before, after = logs(rows, flipped(rows, 80))
    code = (
        "import sys; from pdcl.cli import main; code = main(sys.argv[1:]); "
        "assert 'torch' not in sys.modules; raise SystemExit(code)"
    )
    words = ["gate", "--before", str(before), "--after", str(after), "--limit", "math:+2pt, *:+3pt"]
    made = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert made.returncode == 1, made.stderr
    assert "FAIL: look 1 of 1" in made.stdout


def test_the_noise_floor_says_what_is_beyond_it(logs, tmp_path):
    rows = asked(800)
    rerun = write_rows(tmp_path / "again.jsonl", flipped(rows, 20, 20))
    verdict = pdcl.compare(*logs(rows, flipped(rows, 60, 20)), "+10pt", rerun=rerun)
    floor = verdict.as_json()["noise"]
    assert (floor["rerun"], floor["after"], floor["beyond"]) == pytest.approx((0.05, 0.1, 0.05))
    assert 0 < floor["low"] < 0.05 < floor["high"]
    assert floor["text"] in verdict.notes
