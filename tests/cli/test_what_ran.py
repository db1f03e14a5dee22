"""One name, two algorithms: tables and reports say which of them ran."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pdcl.cli import main
from pdcl.records import read_result, survey

NAMES = {
    "digits": {"pdcl": "pdcl"},
    "synthetic": {
        "pdcl": "pdcl, no limits = even",
        "pdcl0": "pdcl0, no limits = even",
        "pdcl-s": "pdcl-s, no limits",
        "even": "even",
        "er": "er",
    },
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pdcl on a stream whose preset states limits, and on one without presets, beside what it is there."""
    out = tmp_path_factory.mktemp("runs")
    for stream, methods in NAMES.items():
        for method in methods:
            preset = ["--preset", "tuned"] if stream == "digits" else []
            assert main(["run", stream, method, "--memory", "30", "--epochs", "1", "--out", str(out), *preset]) == 0
    return out


def test_without_limits_pdcl_is_even_to_the_bit(runs: Path) -> None:
    found = {row.method: read_result(row.path)["accuracy"] for row in survey(runs).rows if row.stream == "synthetic"}
    assert found["pdcl"] == found["pdcl0"] == found["even"] != found["pdcl-s"]


def test_a_table_names_what_ran(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", str(runs), "--against", "pdcl", "--format", "md"]) == 0
    text = capsys.readouterr().out
    for stream, methods in NAMES.items():
        table = text.split(f"**{stream}, preset ")[1].split("\n**")[0]
        names = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[4:] if line]
        assert sorted(names) == sorted(methods.values())
    assert "synthetic, preset auto: difference to pdcl, no limits = even on the same seeds" in text


def test_figures_for_programs_name_it_beside_the_label(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", str(runs), "--format", "json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert {(each["stream"], each["label"]): each["ran"] for each in groups} == {
        (stream, method): name for stream, methods in NAMES.items() for method, name in methods.items()
    }


def test_a_report_names_what_ran(runs: Path, tmp_path: Path) -> None:
    assert main(["report", str(runs), "--out", str(tmp_path / "report.html")]) == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    names = set(re.findall(r'"label": ?"([^"]+)"', text))
    assert {name for methods in NAMES.values() for name in methods.values()} <= names


def test_a_run_says_at_its_start_what_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--memory", "30", "--epochs", "1", "--out", str(tmp_path)]
    for more, name in (([], "pdcl, no limits = even"), (["--base", "0"], "pdcl, no limits, base 0")):
        assert main(["run", "synthetic", "pdcl", *words, *more]) == 0
        assert f"synthetic · {name} · seed 0" in capsys.readouterr().out
    assert main(["run", "synthetic", "pdcl", *words, "--tolerance", "+5pt"]) == 0
    assert "synthetic · pdcl · seed 0" in capsys.readouterr().out
