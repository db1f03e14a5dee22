"""`[whatif]`: a what-if curve beside every run of a study, made once and again where it is asked otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pdcl.errors import UsageError
from pdcl.lab.cli import study as command_line
from pdcl.lab.studies import execute
from pdcl.lab.studies.curves import Answered
from pdcl.lab.studies.parsing import parse

STUDY = {"name": "s", "streams": ["synthetic"], "methods": ["pdcl0"], "memory": [20], "seeds": 2}
OPTIONS = {"epochs": 1, "network": "linear", "tolerance": 0.5, "dual_steps": 4}
SMALL = {"synthetic": {"stream_options": {"tasks": 2, "size": 40, "test_size": 20}}}
ASKED = {"task": 1, "tolerances": [0.2, 0.5, 0.9], "repeats": 2}


def asking(**whatif: Any) -> dict[str, Any]:
    return {"study": STUDY, "options": OPTIONS, "streams": SMALL, "whatif": {**ASKED, **whatif}}


def curves(out) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(out.glob("*/whatif-task1.json"))]


def test_every_run_gets_its_curve_once_and_anew_where_it_is_asked_otherwise(tmp_path, engine) -> None:
    said: list[Any] = []
    execute(parse(asking()), tmp_path, engine, said.append)
    found = curves(tmp_path)
    assert len(found) == sum(isinstance(notice, Answered) for notice in said) == 2
    assert [round(found[0]["tolerance"] + point["change"], 9) for point in found[0]["points"]] == [0.2, 0.9]
    assert all(point["error"] is not None for each in found for point in each["points"])
    said.clear()
    execute(parse(asking()), tmp_path, engine, said.append)
    assert not any(isinstance(notice, Answered) for notice in said), "they are there"
    for change in ({"repeats": 1}, {"tolerances": [0.3]}, {"longer": 2}):
        said.clear()
        execute(parse(asking(**change)), tmp_path, engine, said.append)
        assert sum(isinstance(notice, Answered) for notice in said) == 2, change
    next(tmp_path.glob("*/whatif-task1.json")).write_text("{")
    said.clear()
    execute(parse(asking(longer=2)), tmp_path, engine, said.append)
    assert sum(isinstance(notice, Answered) for notice in said) == 1, "the one whose file is torn"


def test_a_part_asks_for_its_own_runs_alone(tmp_path, engine) -> None:
    shared = {**STUDY, "seeds": 1}
    common = {"options": OPTIONS, "on": SMALL}
    parts = {"plain": {**common}, "priced": {**common, "options": {**OPTIONS, "dual_steps": 3}, "whatif": ASKED}}
    execute(parse({"study": shared, "parts": parts}), tmp_path, engine)
    assert len([*tmp_path.glob("*/result.json")]) == 2
    assert len(curves(tmp_path)) == 1


def test_a_curve_that_can_not_be_solved_is_a_failure_of_its_run_and_no_other(tmp_path, engine) -> None:
    outcome = execute(parse(asking(task=7)), tmp_path, engine)
    assert len(outcome.done) == 2
    assert ["what-if: task 6 is no past task" in str(ended.cause) for ended in outcome.failures] == [True, True]


def test_a_dry_run_counts_the_curves(tmp_path, capsys) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        'study = { name = "s", streams = ["synthetic"], methods = ["pdcl0"], memory = 20, seeds = 2 }\n'
        "options = { tolerance = 0.5 }\nwhatif = { task = 1, tolerances = [0.2] }\n"
    )
    assert command_line.main([str(file), "--dry-run", "--out", str(tmp_path / "none")]) == 0
    assert "then what-if curves of 2 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (asking(tolerances=[]), "must be a list of losses"),
        (asking(tolerances=[-0.1]), "none below 0"),
        (asking(repeats=0), "repeats = 0 must be 1 or more"),
        (asking(tasks=1), r"\[whatif\] has 'tasks'.*Did you mean 'task'"),
        ({**asking(), "study": {**STUDY, "methods": ["er"]}, "options": {}}, "er has none"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_work(content, said) -> None:
    with pytest.raises(UsageError, match=said):
        parse(content).runs()
