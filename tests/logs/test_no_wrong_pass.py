"""Logs that would make a worse model look as good: none of them passes, and each says why."""

import io
import json
import zipfile
import zlib

import pytest
from log_rows import asked, flipped, write_rows

import pdcl
from pdcl.errors import UsageError
from pdcl.logs.log import LogError
from pdcl.release.looks import LedgerError

ROWS = asked(600)
# Four answers an item; the new model fails a quarter of those that were right.
OFTEN = [{**row, "epoch": e, "score": int((row["id"] * 7 + e) % 3 > 0)} for row in ROWS for e in range(4)]
WORSE = [row if (row["id"] + row["epoch"]) % 4 else {**row, "score": 0} for row in OFTEN]
BEST = {row["id"]: row for row in sorted(WORSE, key=lambda row: row["score"])}
CRASHED = [row for row in WORSE if row["score"] or row["epoch"] == 0 or row["id"] % 2]


def notes(verdict):
    return " ".join(verdict.notes)


def test_answers_that_are_missing_forbid_a_pass(logs):
    assert pdcl.compare(*logs(OFTEN, WORSE), "+3pt", looks=2).verdict == "FAIL"
    made = pdcl.compare(*logs(OFTEN, CRASHED), "+30pt")
    assert made.verdict == "UNDECIDED"
    assert "with fewer answers than others of their task" in notes(made)


def test_the_best_of_several_answers_is_no_log(logs):
    with pytest.raises(UsageError, match="600 items with fewer answers than others"):
        pdcl.compare(*logs(OFTEN, list(BEST.values())), "+3pt")


def test_one_answer_of_each_item_may_be_compared_with_four(logs):
    once = [row for row in OFTEN if row["epoch"] == 2]
    assert pdcl.compare(*logs(OFTEN, once), "+40pt").verdict == "PASS"


def test_copies_under_other_ids_are_no_further_evidence(logs):
    few = [{**row, "id": f"{row['id']}-{copy}"} for row in ROWS[:60] for copy in range(10)]
    paths = logs(few, [dict(row) for row in reversed(few)])
    made = pdcl.compare(*paths, "+3pt", looks=2)
    assert (made.verdict, made.rows[0].units) == ("UNDECIDED", 60)
    assert "540 items repeat the prompt of another" in notes(made)
    # Where the prompt isn't what tells items apart, another column says so.
    assert pdcl.compare(*paths, "+3pt", columns={"prompt": "id"}).verdict == "PASS"


def test_a_log_is_not_compared_with_itself(logs, tmp_path):
    before, after = logs(ROWS, ROWS)
    linked = tmp_path / "linked.jsonl"
    linked.symlink_to(before)
    for path in (before, linked):
        with pytest.raises(UsageError, match="the very log that before names"):
            pdcl.compare(before, path, "+3pt")
    with pytest.raises(UsageError, match="the very log that before names"):
        pdcl.compare(before, after, "+3pt", rerun=before)
    assert "the same to the byte" in notes(pdcl.compare(before, after, "+3pt"))


def test_a_value_that_is_said_twice_is_refused(tmp_path):
    before = write_rows(tmp_path / "before.jsonl", ROWS)
    after = tmp_path / "after.jsonl"
    after.write_text("".join(json.dumps(row)[:-1] + ', "score": 1}\n' for row in flipped(ROWS, 80)))
    with pytest.raises(LogError, match="line 1: 'score' stands twice"):
        pdcl.compare(before, after, "+3pt")
    table = tmp_path / "after.csv"
    table.write_text("id,score,score\n" + "".join(f"{row['id']},{row['score']},1\n" for row in flipped(ROWS, 80)))
    with pytest.raises(LogError, match="several columns 'score'"):
        pdcl.compare(before, table, "+3pt")


@pytest.mark.parametrize(
    "score", [10**400, float("nan"), "nan", "inf", "1e999", [1], {"value": 1}, None, "", "7", -0.1]
)
def test_a_score_that_is_none_is_refused(logs, score):
    with pytest.raises(LogError, match="row 4"):
        pdcl.compare(*logs(ROWS, [{**row, "score": score} if row["id"] == 3 else row for row in ROWS]), "+3pt")


def lm_eval(path, rows, metric="exact_match", chosen="none"):
    lines = [
        {
            "doc_id": row["id"],
            "filter": chosen,
            "metrics": [metric],
            metric: row["score"],
            "prompt_hash": str(row["id"]),
        }
        for row in rows
    ]
    return write_rows(path / "samples_math_2026-11-18T13-03-01.394509.jsonl", lines).parent


@pytest.mark.parametrize(("metric", "chosen"), [("exact_match", "flexible"), ("acc", "strict")])
def test_two_logs_scored_by_other_measures_are_not_compared(tmp_path, metric, chosen):
    before = lm_eval(tmp_path / "old", flipped(ROWS, 80), chosen="strict")
    after = lm_eval(tmp_path / "new", ROWS, metric, chosen)
    with pytest.raises(UsageError, match=f"by exact_match,strict in before and by {metric},{chosen} in after"):
        pdcl.compare(before, after, "+3pt")


def test_a_metric_of_which_less_is_better_is_refused(tmp_path):
    before, after = lm_eval(tmp_path / "old", ROWS, "brier"), lm_eval(tmp_path / "new", ROWS, "brier")
    assert pdcl.compare(before, after, "+3pt").verdict == "PASS"
    results = before / "results_2026-11-18T13-03-01.394509.json"
    results.write_text(json.dumps({"higher_is_better": {"math": {"brier": False}}}))
    with pytest.raises(LogError, match="less brier is better"):
        pdcl.compare(before, after, "+3pt")


def test_logs_of_another_format_in_the_folder_are_named(tmp_path):
    before, after = lm_eval(tmp_path / "old", ROWS), lm_eval(tmp_path / "new", flipped(ROWS, 1))
    write_rows(after / "hard.jsonl", ROWS)
    assert "Not read in after, as they are logs of another format: hard.jsonl." in notes(
        pdcl.compare(before, after, "+3pt")
    )


def test_a_group_that_items_left_is_judged_as_the_log_before_has_it(logs):
    rows = [{**row, "level": "hard" if row["id"] % 2 else "easy"} for row in ROWS]
    worse = [
        {**row, "score": 0, "level": "easy"} if row["level"] == "hard" and row["id"] < 200 else row for row in rows
    ]
    made = pdcl.compare(*logs(rows, worse), "level=hard:+2pt, *:+50pt")
    assert made.verdict == "FAIL"
    assert "100 items with another level in after: that of before counts" in notes(made)


def test_an_item_with_several_tags_is_in_several_groups(logs):
    rows = [{**row, "tags": ["all"] + ["hard"] * (row["id"] % 3 == 0)} for row in ROWS]
    worse = [{**row, "score": 0} if row["id"] % 3 == 0 and row["id"] < 300 else row for row in rows]
    made = pdcl.compare(*logs(rows, worse), "*:+50pt, hard:+2pt", by="tags")
    assert {row.group: (row.samples, row.verdict) for row in made.rows} == {"all": (600, "PASS"), "hard": (200, "FAIL")}


def test_an_archive_that_unpacks_to_more_than_it_says_is_refused(tmp_path):
    """Zstandard, as Inspect packs: a kilobyte that would fill the memory."""
    zstandard = pytest.importorskip("zstandard")
    buffer, bomb = io.BytesIO(), zstandard.ZstdCompressor().compress(bytes(2**26))
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("header.json", json.dumps({"status": "success", "eval": {"task": "sums"}}))
        archive.writestr("samples/1.json", bomb)
    content = buffer.getvalue()
    for sign, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = content.rindex(sign) + offset
        content = content[:at] + (93).to_bytes(2, "little") + content[at + 2 :]
    assert zlib.crc32(bomb).to_bytes(4, "little") in content
    (tmp_path / "run.eval").write_bytes(content)
    with pytest.raises(LogError, match="damaged"):
        pdcl.compare(tmp_path / "run.eval", write_rows(tmp_path / "after.jsonl", ROWS), "+3pt")


PLAN = """
intended_use = "sums"
responsible = "A. Person"
data = "600 sums"
on_fail = "the model in use stays"
looks = 3
[limits]
"*" = {{ limit = "{limit}", reason = "because" }}
"""


def plan(path, limit):
    path.write_text(PLAN.format(limit=limit))
    return path


def test_neither_another_plan_nor_a_lost_ledger_hides_the_first_plan(logs, tmp_path):
    paths, stated = logs(ROWS, flipped(ROWS, 60)), tmp_path / "limits.toml"
    ledger = tmp_path / "limits.ledger.jsonl"
    assert "as at the first look" in notes(pdcl.compare(*paths, plan(stated, "+2pt")))
    ledger.unlink()
    looser = pdcl.compare(*paths, plan(stated, "+20pt"))
    assert (looser.verdict, looser.look.number) == ("PASS", 2)
    assert "CHANGED since the plan of look 1" in notes(looser)
    ledger.unlink()
    unnamed = pdcl.compare(*paths, "+21pt")
    assert "No plan is named here. CHANGED: limits are not those of the plan of look 1" in notes(unnamed)
    with pytest.raises(LedgerError, match="all 3 planned looks"):
        pdcl.compare(*paths, "+22pt")


def test_a_plan_that_came_after_the_first_look_says_so(logs, tmp_path):
    paths = logs(ROWS, flipped(ROWS, 60))
    pdcl.compare(*paths, "+1pt", looks=3)
    made = pdcl.compare(*paths, plan(tmp_path / "limits.toml", "+20pt"))
    assert "as at look 2; looks before it had no plan" in notes(made)


def test_items_that_another_look_saw_count_under_any_name(logs, tmp_path):
    pdcl.compare(*logs(ROWS, flipped(ROWS, 60)), "+3pt")
    renamed = [{**row, "task": "sums", "id": f"x{row['id']}"} for row in ROWS]
    one = write_rows(tmp_path / "elsewhere/one.jsonl", renamed)
    two = write_rows(tmp_path / "elsewhere/two.jsonl", flipped(renamed, 60))
    with pytest.raises(LedgerError, match="the one planned look at this audit set is taken"):
        pdcl.compare(one, two, "+4pt")
    bare = [{k: v for k, v in row.items() if k != "prompt"} for row in ROWS]
    one, two = write_rows(tmp_path / "bare/one.jsonl", bare), write_rows(tmp_path / "bare/two.jsonl", flipped(bare, 9))
    pdcl.compare(one, two, "+3pt")
    with pytest.raises(LedgerError, match="Items without prompts are known by task and id"):
        pdcl.compare(one, two, "+4pt")
