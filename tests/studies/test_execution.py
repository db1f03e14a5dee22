"""Carrying a study out: what is skipped, what is shown, what is written."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pdcl
from pdcl.cli import main
from pdcl.errors import PdclError, RunFinished, UsageError
from pdcl.lab.comparing import group
from pdcl.lab.studies import Ended, LocalProcesses, Planned, Study, execute
from pdcl.lab.studies.estimating import Estimator
from pdcl.lab.studies.parsing import parse
from pdcl.lab.studies.worker import _run
from pdcl.records import read_config, scan

LOADS: list[str] = []
TUNED = """
[tune]
budget = 2
seeds = 1
[tune.candidates.pdcl]
tolerance = ["+5pt", '{}']
"""


def made(text: str, **changes: Any) -> Study:
    content = tomllib.loads(text)
    content["study"] |= changes
    return parse(content, text)


def test_what_is_done_is_not_done_again(tmp_path: Path, quick: str, engine: Any) -> None:
    first = execute(made(quick), tmp_path, engine)
    assert (len(first.done), len(first.skipped)) == (4, 0)
    more = execute(made(quick, seeds=3), tmp_path, engine)
    assert (len(more.done), len(more.skipped)) == (2, 4)
    assert (tmp_path / "study.toml").read_text() == quick


def test_a_changed_option_is_another_run(tmp_path: Path, quick: str, engine: Any) -> None:
    execute(made(quick), tmp_path, engine)
    outcome = execute(made(quick.replace("epochs = 1", "epochs = 2")), tmp_path, engine)
    assert len(outcome.done) == 4
    assert len(scan(tmp_path)) == 8


@pytest.mark.parametrize(
    ("tolerance", "said"),
    [
        ("0.1,", "pdcl on synthetic: .* has 1 values for 2 tasks"),
        ("legcy:+2pt, *:+5pt", "pdcl on synthetic: .* names 'legcy', which is no task here"),
        ("plna=gold:+2pt", "pdcl on synthetic: .* has no column 'plna'"),
    ],
)
@pytest.mark.parametrize("section", ["[methods.pdcl]\ntolerance = '{}'\n", TUNED])
def test_a_misspelt_limit_is_refused_before_any_run(
    section: str, tolerance: str, said: str, tmp_path: Path, quick: str, engine: Any
) -> None:
    """Off, all other runs are carried out first, and this one is listed as failed."""
    study = made(quick + section.format(tolerance), methods=["er", "pdcl"])
    with pytest.raises(UsageError, match=said):
        execute(study, tmp_path / "out", engine)
    assert engine.jobs == []
    assert not (tmp_path / "out").exists()


@pdcl.register_stream("elsewhere")
def elsewhere() -> Any:
    raise PdclError("its data isn't here")


def test_a_limit_of_a_stream_whose_data_is_not_there_stops_no_other(tmp_path: Path, quick: str, engine: Any) -> None:
    text = quick.replace('["synthetic"]', '["synthetic", "elsewhere"]') + "[methods.pdcl]\ntolerance = 'a:+5pt'\n"
    text = text.replace("[options]", '[streams.synthetic.pdcl]\ntolerance = "+5pt"\n\n[options]')
    outcome = execute(made(text, methods=["pdcl"], seeds=1), tmp_path / "out", engine)
    assert [ended.job.spec.stream for ended in outcome.done] == ["synthetic"]
    assert [ended.job.spec.stream for ended in outcome.failures] == ["elsewhere"]


def test_variants_stand_under_their_label_in_the_table(tmp_path: Path, quick: str, engine: Any) -> None:
    execute(made(quick + '[variants.er-big]\nmethod = "er"\nreplay = 15\n'), tmp_path, engine)
    groups = {member.label: member for member in group(scan(tmp_path))}
    assert set(groups) == {"finetune", "er", "er-big"}
    assert groups["er-big"].first.method == "er"
    config = read_config(groups["er-big"].first.path)
    assert (config["label"], config["options"]["replay"]) == ("er-big", {"value": 15, "source": "study"})


def test_a_run_that_was_begun_is_finished(tmp_path: Path, quick: str, engine: Any) -> None:
    execute(made(quick, seeds=1), tmp_path, engine)
    (row,) = [row for row in scan(tmp_path) if row.method == "er"]
    result = row.path / "result.json"
    before = row.mean_accuracy
    result.unlink()
    outcome = execute(made(quick, seeds=1), tmp_path, engine)
    assert [ended.job.spec.method for ended in outcome.done] == ["er"]
    assert {row.method: row.mean_accuracy for row in scan(tmp_path)}["er"] == before


def test_a_stream_without_data_fails_its_runs_and_no_other(
    tmp_path: Path, quick: str, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDCL_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PDCL_CACHE", str(tmp_path / "cache"))
    outcome = execute(made(quick, streams=["mnist", "synthetic"], seeds=1), tmp_path / "out", engine)
    assert {ended.job.spec.stream for ended in outcome.done} == {"synthetic"}
    assert [ended.job.spec.method for ended in outcome.failures] == ["finetune", "er"]
    assert "pdcl data fetch mnist" in str(outcome.failures[0].cause)


def test_the_listener_hears_the_plan_and_every_end(tmp_path: Path, quick: str, engine: Any) -> None:
    heard: list[Any] = []
    execute(made(quick), tmp_path, engine, heard.append)
    assert isinstance(heard[0], Planned)
    assert len(heard[0].jobs) == 4
    assert sum(isinstance(notice, Ended) for notice in heard) == 4


def test_estimates_come_from_runs_of_the_same_kind(tmp_path: Path, quick: str) -> None:
    er, finetune = made(quick).runs()[1], made(quick).runs()[0]
    known = Estimator()
    rough = known.seconds(er)
    known.learn("synthetic", "er", 10, 40.0)
    known.learn("synthetic", "er", 10, 60.0)
    assert rough is not None
    assert known.seconds(er) == 50.0
    assert known.total([er, er, er, er], workers=2) == 100.0
    assert known.seconds(finetune) == 50.0
    own = made(quick.replace("synthetic", "digits").replace("stream_options", "# "), streams=["digits"]).runs()[0]
    assert known.seconds(own) is not None
    unknown = Estimator()
    assert unknown.total([er, replace(er, stream="own")], workers=2) is None


def test_a_dry_run_shows_all_and_writes_nothing(
    tmp_path: Path, quick: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "quick.toml"
    tune = "[tune]\nbudget = 2\n[tune.candidates]\ner = { lr = [0.1, 0.2] }\n"
    file.write_text(quick + tune)
    monkeypatch.chdir(tmp_path)
    assert main(["study", str(file), "--dry-run", "--workers", "2"]) == 0
    said = capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["quick.toml"]
    assert "6 runs: 4 to run, 2 after tuning" in said
    assert "estimated time with 2 at a time: 0:00:0" in said


def test_a_dry_run_says_that_it_runs_plug_ins(
    tmp_path: Path, quick: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "quick.toml"
    file.write_text(quick.replace("[study]\n", '[study]\nplugins = ["own.py"]\n', 1))
    (tmp_path / "own.py").write_text("print('own code runs')")
    monkeypatch.chdir(tmp_path)
    assert main(["study", str(file), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert said.index("running plug-ins, which are Python code") < said.index("own code runs")
    with pytest.raises(SystemExit):
        main(["study", "--help"])
    assert "Plug-ins of the study are run" in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_a_dry_run_knows_what_is_done(
    tmp_path: Path, quick: str, engine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "quick.toml"
    file.write_text(quick)
    execute(made(quick, seeds=1), tmp_path / "out", engine)
    assert main(["study", str(file), "--dry-run", "--out", str(tmp_path / "out")]) == 0
    assert "4 runs: 2 finished, 2 to run" in capsys.readouterr().out


def test_an_engine_needs_a_worker() -> None:
    with pytest.raises(ValueError, match="workers=0"):
        LocalProcesses(0)


@pdcl.register_stream("counted")
def counted() -> pdcl.Stream:
    """A stream that says when it is loaded."""
    LOADS.append("counted")
    return replace(pdcl.stream("synthetic", tasks=2, size=40, test_size=20), name="counted")


def test_a_stream_is_loaded_once_a_process_not_once_a_run(tmp_path: Path, engine: Any) -> None:
    head = {"name": "c", "streams": ["counted"], "methods": ["finetune", "er"], "memory": [10], "seeds": 2}
    tune = {"budget": 2, "share": 0.2, "candidates": {"er": {"lr": [0.1, 0.2]}}}
    execute(parse({"study": head, "options": {"epochs": 1, "network": "linear"}, "tune": tune}), tmp_path, engine)
    assert len(engine.jobs) == 6
    # Once to plan, once where the runs are carried out.
    assert len(LOADS) == 2


@pytest.mark.parametrize(("found", "told"), [(0.0, 0.0), (0.5, 0.5), (None, math.nan)])
def test_a_finished_run_that_got_nothing_right_has_accuracy_zero(
    found: float | None, told: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finished(*_: Any, **__: Any) -> None:
        raise RunFinished("done before", tmp_path)

    monkeypatch.setattr("pdcl.running.run.run", finished)
    monkeypatch.setattr("pdcl.records.reading.read_result", lambda _: {"mean_accuracy": found})
    spec = SimpleNamespace(preset=None, given={}, label="er", method="er")
    asked: Any = SimpleNamespace(spec=spec, snapshot=None, out=tmp_path)
    nothing: Any = None
    assert _run(asked, nothing)[1] == pytest.approx(told, nan_ok=True)
