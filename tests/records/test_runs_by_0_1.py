"""Runs of version 0.1, whose `default` is `tuned` today: they are shown with today's, and not run again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import pdcl
from pdcl.cli import main
from pdcl.records import read_result

RUNS = Path(__file__).parent / "runs_by_0_1"
# What the two runs were asked for, with a name for the preset that none had to be named for.
STUDY = """
[study]
name = "old"
streams = ["digits"]
methods = ["er", "pdcl"]
memory = [30]
seeds = 1
preset = "tuned"

[parts.short]
options = { epochs = 1, network = "mlp:8" }
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RUNS, tmp_path / "runs"))


def test_tables_put_them_beside_runs_of_today(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--epochs", "1", "--network", "mlp:8", "--memory", "30", "--seed", "1", "--preset", "tuned"]
    assert main(["run", "digits", "pdcl", *asked, "--out", str(old)]) == 0
    capsys.readouterr()
    assert main(["results", str(old), "--format", "json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert {(each["label"], each["preset"], len(each["seeds"])) for each in groups} == {
        ("er", "tuned", 1),
        ("pdcl", "tuned", 2),
    }


def test_a_study_finds_them_done_and_goes_on_with_what_was_begun(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(old.glob("digits-pdcl-*"))
    result = read_result(path)
    (path / "result.json").unlink()
    (tmp_path / "old.toml").write_text(STUDY)
    names = sorted(each.name for each in old.iterdir())
    assert main(["study", str(tmp_path / "old.toml"), "--out", str(old), "--workers", "1"]) == 0
    assert "1 run now, 1 before, 0 failed" in capsys.readouterr().out
    assert sorted(each.name for each in old.iterdir() if each.is_dir()) == names
    again = read_result(path)
    assert again["accuracy"] == result["accuracy"]
    # Another processor rounds otherwise in the seventh digit.
    assert again["duals"] == [pytest.approx(duals, rel=1e-4, abs=1e-6) for duals in result["duals"]]


def test_a_run_of_today_s_default_is_another_run(old: Path) -> None:
    with pytest.raises(pdcl.errors.RecordError, match="holds another run: it differs in preset"):
        pdcl.run("digits", "er", out=old, memory=30, study={"epochs": 1, "network": "mlp:8"})


def test_the_command_of_a_report_names_the_preset(old: Path, tmp_path: Path) -> None:
    assert main(["report", str(old), "--out", str(tmp_path / "report.html")]) == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "pdcl run digits er --preset tuned" in text
    assert "--preset default" not in text
