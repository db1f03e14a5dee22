"""A result that was changed after it was written is shown nowhere, and doesn't count as finished."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import pdcl
from pdcl.cli import main
from pdcl.errors import RecordError, RunFinished
from pdcl.lab.reports.live.following import Directory
from pdcl.lab.studies import execute
from pdcl.lab.studies.parsing import parse
from pdcl.records import Record, read_result, survey
from pdcl.reports.writing import report
from pdcl.running.resume import resume

QUICK = """
[study]
name = "quick"
streams = ["synthetic"]
methods = ["finetune"]
seeds = 2

[streams.synthetic]
stream_options = { tasks = 2, size = 40, test_size = 20 }

[options]
epochs = 1
network = "linear"
"""


def edit(run: Path) -> None:
    """What someone does who would like another number."""
    path = run / "result.json"
    text = path.read_text()
    assert '"mean_accuracy": 0.969' in text
    path.write_text(text.replace('"mean_accuracy": 0.969', '"mean_accuracy": 0.569'))


@pytest.fixture
def edited(tmp_path, fake_run):
    """Three runs, the first of them edited."""
    runs = [fake_run(tmp_path / "runs", seed=seed, accuracy=0.969) for seed in range(3)]
    edit(runs[0])
    return runs[0]


def test_an_edited_number_is_refused_with_the_file_and_the_way_out(edited):
    with pytest.raises(RecordError, match=rf"{edited}/result.json was changed .*; delete it .*`pdcl resume {edited}`"):
        read_result(edited)


def test_a_table_leaves_it_out_and_says_so(edited, capsys):
    found = survey(edited.parent)
    assert [row.seed for row in found.rows] == [1, 2]
    assert main(["results", str(edited.parent)]) == 0
    said = capsys.readouterr().out
    assert f"Left out: {edited}/result.json was changed" in said
    assert "56.9" not in said


def test_a_report_and_figures_leave_it_out_and_say_so(edited, tmp_path, capsys):
    page = report([edited.parent])
    assert "was changed since it was written" in page
    assert "0.569" not in page
    pytest.importorskip("matplotlib")
    assert main(["figures", str(edited.parent), "--out", str(tmp_path / "figures")]) == 0
    assert "was changed since it was written" in capsys.readouterr().out


def test_the_live_page_shows_the_problem_instead_of_the_number(edited):
    directory = Directory(edited.parent)
    directory.refresh()
    (row,) = [row for row in directory.changes(0)[1] if row["seed"] == 0]
    assert row["mean_accuracy"] is None
    assert row["status"] != "finished"
    assert "result.json was changed" in row["problems"][0]


@pytest.mark.parametrize("damage", [b"", b"{", b'{"schema": 1}', b"\x00" * 500], ids=["empty", "cut", "bare", "zeros"])
def test_a_damaged_result_is_no_finished_run(damage, tmp_path, fake_run):
    path = fake_run(tmp_path)
    with pytest.raises(RunFinished):
        Record.reopen(path)
    (path / "result.json").write_bytes(damage)
    for attempt in (lambda: Record.reopen(path), lambda: resume(path)):
        with pytest.raises(RecordError, match=r"result\.json") as caught:
            attempt()
        assert not isinstance(caught.value, RunFinished)


def test_a_study_does_not_count_it_as_finished_and_the_way_out_works(tmp_path):
    study = parse(tomllib.loads(QUICK), QUICK)
    before = {ended.path: ended.accuracy for ended in execute(study, tmp_path).done}
    run = next(tmp_path.glob("synthetic-finetune-*"))
    path = run / "result.json"
    path.write_text(path.read_text().replace('"mean_accuracy": 0.', '"mean_accuracy": 0.9'))
    outcome = execute(study, tmp_path)
    assert (len(outcome.skipped), len(outcome.failures)) == (1, 1)
    assert f"`pdcl resume {run}`" in str(outcome.failures[0].cause)
    path.unlink()
    resume(run)
    assert read_result(run)["mean_accuracy"] == before[str(run)]
    assert len(execute(study, tmp_path).skipped) == 2


def test_every_changed_byte_is_noticed_or_changes_nothing(tmp_path, fake_run):
    path = fake_run(tmp_path) / "result.json"
    whole, truth = path.read_bytes(), read_result(path.parent)
    unnoticed = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            found = read_result(path.parent)
        except RecordError:
            continue
        unnoticed += 1
        assert {key: found[key] for key in truth} == truth
        assert not survey(tmp_path).rows[0].verified
    # The name of the checksum itself: without it the file looks like one of an older version.
    assert unnoticed <= len('"sha256"')


def test_results_of_older_versions_are_read_and_called_unverified(tmp_path, fake_run, capsys):
    path = fake_run(tmp_path) / "result.json"
    content = json.loads(path.read_text())
    del content["sha256"]
    path.write_text(json.dumps(content))
    assert read_result(path.parent) == content
    fake_run(tmp_path, seed=1)
    assert main(["results", str(tmp_path)]) == 0
    assert "Not verified: 1 of 2 results have no checksum" in capsys.readouterr().out


@pytest.mark.parametrize(
    "changes",
    [
        {"accuracy": 3},
        {"mean_accuracy": 10**400},
        {"cost": []},
        {"mean_accuracy": "high"},
        {"accuracy": {"task_il": 1}},
    ],
)
def test_values_of_the_wrong_kind_cost_one_run_and_not_the_table(changes, tmp_path, fake_run):
    path = fake_run(tmp_path, seed=0) / "result.json"
    content = {key: value for key, value in json.loads(path.read_text()).items() if key != "sha256"}
    path.write_text(json.dumps({**content, **changes}))
    fake_run(tmp_path, seed=1)
    found = survey(tmp_path)
    assert [row.seed for row in found.rows] == [1]
    assert len(found.unreadable) == 1


def test_a_run_writes_a_checksum(tmp_path):
    path = pdcl.run("synthetic", "finetune", network="linear", epochs=1, out=tmp_path).path
    assert len(json.loads((path / "result.json").read_text())["sha256"]) == 64
