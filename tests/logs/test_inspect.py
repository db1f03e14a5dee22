"""Logs that Inspect 0.3.285 wrote with its mock model (write_inspect_logs.py), whole and damaged."""

import copy
import io
import json
import zipfile
from pathlib import Path

import pytest

import pdcl
from pdcl.logs.log import LogError
from pdcl.logs.reading import Form, read_log

FILES = Path(__file__).parent / "files"
WHOLE = json.loads((FILES / "inspect_before.json").read_text())


def test_the_library_s_own_logs_are_compared(tmp_path):
    """The model adds wrongly where the first number can be divided by 7 before, by 4 after; each is asked twice."""
    before, after = FILES / "inspect_before.eval", FILES / "inspect_after.eval"
    verdict = pdcl.compare(before, after, "sums:+2pt, level=odd:+2pt", ledger=tmp_path / "ledger.jsonl")
    rows = {row.group: row for row in verdict.rows}
    old, new = ({a for a in range(1, 21) if a % n == 0} for n in (7, 4))
    assert (rows["sums"].before, rows["sums"].now) == pytest.approx((len(old) / 20, len(new) / 20))
    assert rows["sums"].units == 20, "two answers count once"
    assert rows["level=odd"].estimate == pytest.approx(-1 / 10), "7 is wrong before, no odd number after"


def test_both_of_its_formats_say_the_same():
    one, two = (read_log(FILES / f"inspect_before.{ending}", Form(), "before") for ending in ("eval", "json"))
    assert one.items == two.items


def of_sample(**values):
    return lambda log: log["samples"][3].update(values)


def of_log(**values):
    return lambda log: log.update(values)


def scored(value):
    return of_sample(scores={"match": {"value": value}})


DAMAGES = {
    "not finished": of_log(status="started"),
    "ended in an error": of_log(status="error"),
    "no eval": lambda log: log.pop("eval"),
    "eval no object": of_log(eval=3),
    "no task": lambda log: log["eval"].pop("task"),
    "no samples": lambda log: log.pop("samples"),
    "samples empty": of_log(samples=[]),
    "samples no list": of_log(samples={"a": 1}),
    "a sample no object": lambda log: log["samples"].insert(3, 7),
    "no id": lambda log: log["samples"][3].pop("id"),
    "no scores": lambda log: log["samples"][3].pop("scores"),
    "scores empty": of_sample(scores={}),
    "scores no object": of_sample(scores=[1]),
    "several scorers": of_sample(scores={"match": {"value": "C"}, "other": {"value": "C"}}),
    "score without value": of_sample(scores={"match": {}}),
    "score of 7": scored(7),
    "score a word": scored("good"),
    "score NaN": scored(float("nan")),
    "score with parts": scored({"a": 1, "b": 0}),
    "sample with an error": of_sample(error={"message": "out of memory"}),
    "sample twice": lambda log: log["samples"].append(log["samples"][3]),
    "other prompts in one item": of_sample(input="another"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damage_is_named_in_one_line(tmp_path, damage):
    log = copy.deepcopy(WHOLE)
    damage(log)
    refused(tmp_path / "run.json", json.dumps(log).encode())


def packed(log=WHOLE, header=True, samples=True):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if header:
            archive.writestr("header.json", json.dumps({k: v for k, v in log.items() if k != "samples"}))
        for each in log["samples"] if samples else ():
            archive.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
    return buffer.getvalue()


ARCHIVES = {
    "cut": (FILES / "inspect_before.eval").read_bytes()[:-500],
    "no zip": b"not a zip",
    "empty": b"",
    "no header": packed(header=False),
    "no samples": packed(samples=False),
    "bytes changed": (FILES / "inspect_before.eval").read_bytes().replace(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe"),
}


@pytest.mark.parametrize("content", ARCHIVES.values(), ids=ARCHIVES.keys())
def test_a_damaged_archive_is_named_in_one_line(tmp_path, content):
    refused(tmp_path / "run.eval", content)


def refused(file, content):
    file.write_bytes(content)
    with pytest.raises(LogError) as told:
        read_log(file, Form(), "before")
    text = str(told.value)
    assert file.name in text
    assert "\n" not in text
    assert len(text) < 500
