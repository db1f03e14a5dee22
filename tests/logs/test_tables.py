"""Tables with one row an answer, whole and damaged: JSON lines, CSV, Parquet, and a user's function."""

import io
import json

import pytest
from log_rows import asked, flipped, write_rows

import pdcl
from pdcl.errors import UsageError
from pdcl.logs.log import LogError
from pdcl.logs.reading import Form, read_log

ROWS = asked(60)
LINES = [json.dumps(row) for row in ROWS]


def line(**values):
    return json.dumps({**ROWS[3], **values}).encode()


def without(name):
    return json.dumps({k: v for k, v in ROWS[3].items() if k != name}).encode()


JSONL = {
    "cut": LINES[3][:20].encode(),
    "no JSON": b"id: 3",
    "a number": b"3",
    "a list": b"[1]",
    "null": b"null",
    "text": b'"a"',
    "bracket bomb": b"[" * 100_000,
    "no id": without("id"),
    "no score": without("score"),
    "id null": line(id=None),
    "id empty": line(id=" "),
    "id NaN": line(id=float("nan")),
    "id twice": LINES[2].encode(),
    "score null": line(score=None),
    "score NaN": line(score=float("nan")),
    "score infinite": line(score=float("inf")),
    "score of 7": line(score=7),
    "score below 0": line(score=-1e-9),
    "score a word": line(score="good"),
    "score a list": line(score=[1]),
    "score twice": b'{"id": 3, "score": 0, "score": 1}',
    "score too long": b'{"id": 3, "score": ' + b"9" * 5000 + b"}",
    "no UTF-8": b'{"id": "\xff"}',
    "zero byte": b"\0",
    "control characters": b"\x1b[2J{",
    "gzip": b"\x1f\x8b\x08\x00",
    "BOM inside": b"\xef\xbb\xbf{}",
    "half a pair": b'{"id": "\\ud83d", "score": "\\ud83d"}',
}


@pytest.mark.parametrize("damage", JSONL.values(), ids=JSONL.keys())
def test_damaged_json_lines_are_named_in_one_line(tmp_path, damage):
    refused(tmp_path / "run.jsonl", b"\n".join([*(each.encode() for each in LINES[:3]), damage, LINES[5].encode()]))


TABLE = ["id,task,score", *(f"{row['id']},math,{row['score']}" for row in ROWS)]
CSV = {
    "empty": b"",
    "names alone": b"id,task,score\n",
    "spaces": b"  \n \n",
    "no id": b"doc,score\n3,1\n",
    "no score": b"id,correct\n3,1\n",
    "semicolons": b"id;score\n3;1\n",
    "tabs": b"id\tscore\n3\t1\n",
    "too few values": b"id,score,task\n3,1\n",
    "too many values": b"id,score\n3,1,2\n",
    "name twice": b"id,score,score\n3,0,1\n",
    "score empty": b"id,score\n3,\n",
    "id empty": b"id,score\n,1\n",
    "id twice": b"id,score\n3,1\n3,1\n",
    "score of 7": b"id,score\n3,7\n",
    "score NaN": b"id,score\n3,nan\n",
    "score with a comma": b'id,score\n3,"0,5"\n',
    "score a word": b"id,score\n3,good\n",
    "score in percent": b"id,score\n3,50%\n",
    "quote open": b'id,score\n3,"1\n4,1\n',
    "text after a quote": b'id,score\n"3"x,1\n',
    "no UTF-8": b"id,score\n\xff,1\n",
    "UTF-16": "id,score\n3,1\n".encode("utf-16"),
    "zip": b"PK\x03\x04",
    "control characters": b"id,score\n3,\x1b[2J\n",
}


@pytest.mark.parametrize("content", CSV.values(), ids=CSV.keys())
def test_a_damaged_csv_is_named_in_one_line(tmp_path, content):
    refused(tmp_path / "run.csv", content)


def parquet(rename=None, **columns):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"id": [1, 2, 3], "score": [1.0, 0.0, 1.0], **columns})
    buffer = io.BytesIO()
    pq.write_table(table if rename is None else table.rename_columns(rename), buffer)
    return buffer.getvalue()


PARQUET = {
    "empty": lambda: b"",
    "no Parquet": lambda: b"id,score\n1,1\n",
    "cut": lambda: parquet()[:-30],
    "without head": lambda: parquet()[40:],
    "bytes changed": lambda: parquet()[:-200] + bytes(20) + parquet()[-180:],
    "foot alone": lambda: b"PAR1",
    "no rows": lambda: parquet(id=[], score=[]),
    "no id": lambda: parquet(["doc", "score"]),
    "no score": lambda: parquet(["id", "acc"]),
    "name twice": lambda: parquet(["id", "score", "score"], more=[1, 1, 1]),
    "id twice": lambda: parquet(id=[1, 2, 2]),
    "id null": lambda: parquet(id=[1, None, 3]),
    "id NaN": lambda: parquet(id=[1.0, float("nan"), 3.0]),
    "id empty": lambda: parquet(id=["a", "", "c"]),
    "score null": lambda: parquet(score=[1.0, None, 1.0]),
    "score NaN": lambda: parquet(score=[1.0, float("nan"), 1.0]),
    "score infinite": lambda: parquet(score=[1.0, float("inf"), 1.0]),
    "score of 7": lambda: parquet(score=[1, 7, 1]),
    "score a word": lambda: parquet(score=["1", "good", "1"]),
    "score a list": lambda: parquet(score=[[1], [0], [1]]),
    "score a struct": lambda: parquet(score=[{"value": 1}] * 3),
    "score bytes": lambda: parquet(score=[b"1", b"0", b"1"]),
}


@pytest.mark.parametrize("make", PARQUET.values(), ids=PARQUET.keys())
def test_a_damaged_parquet_file_is_named_in_one_line(tmp_path, make):
    refused(tmp_path / "run.parquet", make())


def refused(file, content):
    file.write_bytes(content)
    with pytest.raises(LogError) as told:
        read_log(file, Form(), "before")
    text = str(told.value)
    assert file.name in text
    assert "\n" not in text
    assert "\x1b" not in text
    assert len(text) < 500


def test_every_format_says_the_same(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "run.csv").write_text(
        "\n".join(["id,task,score,prompt", *(f'{r["id"]},math,{r["score"]},"{r["prompt"]}"' for r in ROWS)])
    )
    write_rows(tmp_path / "run.jsonl", ROWS)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "run.parquet")
    found = [read_log(tmp_path / f"run.{ending}", Form(), "before") for ending in ("csv", "jsonl", "parquet")]
    assert found[0].items == found[1].items == found[2].items
    long = "x" * 200_000
    (tmp_path / "long.csv").write_text(f'id,score,prompt\n3,1,"{long}"\n')
    assert len(read_log(tmp_path / "long.csv", Form(), "before").items) == 1, "a prompt of any length is read"


def test_another_format_is_read_by_a_function(tmp_path):
    for name, rows in (("old.txt", ROWS), ("new.txt", flipped(ROWS, 20))):
        (tmp_path / name).write_text("\n".join(f"{row['id']} {row['score']}" for row in rows))

    def reader(path):
        return [dict(zip(("id", "score"), line.split(), strict=True)) for line in path.read_text().splitlines()]

    paths = tmp_path / "old.txt", tmp_path / "new.txt"
    assert pdcl.compare(*paths, "+2pt", reader=reader).verdict == "FAIL"
    for broken, words in (
        (lambda path: 1 / 0, "ZeroDivisionError"),
        (lambda path: [3], "row 1 is 3"),
        (lambda path: None, "TypeError"),
    ):
        with pytest.raises(LogError, match=words):
            pdcl.compare(*paths, "+2pt", reader=broken)
    with pytest.raises(LogError, match=r"no reader for \.txt"):
        pdcl.compare(*paths, "+2pt")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"metric": "acc"}, "no effect"),
        ({"columns": {"name": "x"}}, "no role"),
        ({"columns": {"epoch": "run"}}, "no 'run'"),
        ({"by": "level"}, "column 'level'"),
        ({"groups": "doc"}, "column 'doc'"),
        ({"unpaired": "ignore"}, "undecided or drop"),
        ({"looks": 0}, "at least 1"),
        ({"confidence": 95}, "between 0.5 and 1"),
    ],
)
def test_an_option_that_says_nothing_here_is_refused_before_a_look(logs, tmp_path, option, words):
    with pytest.raises(UsageError, match=words):
        pdcl.compare(*logs(ROWS, ROWS), "+2pt", **option)
    assert not list(tmp_path.glob("*ledger.jsonl"))
