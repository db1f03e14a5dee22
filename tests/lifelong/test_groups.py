"""Patients and speakers over a learner's life: witnesses of one count as one, and are never trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pdcl
from pdcl.errors import UsageError
from pdcl.streams.hashes import group_numbers

pytestmark = pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")


def _ward(first: int, seed: int, patients: int = 60) -> tuple[Any, Any, list[str]]:
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(patients), 5)
    y = rng.integers(first, first + 2, patients * 5)
    x = rng.normal(size=(len(y), 8)) + 3 * np.eye(8)[y]
    return x.astype("float32"), y, [f"patient {name}" for name in who]


def _learner(**options: Any) -> Any:
    return pdcl.PDCL("mlp:16", **{"memory": 200, "witness": 25, "guard": 0, "tolerance": "+5pt", **options})


def test_witnesses_are_whole_patients_and_patients_are_counted(tmp_path: Any) -> None:
    learner = _learner()
    for k in range(2):
        x, y, who = _ward(2 * k, k)
        entry = learner.learn(x, y, groups=who, name=f"t{k}", epochs=2)
    row = entry.promises[0]
    assert (row.samples, row.groups) == (25, 5)
    store = learner.store
    mine = (store["task"] == 0) & (store["role"] == 2)
    assert len(store["group"][mine].unique()) == 5
    ids = {sample // 5 for sample in store["id"][mine].tolist()}
    assert len(ids) == 5
    trained = {sample // 5 for sample in store["id"][(store["task"] == 0) & (store["role"] == 0)].tolist()}
    assert not ids & trained
    loaded = pdcl.load(learner.save(tmp_path / "model"))
    assert loaded.promises == learner.promises
    x, y, who = _ward(4, 4)
    again = [each.learn(x, y, groups=who, epochs=1).promises for each in (learner, loaded)]
    assert again[0] == again[1]


def test_a_patient_who_comes_again_is_the_same_group_and_others_have_none() -> None:
    learner = _learner(memory=300, tolerance={"year=1": "+5pt"})
    for k in range(3):
        x, y, who = _ward(2 * k, k)
        learner.learn(x, y, groups=who if k else None, columns={"year": [1] * len(y)}, epochs=1)
    groups, task = learner.store["group"], learner.store["task"]
    assert (groups[task == 0] < 0).all()
    assert len(groups[task == 0].unique()) == int((task == 0).sum())
    assert {*groups[task == 1].tolist()} & {*groups[task == 2].tolist()}
    row = learner.promises[0]
    assert (row.kind, row.samples, row.groups) == ("segment", 50, 30), "25 samples alone, and 25 of five patients"


def _sides(learner: Any) -> tuple[set[int], set[int]]:
    group, role = learner.store["group"], learner.store["role"]
    return {*group[role != 0].tolist()}, {*group[role == 0].tolist()}


@pytest.mark.parametrize("saved", [False, True])
def test_a_patient_is_on_one_side_in_all_tasks(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, saved: bool) -> None:
    """Sixty patients who come in every task: five are held back, and no step trains on them."""
    learner, heard = _learner(memory=400), []
    for k in range(3):
        x, y, who = _ward(2 * k, k)
        learner.learn(
            x, y, groups=who, name=f"t{k}", epochs=1, listener=lambda e: heard.append(getattr(e, "message", ""))
        )
        held, trained = _sides(learner)
        assert len(held) == 5
        assert not held & trained
        learner = pdcl.load(learner.save(tmp_path / f"model {k}")) if saved else learner
    assert [row.groups for row in learner.promises] == [5, 5, 5]
    assert not any("copies" in each for each in heard)


def test_samples_of_a_patient_who_is_held_back_are_left_out_of_later_tasks_aloud() -> None:
    learner, heard = _learner(memory=400), []
    x, y, who = _ward(0, 0)
    learner.learn(x, y, groups=who, epochs=1)
    held, _ = _sides(learner)
    x, y, _ = _ward(2, 1, 12)
    few = [name for name in dict.fromkeys(who) if int(group_numbers([name], learner.lineage.key)) in held][:3]
    own = [each for name in few for each in [name] * 10] + [f"other {k // 5}" for k in range(30)]
    learner.learn(x, y, groups=own, epochs=1, listener=lambda e: heard.append(getattr(e, "message", "")))
    assert any("30 of 60 samples are copies of guards or witnesses, or of their groups" in each for each in heard)
    held, trained = _sides(learner)
    assert not held & trained
    with pytest.raises(UsageError, match="nothing new to learn"):
        learner.learn(*_ward(4, 2, 12)[:2], groups=[few[0]] * 60)


def test_patients_of_a_stream_are_on_one_side_in_all_tasks() -> None:
    parts = [_ward(2 * k, k) for k in range(3)]
    x, y = np.concatenate([x for x, _, _ in parts]), np.concatenate([y for _, y, _ in parts])
    who = [name for _, _, names in parts for name in names]
    found = pdcl.run(
        pdcl.split(x, y, groups=who), "pdcl", network="mlp:16", memory=600, witness=25, tolerance="+5pt", epochs=1
    )
    held, trained = _sides(found.learner)
    assert held
    assert not held & trained


def test_without_groups_or_limits_memory_has_no_column_for_them() -> None:
    x, y, who = _ward(0, 0)
    free, single = _learner(tolerance=None, witness=None), _learner()
    free.learn(x, y, groups=who, epochs=1)
    single.learn(x, y, epochs=1)
    assert "group" not in free.store.columns
    assert "group" not in single.store.columns
