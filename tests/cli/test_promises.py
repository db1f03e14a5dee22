"""Limits on the command line and in studies: told after each task, and refused before any work."""

from __future__ import annotations

import json
import warnings
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import pdcl
from pdcl.cli import main
from pdcl.cli.display import Display
from pdcl.errors import UsageError
from pdcl.judging.table import Promises
from pdcl.judging.verdicts import Question, judge
from pdcl.lab.studies.parsing import parse
from pdcl.learning.events import Evaluated, PromisesJudged, RunBegan, TaskBegan
from pdcl.limits.limit import Limit

QUICK = ("--memory", "200", "--epochs", "1")


def _table() -> Promises:
    rise, wrong = Limit("+2pt", rise=0.02), [1] * 60 + [0] * 140
    asked = [
        Question("legacy", rise, wrong, [0] * 200),
        Question("fresh", Limit("60%", value=0.6), wrong),
        Question("new one", Limit("5%", value=0.05), [1] * 50, kind="new"),
    ]
    return judge(asked)


def _shown(terminal: bool, width: int = 80) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=width, highlight=False, color_system=None)
    display = Display(console)
    for event in (
        RunBegan("digits", "pdcl", 2, 1, 0),
        TaskBegan(0, "legacy", 100, 10),
        PromisesJudged(0, json.loads(json.dumps(_table().as_json()))),
        Evaluated(0, [0.9, 0.0], [0.9, 0.0]),
    ):
        display.listener(event)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return str(text)


def test_the_table_stands_below_its_task_in_lines_that_are_not_cut() -> None:
    text = _shown(terminal=False)
    assert text.index("task 1/2") < text.index("+2pt →")
    for line in str(_table()).splitlines():
        assert line in text


def test_a_terminal_of_80_columns_shows_every_verdict_whole() -> None:
    lines = _shown(terminal=True).splitlines()
    assert all(len(line) <= 80 for line in lines)
    told = " ".join(" ".join(lines).split())
    for word in ("BROKEN", "kept", "NOT LEARNED", "legacy", "fresh", "30.0 %"):
        assert word in told


def test_a_run_with_a_stated_limit_is_judged_after_each_task(tmp_path: Path, capsys: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            main(["run", "digits", "pdcl", *QUICK, "--tolerance", '"0, 1":+2pt, *:+3pt', "--out", str(tmp_path)]) == 0
        )
    text = capsys.readouterr().out
    assert text.count("verdict") == 5
    assert "0, 1   +2pt" in text
    assert "2, 3   +3pt" in text
    result = json.loads(next(tmp_path.glob("*/result.json")).read_text())
    assert [len(table["rows"]) for table in result["promises"]] == [1, 2, 3, 4, 5]


def test_without_witnesses_the_table_is_shown_and_says_that_nothing_is_decided(tmp_path: Any, capsys: Any) -> None:
    """Off, "least room … on stored samples" is all that stands there, and reads as kept."""
    stated = '"0, 1":+2pt, *:+5pt, new:10%'
    assert (
        main(
            ["run", "digits", "pdcl", "--memory", "100", "--epochs", "1", "--tolerance", stated, "--out", str(tmp_path)]
        )
        == 0
    )
    text = capsys.readouterr().out
    assert text.count("verdict") == 5
    assert "new 10%" in text
    assert text.count("undecided: no witnesses") == 1 + 2 + 3 + 4 + 5
    assert "on stored samples" in text


def test_a_warning_is_printed_once_by_commands_that_show_events(tmp_path: Path, capsys: Any) -> None:
    words = ["--witness", "500", "--tolerance", "+90pt", "--out", str(tmp_path)]
    assert main(["run", "digits", "pdcl", *QUICK, *words]) == 0
    seen = capsys.readouterr()
    assert seen.out.count("warning: witness=500") == 5
    assert "witness=500" not in seen.err


def test_a_command_that_shows_no_events_prints_warnings_in_one_line(monkeypatch: Any, capsys: Any) -> None:
    def verb(argv: list[str]) -> int:
        warnings.warn("few", pdcl.LearningWarning, stacklevel=2)
        return 0

    monkeypatch.setattr("pdcl.cli.list.main", verb)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["list"]) == 0
    assert capsys.readouterr().err == "warning: few\n"


@pytest.mark.parametrize(
    ("tolerance", "said"),
    [
        ("+2%", "write +2pt"),
        ("banana", "can't read a tolerance from 'banana'"),
        ("1%,2%", "2 values for 5 tasks"),
        ("legacy:+2pt, *:+3pt", "'legacy', which is no task here"),
        ("plan=gold:+1pt", "has no column"),
    ],
)
def test_a_bad_limit_is_one_line_before_any_work(tolerance: str, said: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["run", "digits", "pdcl", *QUICK, "--tolerance", tolerance, "--out", str(tmp_path / "runs")]) == 1
    seen = capsys.readouterr()
    assert said in seen.err
    assert seen.err.count("\n") == 1
    assert seen.out == ""
    assert not (tmp_path / "runs").exists()


def _study(tolerance: Any) -> Any:
    head = {"name": "s", "streams": ["digits"], "methods": ["pdcl"], "memory": 50, "seeds": 1}
    return parse({"study": head, "streams": {"digits": {"tolerance": tolerance}}})


def test_a_study_takes_limits_as_a_table_or_as_its_text() -> None:
    table, text = ({"0, 1": "+2pt", "*": "+3pt"}, '"0, 1":+2pt, *:+3pt')
    assert _study(table).on_stream == _study(text).on_stream
    assert _study(table).on_stream["digits"].options == {"tolerance": text}


@pytest.mark.parametrize("tolerance", ["+2%", "banana", {"a": "+2%"}, {}])
def test_a_study_with_a_bad_limit_is_refused_when_it_is_read(tolerance: Any) -> None:
    with pytest.raises(UsageError, match="tolerance="):
        _study(tolerance)


def test_a_mapping_in_python_is_the_same_run_as_its_text(tmp_path: Path) -> None:
    made = pdcl.PDCL("mlp:8", memory=50, tolerance={"a": "+2pt", "*": "5%"})
    assert made.tolerance == "a:+2pt, *:5%"
    with pytest.raises(UsageError, match=r"tolerance='\+2%'"):
        pdcl.PDCL("mlp:8", memory=50, tolerance="+2%")
