"""Columns beside x and y follow their samples through every split, and mean the same in all tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from pdcl import PDCL
from pdcl.streams.audits import read_audit
from pdcl.streams.checks import BadData
from pdcl.streams.class_split import split
from pdcl.streams.data import Data, everything
from pdcl.streams.samples import read
from pdcl.streams.task import Stream
from pdcl.streams.task_list import from_tasks

COUNT = 120
X = torch.arange(COUNT, dtype=torch.float32)[:, None]
Y = np.arange(COUNT) % 4
PLANS = ["gold" if k % 3 else "free" for k in range(COUNT)]
YEARS = [1990 + k % 7 for k in range(COUNT)]
COLUMNS = {"plan": PLANS, "year": np.asarray(YEARS)}


def fits(data: Data, scale: float = 1.0) -> bool:
    """Each input is its own row number, so the columns it should have are known."""
    rows = (data.fetch(everything(data))[0][:, 0] * scale).round().long().tolist()
    expected = {"plan": [PLANS[row] for row in rows], "year": [YEARS[row] for row in rows]}
    return {name: column.values() for name, column in data.columns.items()} == expected


def all_data(stream: Stream) -> list[Data]:
    return [data for task in stream.tasks for data in (task.data, task.test)]


def test_columns_follow_their_samples_through_split_hold_out_and_subset() -> None:
    stream = split(X, Y, columns=COLUMNS)
    tuned = stream.for_tuning(0.25)
    some = [data.subset(torch.tensor([3, 0])) for data in all_data(tuned)]
    assert all(fits(data) for data in [*all_data(stream), *all_data(tuned), *some])


def test_columns_follow_the_samples_of_a_dataset() -> None:
    class Rows(TensorDataset):
        tensors: Any

    lazy = torch.utils.data.Subset(Rows(X, torch.as_tensor(Y)), range(COUNT))
    assert all(fits(data) for data in all_data(split(lazy, columns=COLUMNS).for_tuning(0.25)))


def test_a_code_means_the_same_in_every_task_and_on_both_sides() -> None:
    tasks = [(X[:4], Y[:4], X[:4], Y[:4]), (X[:4], Y[:4], X[:4], Y[:4])]
    facts = [({"plan": ["a", "b"] * 2}, {"plan": ["b"] * 4}), ({"plan": ["c", "b"] * 2}, {"plan": ["d"] * 4})]
    stream = from_tasks(tasks, columns=facts)
    names = {data.columns["plan"].names for data in all_data(stream)}
    assert len(names) == 1
    assert [set(data.columns["plan"].values()) for data in all_data(stream)] == [{"a", "b"}, {"b"}, {"b", "c"}, {"d"}]


def test_test_data_may_have_columns_of_its_own() -> None:
    assert split(X, Y, test=(X, Y), columns=COLUMNS).tasks[0].test.columns == {}
    assert fits(split(X, Y, test=(X, Y), columns=COLUMNS, test_columns=COLUMNS).tasks[1].test)
    with pytest.raises(BadData, match="test_columns has no effect without test"):
        split(X, Y, test_columns=COLUMNS)


BAD = {
    "too short": ({"plan": PLANS[:-1]}, "column 'plan' has 119 values for 120 samples"),
    "a single text": ({"plan": "gold"}, "column 'plan' has 1 values"),
    "None": ({"plan": [None, *PLANS[1:]]}, "column 'plan' holds None in row 0"),
    "NaN": ({"plan": [*YEARS[:-1], float("nan")]}, "column 'plan' holds nan in row 119"),
    "fractions": ({"age": [0.5] * COUNT}, "holds 0.5 in row 0; values are strings or integers"),
    "a matrix": ({"plan": np.zeros((COUNT, 2))}, "column 'plan' holds array"),
    "a name that is none": ({3: PLANS}, "a column is called 3"),
    "an equals sign": ({"plan=gold": PLANS}, "without '='"),
    "a name of ours": ({"task": PLANS}, "'task', which pdcl uses itself"),
    "no dict": ([PLANS], "columns is a list; give a dict"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_columns_are_refused_in_one_line(name: str) -> None:
    columns, message = BAD[name]
    learner = PDCL("mlp", memory=10)
    for call in (
        lambda: split(X, Y, columns=columns),
        lambda: from_tasks([(X, Y)], columns=[columns]),
        lambda: learner.learn(X, Y, columns=columns),
    ):
        with pytest.raises(BadData, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert learner.tasks_learned == 0


def test_all_tasks_have_the_same_columns() -> None:
    with pytest.raises(BadData, match=r"task 1 has the columns \[\], task 0 has \['plan'\]"):
        from_tasks([(X, Y), (X, Y)], columns=[{"plan": PLANS}, None])
    with pytest.raises(BadData, match="columns has 1 entries for 2 tasks"):
        from_tasks([(X, Y), (X, Y)], columns=[{"plan": PLANS}])


def test_pandas_columns_are_read_and_their_gaps_refused() -> None:
    pandas = pytest.importorskip("pandas")
    plans = pandas.Series(PLANS, dtype="category")
    assert read(X, Y, columns={"plan": plans}).columns["plan"].tolist() == PLANS
    with pytest.raises(BadData, match="holds <NA> in row 2"):
        read(X, Y, columns={"plan": pandas.Series(YEARS, dtype="Int64").mask(pandas.Series(range(COUNT)) == 2)})


def heard(hook: Any, seen: list[Data]) -> Any:
    def hear(learner: PDCL, task: Any) -> None:
        seen.append(task.data)
        hook(learner, task)

    return hear


def test_a_learner_sees_the_columns_of_the_task_that_it_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Data] = []
    for name in ("end", "absorb"):
        monkeypatch.setattr(PDCL, name, heard(getattr(PDCL, name), seen))
    learner = PDCL("mlp", memory=10)
    learner.learn(X / COUNT, Y, columns=COLUMNS, epochs=1)
    learner.adopt(X / COUNT, Y, columns=COLUMNS)
    assert len(seen) >= 2
    assert all(fits(data, COUNT) for data in seen)


def test_columns_of_what_is_set_aside_go_with_it(tmp_path: Path) -> None:
    learner = PDCL("mlp", memory=10)
    learner.learn(X / COUNT, Y, columns=COLUMNS, epochs=1, audit=tmp_path / "audit", audit_share=0.2)
    audit = read_audit(tmp_path / "audit")
    rows = (audit.x[:, 0] * COUNT).round().long().tolist()
    assert audit.columns["plan"].tolist() == [PLANS[row] for row in rows]
    assert audit.columns["year"].tolist() == [str(YEARS[row]) for row in rows]
