"""What a run says of the limits that it was given: typed, in its files, and as warnings."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pdcl
from pdcl.records.reading import read_result
from pdcl.running.result import Result

TASKS = 3


@pytest.fixture(scope="module")
def crowded() -> Any:
    """Three tasks of two classes each, all in one place: whoever learns one without the others forgets them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1800, 20)).astype("float32")
    y = np.repeat(np.arange(2 * TASKS), 300)
    x[np.arange(1800), y] += 3
    order = rng.permutation(1800)
    return pdcl.split(x[order], y[order], classes_per_task=2)


def _run(stream: Any, out: Path | None = None, **options: Any) -> Result:
    forgetful = {"base": 0.0, "dual": "frozen", "memory": 200, "witness": 16, "epochs": 8, "lr": 0.01}
    return pdcl.run(stream, "pdcl", out=out, **{**forgetful, "tolerance": "+2pt", **options})


@pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")
def test_the_result_has_the_newest_table_and_its_file_has_every_tasks(crowded: Any, tmp_path: Path) -> None:
    result = _run(crowded, tmp_path)
    assert isinstance(result.promises, pdcl.Promises)
    assert [row.kind for row in result.promises] == ["task", "task", "new"]
    assert result.promises == result.learner.promises
    assert result.path is not None
    held = read_result(result.path)["promises"]
    assert [pdcl.Promises.from_json(table) for table in held] == result.tables
    events = [json.loads(line) for line in (result.path / "events.jsonl").read_text().splitlines()]
    assert [each["promises"] for each in events if each["event"] == "promises_judged"] == held


def test_without_limits_there_is_none(crowded: Any) -> None:
    result = pdcl.run(crowded, "er", memory=30, epochs=1)
    assert result.promises is None
    assert result.as_json()["promises"] == []


def test_a_result_of_before_there_were_tables_can_be_read(crowded: Any, tmp_path: Path) -> None:
    result = pdcl.run(crowded, "er", memory=30, epochs=1, out=tmp_path)
    assert result.path is not None
    file = result.path / "result.json"
    old = json.loads(file.read_text())
    del old["promises"], old["sha256"]
    file.write_text(json.dumps(old))
    assert "promises" not in read_result(result.path)


def test_each_task_that_breaks_limits_is_one_warning_at_the_users_line(crowded: Any) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = _run(crowded)
    broken = [each for each in heard if issubclass(each.category, pdcl.LimitBroken)]
    assert [each.filename for each in broken] == [__file__] * 2
    assert len(broken) == sum(bool(table.broken) for table in result.tables)
    assert all(row.task in str(broken[-1].message) for row in result.tables[-1].broken)


def test_what_is_kept_or_undecided_is_not_warned_of(crowded: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = _run(crowded, tolerance="+100pt", base=1.0, dual=None)
    assert {row.verdict for row in result.promises} <= {"kept", "learned", "undecided"}
