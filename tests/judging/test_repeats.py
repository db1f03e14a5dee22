"""Samples that come again: what judges a limit is never trained on, whatever rows the data repeats."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pdcl
from pdcl.past.held_back import REPLAY, WITNESS, Counts, hold_back
from pdcl.past.repeats import row_hashes
from pdcl.streams.data import TensorData

pytestmark = pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")


def noise(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels that nothing can be learned of: what is known of them was learned by heart."""
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 20)).astype("float32"), random.integers(0, 2, n)


def trained_rows(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """Inputs of every update from now on."""
    seen: list[torch.Tensor] = []
    step = pdcl.PDCL.step

    def watched(self, batch):
        seen.append(batch.x.clone())
        return step(self, batch)

    monkeypatch.setattr(pdcl.PDCL, "step", watched)
    return seen


def told_of(learner: pdcl.PDCL, x: np.ndarray, y: np.ndarray, name: str) -> list[str]:
    heard: list[str] = []
    learner.learn(x, y, name=name, epochs=2, listener=lambda e: heard.append(getattr(e, "message", "")))
    return heard


def test_rows_that_come_again_in_a_later_task_keep_witnesses_unseen(monkeypatch) -> None:
    x, y = noise(400)
    learner = pdcl.PDCL("mlp:16", memory=300, tolerance="30%", witness=40)
    learner.learn(x, y, name="a", epochs=1)
    held = learner.held["x"][learner.held["role"] == WITNESS]
    seen = trained_rows(monkeypatch)
    heard = told_of(learner, x, y, "b")
    rows = {tuple(row.tolist()) for row in torch.cat(seen)}
    assert not rows & {tuple(row.tolist()) for row in held}
    assert len(rows) == 360
    assert any("40 of 400 samples are copies of guards or witnesses: not trained on" in each for each in heard)


@pytest.mark.parametrize("of_all", [True, False])
def test_a_sample_that_was_learned_before_is_no_witness_of_a_later_task(of_all: bool) -> None:
    """Whether limits are stated for all tasks, or for the first one alone."""
    x, y = noise(400)
    learner = pdcl.PDCL("mlp:16", memory=300, tolerance="30%" if of_all else None, witness=40)
    learner.learn(x, y, name="a", epochs=1, tolerance=None if of_all else "30%")
    fresh = noise(100, seed=1)
    learner.learn(np.concatenate([x, fresh[0]]), np.concatenate([y, fresh[1]]), name="b", epochs=1)
    own = learner.held["x"][(learner.held["role"] == WITNESS) & (learner.held["task"] == 1)]
    assert len(own) == 40
    assert {tuple(row) for row in own.tolist()} <= {tuple(row) for row in fresh[0].tolist()}


def test_a_network_that_learned_repeated_noise_by_heart_is_not_said_to_keep_its_limit() -> None:
    x, y = noise(600)
    learner = pdcl.PDCL("mlp:256", memory=500, tolerance="30%", witness=60, seed=0)
    learner.learn(x, y, name="a", epochs=20)
    table = learner.learn(x, y, name="b", epochs=20).promises
    assert [row.verdict for row in table if row.task == "a"] == ["BROKEN"]
    assert "learned" not in [row.verdict for row in table if row.task == "b"]


def test_copies_within_a_task_are_held_back_together() -> None:
    x, y = noise(100)
    learner = pdcl.PDCL("mlp:16", memory=300, tolerance="30%", witness=50)
    learner.learn(np.repeat(x, 5, 0), np.repeat(y, 5), name="a", epochs=1)
    held = learner.held
    kinds = [{tuple(row) for row in held["x"][held["role"] == role].tolist()} for role in (WITNESS, REPLAY)]
    assert len(kinds[0]) == 10, "ten rows with their five copies each"
    assert not kinds[0] & kinds[1]


def test_one_row_that_fills_the_task_leaves_others_to_be_witnesses() -> None:
    groups = torch.cat([torch.zeros(100, dtype=torch.long), torch.arange(1, 101)])
    for seed in range(20):
        found = hold_back(200, Counts(0, 10), torch.Generator().manual_seed(seed), groups)
        assert len(found.witnesses) == 10


def test_a_single_copy_leaves_the_draw_as_it_was(monkeypatch) -> None:
    """Groups of copies are another draw; few copies are no reason for one."""
    x, y = torch.randn(200, 4), torch.arange(200) % 2
    found = []
    for twice in (False, True):
        seen = trained_rows(monkeypatch)
        learner = pdcl.PDCL("mlp:8", memory=200, tolerance="+5pt", witness=15)
        own = x.clone()
        if twice:
            own[1] = own[3]
        learner.learn(own, y, name="a", epochs=1)
        found.append({*learner.held["id"][learner.held["role"] == WITNESS].tolist()})
        assert len(torch.cat(seen)) in (185, 184)
    assert found[0] == found[1]


def test_the_same_input_with_another_label_is_another_sample() -> None:
    x = torch.randn(400, 4)
    learner = pdcl.PDCL("mlp:8", memory=300, tolerance="+5pt", witness=20)
    for task in range(2):
        learner.learn(x, torch.arange(400) % 2 + 2 * task, name=str(task), epochs=1)
    own = learner.held["task"][learner.held["role"] == WITNESS]
    assert torch.bincount(own).tolist() == [20, 20]


def test_nothing_but_past_witnesses_is_refused() -> None:
    x, y = noise(200)
    learner = pdcl.PDCL("mlp:8", memory=200, tolerance="30%", witness=20)
    learner.learn(x, y, name="a", epochs=1)
    held = learner.held["role"] == WITNESS
    with pytest.raises(pdcl.errors.UsageError, match="nothing new to learn"):
        learner.learn(learner.held["x"][held], learner.held["y"][held], name="b")


def test_data_in_files_is_not_read_once_more() -> None:
    class Counted(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int):
            return torch.zeros(2), 0

    from pdcl.streams.data import DatasetData

    assert row_hashes(DatasetData(Counted(), torch.zeros(3, dtype=torch.long))) is None
    assert row_hashes(TensorData(torch.zeros(3, 2), torch.zeros(3, dtype=torch.long))) is not None


def repeating() -> tuple[pdcl.Stream, np.ndarray]:
    """Three tasks; the second has all rows of the first and 100 of its own, which are the second value."""
    x, y = noise(400)
    fresh, last = noise(100, seed=1), noise(200, seed=2)
    again = np.concatenate([x, fresh[0]]), np.concatenate([y, fresh[1]])
    return pdcl.from_tasks([(x, y), again, last]), fresh[0]


def witnesses_of(learner: pdcl.PDCL, task: int) -> set[tuple[float, ...]]:
    own = (learner.held["role"] == WITNESS) & (learner.held["task"] == task)
    return {tuple(row) for row in learner.held["x"][own].tolist()}


def test_a_sample_that_an_earlier_task_of_a_run_had_is_no_witness() -> None:
    stream, _ = repeating()
    learner = pdcl.PDCL("mlp:8", memory=300, tolerance="30%", witness=20)
    pdcl.run(stream, learner, epochs=1, batch=50)
    assert len(witnesses_of(learner, 1)) > 5
    # Rows that the stream divided off as test data of the first task were not learned there.
    first = stream.tasks[0].data
    assert not witnesses_of(learner, 1) & {tuple(row) for row in first.fetch(torch.arange(len(first)))[0].tolist()}


def test_a_loop_that_goes_on_holds_back_the_same() -> None:
    from pdcl.past.repeats import Earlier

    stream, _ = repeating()
    held = []
    for hashed_before in (True, False):
        earlier = Earlier([task.data for task in stream.tasks])
        if hashed_before:
            assert earlier.known(0, stream.tasks[0].data) is None
        held.append(earlier.known(1, stream.tasks[1].data))
    assert bool(held[0].any())
    assert torch.equal(held[0], held[1])


def test_a_sample_of_a_run_is_no_witness_of_what_is_learned_later() -> None:
    stream, _ = repeating()
    learner = pdcl.PDCL("mlp:8", memory=300, tolerance="30%", witness=20)
    pdcl.run(stream, learner, epochs=1, batch=50)
    x, _ = stream.tasks[2].data.fetch(torch.arange(len(stream.tasks[2].data)))
    fresh = noise(100, seed=3)
    y = np.concatenate([np.zeros(len(x), dtype=int), fresh[1]])
    learner.learn(np.concatenate([x.numpy(), fresh[0]]), y, name="later", epochs=1)
    assert len(witnesses_of(learner, 3)) > 5
    assert witnesses_of(learner, 3) <= {tuple(row) for row in fresh[0].tolist()}
