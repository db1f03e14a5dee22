from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from pdcl.errors import PdclError, RecordError, RunFinished, RunUnfinished, UsageError
from pdcl.learning.events import Event, Stepped, Warned
from pdcl.records import Record, read_config, read_events, read_result, run_name
from pdcl.records.writing import dumps
from pdcl.storage.disk import write_whole


def test_a_record_gives_back_what_it_was_given(tmp_path, fake_run):
    with Record.create(tmp_path / "deep" / "runs", "digits-pdcl-m100-s0", fake_run.configured()) as record:
        record.listener(Stepped(0, 0, 10, 0.5, {"λ": 0.25}))
        record.listener(Warned(1, "tolerance too tight"))
        record.write_result(fake_run.result())
    assert read_config(record.path) == {"schema": 1, **fake_run.configured()}
    assert read_result(record.path) == {"schema": 1, **fake_run.result()}
    first, second = read_events(record.path)
    said = {"event": "stepped", "task": 0, "epoch": 0, "step": 10, "loss": 0.5, "scalars": {"λ": 0.25}}
    assert first == {"time": first["time"], **said}
    assert second["event"] == "warned"
    assert 0 <= first["time"] <= second["time"]
    assert sorted(path.name for path in record.path.iterdir()) == ["config.json", "events.jsonl", "result.json"]
    assert os.listdir(tmp_path / "deep" / "runs") == [record.path.name]


def test_events_are_on_disk_before_the_run_ends(tmp_path, fake_run):
    record = Record.create(tmp_path, "run", fake_run.configured())
    record.listener(Warned(0, "now"))
    assert [event["message"] for event in read_events(record.path)] == ["now"]
    record.close()


def test_the_same_run_again_is_refused_and_says_what_to_do(tmp_path, fake_run):
    unfinished = fake_run(tmp_path / "a", accuracy=None)
    with pytest.raises(RunUnfinished, match="pdcl resume") as caught:
        fake_run(tmp_path / "a")
    assert caught.value.path == unfinished
    finished = fake_run(tmp_path / "b", accuracy=0.7)
    with pytest.raises(RunFinished) as caught_finished:
        fake_run(tmp_path / "b")
    assert caught_finished.value.path == finished
    assert read_result(finished)["mean_accuracy"] == 0.7


def test_another_run_of_the_same_name_is_never_taken_for_it(tmp_path, fake_run):
    Record.create(tmp_path, "run", fake_run.configured())
    with pytest.raises(RecordError, match="differs in data, alpha"):
        Record.create(tmp_path, "run", fake_run.configured({"alpha": 0.9}, data={"train": "beef"}))


def test_new_versions_and_sources_make_no_other_run(tmp_path, fake_run):
    Record.create(tmp_path, "run", fake_run.configured())
    with pytest.raises(RunUnfinished):
        Record.create(tmp_path, "run", fake_run.configured({"alpha": 0.5}, versions={"pdcl": "9"}))


def test_where_samples_lie_makes_no_other_run(tmp_path, fake_run):
    """A study of before `memory_in_ram` was an option goes on: its runs were taken for others once."""
    Record.create(tmp_path, "run", fake_run.configured({"alpha": 0.5}))
    with pytest.raises(RunUnfinished):
        Record.create(tmp_path, "run", fake_run.configured({"alpha": 0.5, "memory_in_ram": "1GB"}))


def test_an_option_that_came_later_makes_another_run_only_where_it_does_something(tmp_path, fake_run):
    Record.create(tmp_path, "run", fake_run.configured({"alpha": 0.5}))
    with pytest.raises(RunUnfinished):
        Record.create(tmp_path, "run", fake_run.configured({"alpha": 0.5, "soften": 0.0}))
    with pytest.raises(RecordError, match="it differs in soften"):
        Record.create(tmp_path, "run", fake_run.configured({"alpha": 0.5, "soften": 0.6}))


def test_a_directory_that_holds_something_else_is_left_alone(tmp_path, fake_run):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("five years")
    (tmp_path / "file").write_text("")
    for name in ("run", "file"):
        with pytest.raises(RecordError, match="something else"):
            Record.create(tmp_path, name, fake_run.configured())
    assert (tmp_path / "run" / "thesis.tex").read_text() == "five years"
    assert sorted(os.listdir(tmp_path)) == ["file", "run"]


def test_an_empty_directory_is_as_good_as_none(tmp_path, fake_run):
    (tmp_path / "run").mkdir()
    assert read_config(Record.create(tmp_path, "run", fake_run.configured()).path)["seed"] == 0


def test_a_place_that_cannot_be_written_is_named(tmp_path, fake_run):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match=r"can't write .*file.*--out"):
        Record.create(tmp_path / "file" / "runs", "run", fake_run.configured())


@pytest.mark.parametrize(
    "name", ["..", ".", "", ".hidden", "a/b", "a\\b", "a b", "a\nb", "x" * 201, "é" * 150, "end.", "-x", "C:"]
)
def test_unsafe_names_are_refused(tmp_path, fake_run, name):
    with pytest.raises(UsageError, match="can't name"):
        Record.create(tmp_path, name, fake_run.configured())
    assert os.listdir(tmp_path) == []


def test_names_carry_what_differs_from_the_preset():
    assert run_name("digits", "pdcl-s", 100, 3) == "digits-pdcl-s-m100-s3"
    assert run_name("ziffern_β", "er", "64MB", 0) == "ziffern_β-er-m64MB-s0"
    assert run_name("digits", "finetune", None, 0) == "digits-finetune-m0-s0"
    one = run_name("digits", "pdcl", 100, 0, {"alpha": 0.3, "lr": 0.1})
    assert one == run_name("digits", "pdcl", 100, 0, {"lr": 0.1, "alpha": 0.3})
    assert one != run_name("digits", "pdcl", 100, 0, {"lr": 0.1, "alpha": 0.4})
    with pytest.raises(UsageError, match="my data"):
        run_name("my data", "er", 1, 0)


def test_a_config_or_result_that_lacks_something_is_refused_before_it_is_written(tmp_path, fake_run):
    with pytest.raises(RecordError, match="lacks seed"):
        Record.create(tmp_path, "run", {key: value for key, value in fake_run.configured().items() if key != "seed"})
    assert os.listdir(tmp_path) == []
    record = Record.create(tmp_path, "run", fake_run.configured())
    with pytest.raises(RecordError, match="lacks duals, cost"):
        record.write_result({k: v for k, v in fake_run.result().items() if k not in ("duals", "cost")})
    assert not (record.path / "result.json").exists()


def test_a_result_is_written_once(tmp_path, fake_run):
    record = Record.create(tmp_path, "run", fake_run.configured())
    record.write_result(fake_run.result(accuracy=0.5))
    with pytest.raises(RunFinished):
        record.write_result(fake_run.result(accuracy=0.6))
    assert read_result(record.path)["mean_accuracy"] == 0.5


BEGIN = """
import json, sys
from pdcl.errors import RunUnfinished
from pdcl.records import Record
out, config = sys.argv[1], json.loads(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
try:
    Record.create(out, "run", config)
    print("won")
except RunUnfinished:
    print("lost")
"""


def test_of_processes_that_begin_the_same_run_at_once_one_wins(tmp_path, fake_run):
    command = [sys.executable, "-c", BEGIN, str(tmp_path), json.dumps(fake_run.configured())]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    assert sorted(racer.communicate(timeout=60)[0] for racer in racers) == ["lost\n", "lost\n", "won\n"]
    assert os.listdir(tmp_path) == ["run"]


def test_a_torn_last_line_is_forgiven_and_a_torn_middle_is_not(tmp_path, fake_run):
    with Record.create(tmp_path, "run", fake_run.configured()) as record:
        record.listener(Warned(0, "whole"))
        record.listener(Warned(1, "torn"))
    events = record.path / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-9])
    assert [event["message"] for event in read_events(record.path)] == ["whole"]
    events.write_bytes(b'{"time": 1\n' + events.read_bytes())
    with pytest.raises(RecordError, match=r"line 1 of .*events\.jsonl"):
        list(read_events(record.path))


def test_a_reopened_record_goes_on_after_the_last_whole_line(tmp_path, fake_run):
    with Record.create(tmp_path, "run", fake_run.configured()) as record:
        record.listener(Warned(0, "whole"))
    events = record.path / "events.jsonl"
    late = events.read_text().replace('"time": 0', '"time": 1000')
    events.write_text(late + '{"time": 2000, "eve')
    with Record.reopen(record.path) as again:
        again.listener(Warned(0, "after"))
    first, second = read_events(record.path)
    assert (first["message"], second["message"]) == ("whole", "after")
    assert 1000 <= second["time"] < 2000


def test_reopening_at_a_checkpoint_forgets_what_will_happen_again(tmp_path, fake_run):
    with Record.create(tmp_path, "run", fake_run.configured()) as record:
        assert record.position == 0
        record.listener(Warned(0, "before"))
        position = record.position
        record.listener(Warned(1, "undone"))
    with Record.reopen(record.path, position) as again:
        again.listener(Warned(1, "done again"))
    assert [event["message"] for event in read_events(record.path)] == ["before", "done again"]


def test_only_an_unfinished_run_is_reopened(tmp_path, fake_run):
    assert Record.reopen(fake_run(tmp_path, accuracy=None)).position == 0
    with pytest.raises(RunFinished):
        Record.reopen(fake_run(tmp_path, seed=1))
    with pytest.raises(RecordError, match="no run"):
        Record.reopen(tmp_path / "nothing")


def test_json_is_strict_and_numbers_that_are_not_finite_become_null(tmp_path, fake_run):
    @dataclass(frozen=True)
    class Odd(Event):
        values: list[float]
        array: object
        tensor: object
        where: object

    event = Odd([math.nan, math.inf, -math.inf, 1.0], np.array([1.5, np.nan]), torch.tensor([2, 3]), tmp_path)
    with Record.create(tmp_path, "run", fake_run.configured()) as record:
        record.listener(event)
        record.write_result({**fake_run.result(), "mean_accuracy": math.nan})
    text = (record.path / "events.jsonl").read_text()

    def reject(constant: str) -> None:
        raise AssertionError(constant)

    line = json.loads(text, parse_constant=reject)
    assert line["values"] == [None, None, None, 1.0]
    assert (line["array"], line["tensor"], line["where"]) == ([1.5, None], [2, 3], str(tmp_path))
    assert read_result(record.path)["mean_accuracy"] is None
    with pytest.raises(TypeError, match="no place in a record"):
        dumps({"f": print})


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "result.json"
    path.write_text("old")
    with pytest.raises(TypeError):
        write_whole(path, "new, but no bytes")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["result.json"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"schema": 2}', "schema version 2"),
        (b'{"schema": 1}', "lacks stream"),
        (b"{", "not JSON"),
        (b"[1]", "holds list"),
    ],
)
def test_a_damaged_or_newer_file_is_refused_by_name(tmp_path, fake_run, content, complaint):
    path = fake_run(tmp_path)
    (path / "config.json").write_bytes(content)
    with pytest.raises(RecordError, match=complaint) as caught:
        read_config(path)
    assert str(path / "config.json") in str(caught.value)


def test_a_missing_result_is_told_from_a_missing_run(tmp_path, fake_run):
    with pytest.raises(RecordError, match="no result yet"):
        read_result(fake_run(tmp_path, accuracy=None))
    with pytest.raises(RecordError, match="no run"):
        read_result(tmp_path / "elsewhere")
    (tmp_path / "odd" / "config.json").mkdir(parents=True)
    with pytest.raises(RecordError, match="can't be read"):
        read_config(tmp_path / "odd")


def test_errors_survive_the_way_from_another_process(tmp_path):
    error = pickle.loads(pickle.dumps(RunFinished("done", tmp_path)))
    assert (type(error), str(error), error.path) == (RunFinished, "done", tmp_path)
    assert isinstance(error, PdclError)
