"""Folders that lm-evaluation-harness 0.4.13 wrote (write_lm_eval_logs.py), whole and damaged."""

import json
from pathlib import Path

import pytest

import pdcl
from pdcl.errors import UsageError
from pdcl.logs.log import LogError
from pdcl.logs.reading import Form, read_log

FILES = Path(__file__).parent / "files"
WHOLE = next(FILES.glob("lm_eval_before/*/samples_*.jsonl")).read_text().splitlines()


def test_the_harness_own_folders_are_compared(tmp_path):
    """The model adds wrongly where the first number can be divided by 7 before, by 4 after."""
    before, after = FILES / "lm_eval_before", FILES / "lm_eval_after"
    verdict = pdcl.compare(before, after, "sums:+2pt", ledger=tmp_path / "ledger.jsonl")
    (row,) = verdict.rows
    old, new = ({a for a in range(1, 61) if a % n == 0} for n in (7, 4))
    assert (row.before, row.now) == pytest.approx((len(old) / 60, len(new) / 60))
    assert row.estimate == pytest.approx((len(new) - len(old)) / 60)


def changed(**values):
    return json.dumps({**json.loads(WHOLE[3]), **values})


def without(name):
    return json.dumps({k: v for k, v in json.loads(WHOLE[3]).items() if k != name})


DAMAGES = {
    "cut": WHOLE[3][:200],
    "no JSON": "score: 1",
    "a number": "3",
    "a list": "[]",
    "null": "null",
    "bracket bomb": "[" * 100_000,
    "no id": without("doc_id"),
    "no metric": without("exact_match"),
    "score of 7": changed(exact_match=7),
    "score below 0": changed(exact_match=-0.1),
    "score NaN": changed(exact_match=float("nan")),
    "score infinite": changed(exact_match=float("inf")),
    "score null": changed(exact_match=None),
    "score a list": changed(exact_match=[1]),
    "score a word": changed(exact_match="good"),
    "another filter": changed(filter="strict"),
    "metrics no list": changed(metrics=3),
    "metrics many": changed(metrics=["bleu", "rouge"]),
    "id twice": WHOLE[2],
    "control characters": "\x1b[2J{",
}


@pytest.mark.parametrize("line", DAMAGES.values(), ids=DAMAGES.keys())
def test_damage_is_named_in_one_line(tmp_path, line):
    file = tmp_path / "samples_sums.jsonl"
    file.write_text("\n".join([*WHOLE[:3], line, *WHOLE[4:]]))
    with pytest.raises(LogError) as told:
        read_log(file, Form(), "before")
    text = str(told.value)
    assert "samples_sums.jsonl" in text
    assert "\n" not in text
    assert "\x1b" not in text
    assert len(text) < 500


def test_fields_of_a_document_divide_items(tmp_path):
    before, after = FILES / "lm_eval_before", FILES / "lm_eval_after"
    verdict = pdcl.compare(before, after, "*:+90pt, answer=8:+90pt", ledger=tmp_path / "ledger.jsonl")
    assert {row.group: row.samples for row in verdict.rows} == {"sums": 60, "answer=8": 1}


def test_where_only_the_template_changed_documents_tell_items_apart(tmp_path):
    """A chat template of the new model's own changes every prompt, and no document."""
    after = tmp_path / "samples_sums.jsonl"
    lines = [json.loads(line) for line in WHOLE]
    after.write_text("\n".join(json.dumps({**line, "prompt_hash": f"other {k}"}) for k, line in enumerate(lines)))
    asked = FILES / "lm_eval_before", after, "sums:+20pt"
    with pytest.raises(UsageError, match=r"60 items with another prompt .*--columns prompt=doc_hash"):
        pdcl.compare(*asked, ledger=tmp_path / "ledger.jsonl")
    verdict = pdcl.compare(*asked, columns={"prompt": "doc_hash"}, ledger=tmp_path / "ledger.jsonl")
    assert (verdict.verdict, verdict.rows[0].units) == ("PASS", 60)
    for columns, words in (
        ({"prompt": "hash"}, "no 'hash' to tell"),
        ({"id": "doc_id"}, "no effect on logs of lm-eval"),
    ):
        with pytest.raises(LogError, match=words):
            pdcl.compare(*asked, columns=columns, ledger=tmp_path / "ledger.jsonl")
