"""Options are chosen on held-out training data, with the same budget for all, and never by test data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import pdcl
from pdcl.lab.studies import Planned, execute
from pdcl.lab.studies.parsing import parse
from pdcl.lab.studies.study import Study
from pdcl.records import read_config, scan
from pdcl.streams.data import Data

WORSE, BETTER = {"lr": 1e-6}, {"lr": 0.05}


def study(stream: str = "synthetic", **tune: Any) -> Study:
    options = {"stream_options": {"tasks": 2, "size": 60, "test_size": 20}} if stream == "synthetic" else {}
    return parse(
        {
            "study": {"name": "t", "streams": [stream], "methods": ["er", "finetune"], "memory": [10], "seeds": 1},
            "streams": {stream: options},
            "options": {"network": "linear", "epochs": 2},
            "tune": {"budget": 2, "share": 0.25, "seeds": 2, "candidates": {"er": [WORSE, BETTER]}, **tune},
        }
    )


class Untouchable(Data):
    """Test data that nobody may look at."""

    def __init__(self, data: Data) -> None:
        self.targets = data.targets

    def fetch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        raise RuntimeError("the test data was touched")

    def subset(self, index: Tensor) -> Data:
        raise RuntimeError("the test data was touched")


@pdcl.register_stream("guarded")
def guarded() -> pdcl.Stream:
    """A stream whose test data raises."""
    stream = pdcl.stream("synthetic", tasks=2, size=60, test_size=20)
    return replace(stream, name="guarded", tasks=[replace(t, test=Untouchable(t.test)) for t in stream.tasks])


def test_the_better_candidate_is_found_used_and_recorded(tmp_path: Path, engine: Any) -> None:
    outcome = execute(study(), tmp_path, engine)
    assert not outcome.failures
    (run,) = [row.path for row in scan(tmp_path) if row.method == "er"]
    assert read_config(run)["options"]["lr"] == {"value": BETTER["lr"], "source": "study"}
    noted = json.loads((tmp_path / "tuning" / "chosen.json").read_text())["synthetic"]["er"]
    assert noted["chosen"] == BETTER
    worse, better = (candidate["accuracy"] for candidate in noted["candidates"])
    assert worse < better - 0.1


def test_tuning_runs_are_recorded_apart_from_the_table(tmp_path: Path, engine: Any) -> None:
    execute(study(), tmp_path, engine)
    assert len(scan(tmp_path)) == 2
    tried = [read_config(row.path) for row in scan(tmp_path / "tuning")]
    assert len(tried) == 4
    assert all(config["stream_options"]["held_out"] == 0.25 for config in tried)


def test_tuning_never_touches_test_data(tmp_path: Path, engine: Any) -> None:
    outcome = execute(study("guarded"), tmp_path, engine)
    assert len(scan(tmp_path / "tuning")) == 4
    assert {ended.job.spec.held_out for ended in outcome.failures} == {None}
    assert all("touched" in str(ended.cause) for ended in outcome.failures)
    assert len(outcome.failures) == 2


def test_a_second_time_nothing_is_tuned_again(tmp_path: Path, engine: Any) -> None:
    execute(study(), tmp_path, engine)
    before = len(engine.jobs)
    outcome = execute(study(), tmp_path, engine)
    assert len(engine.jobs) == before
    assert len(outcome.skipped) == before


def test_a_candidate_that_fails_is_not_chosen(tmp_path: Path, engine: Any) -> None:
    outcome = execute(study(candidates={"er": [{"lr": -1.0}, BETTER]}), tmp_path, engine)
    assert {ended.job.spec.options["lr"] for ended in outcome.failures} == {-1.0}
    (run,) = [row for row in scan(tmp_path) if row.method == "er"]
    assert run.options["lr"] == BETTER["lr"]


def test_where_all_candidates_fail_so_do_the_runs_that_wait_for_them(tmp_path: Path, engine: Any) -> None:
    outcome = execute(study(candidates={"er": [{"lr": -1.0}, {"lr": -2.0}]}), tmp_path, engine)
    assert [row.method for row in scan(tmp_path)] == ["finetune"]
    assert "no candidate" in str(outcome.failures[-1].cause)


def test_a_single_candidate_needs_no_search(tmp_path: Path, engine: Any) -> None:
    execute(study(candidates={"er": [BETTER]}), tmp_path, engine)
    assert len(engine.jobs) == 2
    assert {row.options["lr"] for row in scan(tmp_path) if row.method == "er"} == {BETTER["lr"]}


def test_only_what_is_chosen_is_tuned_and_the_plan_tells_what_lies_ahead(tmp_path: Path, engine: Any) -> None:
    heard: list[Any] = []
    execute(study(), tmp_path, engine, heard.append, lambda spec: spec.label == "finetune")
    assert len(engine.jobs) == 1
    execute(study(), tmp_path, engine, heard.append)
    phases = [notice for notice in heard if isinstance(notice, Planned)]
    assert [(phase.title, phase.done, len(phase.jobs), len(phase.later)) for phase in phases] == [
        ("synthetic", 0, 1, 0),
        ("synthetic, tuning", 0, 4, 2),
        ("synthetic", 1, 1, 0),
    ]


@pytest.mark.parametrize("given", [{"lr": [1e-6, 0.05]}, [{"lr": 1e-6}, {"lr": 0.05}]])
def test_candidates_are_tables_or_axes(given: Any) -> None:
    tuning = study(candidates={"er": given}).tuning
    assert tuning is not None
    assert tuning.candidates["er"] == [WORSE, BETTER]
