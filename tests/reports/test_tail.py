from __future__ import annotations

import json
import os

import pytest

from pdcl.errors import RecordError
from pdcl.lab.reports.tail import LONGEST_LINE, Tail, opened, read_object


def test_a_growing_file_is_read_once_and_a_torn_line_waits_for_its_end(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"a": 1}\n{"a"')
    tail = Tail(path)
    assert list(tail.events()) == [{"a": 1}]
    with path.open("a") as file:
        file.write(': 2}\n{"a": 3}\n')
    assert list(tail.events()) == [{"a": 2}, {"a": 3}]
    assert list(tail.events()) == []
    assert tail.bad == 0


def test_a_file_that_became_shorter_is_read_again(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("1\n2\n3\n")
    tail = Tail(path)
    list(tail.events())
    path.write_text("4\n")
    assert list(tail.events()) == [4]
    assert tail.rewound


def test_bad_and_oversized_lines_are_counted_and_passed_over(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"1\n\xff\xfe{\n" + b"[" * 200_000 + b"\n" + b'"' + b"x" * (3 * LONGEST_LINE) + b'"\n\n2\n')
    tail = Tail(path)
    assert list(tail.events()) == [1, 2]
    assert tail.bad == 3


def test_reading_in_slices_gives_the_same_events(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps({"n": n, "pad": "x" * 500}) + "\n" for n in range(5000)))
    tail, found = Tail(path), []
    while news := [event["n"] for event in tail.events(most=1)]:
        found += news
    assert found == list(range(5000))


def test_no_link_leads_out_and_no_pipe_blocks(tmp_path):
    root = tmp_path / "runs"
    root.mkdir()
    (tmp_path / "secret.json").write_text('{"secret": 1}')
    (root / "config.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(RecordError, match="leads out"):
        opened(root / "config.json", root.resolve())
    with pytest.raises(RecordError):
        read_object(root / "config.json", root.resolve())
    os.mkfifo(root / "events.jsonl")
    assert list(Tail(root / "events.jsonl", root.resolve()).events()) == []
    (root / "loop").symlink_to(root / "loop")
    assert list(Tail(root / "loop", root.resolve()).events()) == []


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\x00"])
def test_what_is_no_object_is_said_to_be_none(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(RecordError):
        read_object(tmp_path / "config.json")
    assert read_object(tmp_path / "absent.json") is None
