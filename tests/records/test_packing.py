"""Packed runs: one small file that stands for their records, wherever it is unpacked."""

from __future__ import annotations

import gzip
import json

import pytest

from pdcl.errors import PdclError, RecordError, UsageError
from pdcl.lab.studies.packing import DUAL_STEPS, pack, thinned, unpack
from pdcl.records import scan


def dual_steps(task: int, count: int) -> list[dict]:
    return [{"event": "duals_moved", "task": task, "step": k, "duals": [k / 3], "slacks": [0.1]} for k in range(count)]


def rewritten(path, **changes) -> None:
    """The packed file with other values in its only line."""
    line = json.loads(gzip.decompress(path.read_bytes()))
    path.write_bytes(gzip.compress(json.dumps({**line, **changes}).encode()))


def test_unpacked_runs_are_the_same_rows_elsewhere(tmp_path, fake_run):
    runs = [fake_run(tmp_path / "here", 0.8 + seed / 100, seed=seed) for seed in range(3)]
    assert pack(runs, tmp_path / "runs.gz") == 3
    found = unpack(tmp_path / "runs.gz", tmp_path / "there")
    assert (len(found.written), found.kept) == (3, [])
    before, after = scan(tmp_path / "here"), scan(tmp_path / "there")
    assert [(r.seed, r.mean_accuracy, r.options, r.verified) for r in before] == [
        (r.seed, r.mean_accuracy, r.options, r.verified) for r in after
    ]
    for name in ("config.json", "result.json"):
        assert (runs[0] / name).read_bytes() == (tmp_path / "there" / runs[0].name / name).read_bytes()


def test_a_packed_file_is_the_same_bytes_every_time_and_after_a_round_trip(tmp_path, fake_run):
    run = fake_run(tmp_path / "here")
    (run / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in dual_steps(1, 70)))
    pack([run], tmp_path / "a.gz")
    unpack(tmp_path / "a.gz", tmp_path / "there")
    pack([tmp_path / "there" / run.name], tmp_path / "b.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_a_run_that_is_there_stays_as_it_is(tmp_path, fake_run):
    run = fake_run(tmp_path / "here")
    pack([run], tmp_path / "runs.gz")
    (run / "mine.txt").write_text("kept")
    found = unpack(tmp_path / "runs.gz", tmp_path / "here")
    assert (found.written, found.kept) == ([], [run])
    assert (run / "mine.txt").read_text() == "kept"


def test_another_run_in_the_way_is_told(tmp_path, fake_run):
    run = fake_run(tmp_path / "here")
    pack([run], tmp_path / "runs.gz")
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "preset": "equal"}))
    with pytest.raises(RecordError, match="differs in preset"):
        unpack(tmp_path / "runs.gz", tmp_path / "here")


def test_events_keep_the_last_dual_step_of_every_task_and_no_training_step():
    between = [each for step in dual_steps(1, 70) for each in ({"event": "stepped", "task": 1}, step)]
    events = [*between, {"event": "evaluated"}, *dual_steps(2, 5)]
    found = list(thinned(events))
    moved = [[e["step"] for e in found if e["event"] == "duals_moved" and e["task"] == task] for task in (1, 2)]
    assert len(moved[0]) <= DUAL_STEPS
    assert moved[0][-1] == 69
    assert moved[1] == [0, 1, 2, 3, 4]
    assert [e["event"] for e in found if e["event"] != "duals_moved"] == ["evaluated"]


def test_numbers_of_events_are_short_wherever_they_stand():
    event = {"event": "promises_judged", "time": 1.0, "rows": [{"now": 0.123456789, "task": "a", "samples": 12345678}]}
    assert [*thinned([event])] == [{**event, "rows": [{"now": 0.1235, "task": "a", "samples": 12345678}]}]


@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", ""])
def test_no_file_leaves_its_run(tmp_path, fake_run, name):
    pack([fake_run(tmp_path / "here")], tmp_path / "runs.gz")
    rewritten(tmp_path / "runs.gz", run=name)
    with pytest.raises(RecordError, match=r"line 1 of .*runs\.gz"):
        unpack(tmp_path / "runs.gz", tmp_path / "there")
    pack([fake_run(tmp_path / "more")], tmp_path / "runs.gz", lambda run: {name: b"text"})
    with pytest.raises(RecordError, match="holds a file called"):
        unpack(tmp_path / "runs.gz", tmp_path / "there")
    assert not [*(tmp_path / "there").glob("**/*.json")]


@pytest.mark.parametrize("change", [{"texts": {}}, {"texts": None}, {"binary": {"a": "?"}}, {"schema": 7}, {"run": 3}])
def test_damaged_lines_are_refused_by_number(tmp_path, fake_run, change):
    pack([fake_run(tmp_path / "here")], tmp_path / "runs.gz")
    rewritten(tmp_path / "runs.gz", **change)
    with pytest.raises(RecordError, match="line 1 of"):
        unpack(tmp_path / "runs.gz", tmp_path / "there")


def test_a_changed_result_is_refused(tmp_path, fake_run):
    run = fake_run(tmp_path / "here")
    pack([run], tmp_path / "runs.gz")
    texts = json.loads(gzip.decompress((tmp_path / "runs.gz").read_bytes()))["texts"]
    texts["result.json"] = texts["result.json"].replace("0.8", "0.9")
    rewritten(tmp_path / "runs.gz", texts=texts)
    with pytest.raises(RecordError, match="sha256"):
        unpack(tmp_path / "runs.gz", tmp_path / "there")


def test_what_is_no_packed_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="there is no file"):
        unpack(tmp_path / "none.gz", tmp_path / "out")
    (tmp_path / "text.gz").write_text("not gzip")
    with pytest.raises(RecordError, match="holds no packed runs"):
        unpack(tmp_path / "text.gz", tmp_path / "out")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"{}" * 1000)[:-9])
    with pytest.raises(PdclError, match=r"cut\.gz"):
        unpack(tmp_path / "cut.gz", tmp_path / "out")
