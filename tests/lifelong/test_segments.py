"""Limits by segment over a learner's life: rows of their own, refused where they can't be known, durable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.errors import Interrupted, UsageError
from pdcl.learning.events import DualsMoved
from pdcl.storage.serialize import same

DIM = 12
LIMITS = {"plan=gold": "+30pt", "*": "+40pt"}
pytestmark = pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")


def _task(first: int, seed: int, count: int = 400) -> tuple[Any, Any, dict[str, Any]]:
    """Two classes; a quarter of the samples are gold, and lie elsewhere."""
    rng = np.random.default_rng(seed)
    y, gold = rng.integers(first, first + 2, count), rng.random(count) < 0.25
    x = rng.normal(size=(count, DIM)) + 3 * np.eye(DIM)[y] + np.where(gold[:, None], 2 * np.eye(DIM)[-1], 0)
    return x.astype("float32"), y, {"plan": np.where(gold, "gold", "tin"), "year": [2026] * count}


def _life(tasks: int = 3, **options: Any) -> Any:
    settings = {"memory": 300, "witness": 30, "guard": 0, "tolerance": LIMITS, "lr": 0.01, **options}
    learner = pdcl.PDCL("mlp:24", **settings)
    for k in range(tasks):
        x, y, columns = _task(2 * k, k)
        learner.learn(x, y, columns=columns, name=f"t{k}", epochs=3)
    return learner


def _witnesses(learner: Any, newest: int) -> torch.Tensor:
    """Slots of past witnesses that are gold, by what was learned and not by what memory says."""
    plans = np.concatenate([_task(2 * k, k)[2]["plan"] for k in range(newest + 1)])
    held = learner.store
    gold = torch.from_numpy(plans[held["id"].numpy()] == "gold")
    return (gold & (held["role"] == 2) & (held["task"] < newest)).nonzero().flatten()


def test_a_segment_has_a_row_on_all_past_witnesses_with_its_value_and_their_paired_outcomes() -> None:
    learner = _life()
    row = next(row for row in learner.promises if row.kind == "segment")
    slots = _witnesses(learner, 2)
    wrong = (learner.logits(learner.store["x"][slots]).argmax(1) != learner.store["y"][slots]).float()
    assert row.task == "plan=gold"
    assert row.samples == len(slots) > 5
    assert row.now == pytest.approx(float(wrong.mean()))
    assert row.then == pytest.approx(float(learner.store["wrong"][slots].mean()))
    assert row.limit == pytest.approx(row.then + 0.3)
    assert [each.task for each in learner.promises] == ["t0", "t1", "plan=gold", "t2"]


def test_memory_knows_the_segment_of_every_sample_over_refills_saves_and_loads(tmp_path: Any) -> None:
    learner = _life()
    loaded = pdcl.load(learner.save(tmp_path / "model"))
    assert loaded.promises == learner.promises
    plans = np.concatenate([_task(2 * k, k)[2]["plan"] for k in range(3)])
    for each in (learner, loaded):
        assert ((each.store["codes"][:, 0] == 1).numpy() == (plans[each.store["id"].numpy()] == "gold")).all()
    for each in (learner, loaded):
        x, y, columns = _task(6, 6)
        each.learn(x, y, columns=columns, epochs=1)
    assert same(learner.state_dict(), loaded.state_dict())
    assert learner.promises == loaded.promises


def test_an_interrupted_run_goes_on_with_its_segments(tmp_path: Any) -> None:
    parts = [_task(2 * k, k, 200) for k in range(3)]
    x, y = np.concatenate([x for x, _, _ in parts]), np.concatenate([y for _, y, _ in parts])
    plan = np.concatenate([columns["plan"] for _, _, columns in parts])
    options: dict[str, Any] = {
        "memory": 90,
        "witness": 12,
        "tolerance": "plan=gold:+5pt",
        "epochs": 2,
        "network": "mlp:16",
    }
    stream = pdcl.split(x, y, columns={"plan": plan})
    whole = pdcl.run(stream, "pdcl", **options)
    row = next(row for row in whole.promises if row.kind == "segment")
    assert (row.task, row.written, row.samples > 0) == ("plan=gold", "+5pt", True)

    def stop(event: Any) -> None:
        if isinstance(event, DualsMoved) and event.task == 2 and event.step > 10:
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, Interrupted)):
        pdcl.run(stream, "pdcl", out=tmp_path, listeners=[stop], checkpoint_every=3, **options)
    resumed = pdcl.run(stream, "pdcl", resume=next(tmp_path.iterdir()), checkpoint_every=3, **options)
    assert resumed.promises == whole.promises
    assert same(resumed.learner.state_dict(), whole.learner.state_dict())


def test_a_value_that_has_not_come_is_a_row_without_samples() -> None:
    learner = _life(2, tolerance={"plan=platinum": "+1pt", "*": "+40pt"})
    row = next(row for row in learner.promises if row.kind == "segment")
    assert (row.task, row.verdict, row.samples) == ("plan=platinum", "no samples yet", 0)
    assert "no samples yet" in str(learner.promises)


def test_integers_are_meant_by_the_text_they_are_written_as() -> None:
    learner = _life(2, tolerance="year=2026:+40pt")
    row = next(row for row in learner.promises if row.kind == "segment")
    assert (row.task, row.samples) == ("year=2026", 30)


def test_a_column_that_the_data_lacks_is_refused_before_any_work() -> None:
    x, y, columns = _task(0, 0)
    network = torch.nn.Sequential(torch.nn.Linear(DIM, 2))
    learner: Any = pdcl.PDCL(network, memory=50, tolerance={"region=north": "+1pt"})
    for call in (learner.learn, learner.adopt):
        with pytest.raises(UsageError, match=r"limit on region=north.*no column 'region'.*plan, year"):
            call(x, y, columns=columns)
    assert learner.tasks_learned == 0
    stream = pdcl.split(x, y, columns=columns)
    with pytest.raises(UsageError, match=r"no column 'region'.*plan, year"):
        pdcl.run(stream, "pdcl", memory=50, tolerance="region=north:+1pt")
    with pytest.raises(UsageError, match="it has none"):
        pdcl.run(pdcl.split(x, y), "pdcl", memory=50, tolerance="region=north:+1pt")


def test_a_limit_on_a_segment_lowers_its_loss_and_off_it_does_not() -> None:
    """The dual of gold rises, and gold's stored samples fit better than with the same learner without that limit."""
    options: dict[str, Any] = {"witness": 0, "dual": "ascent:lr=0.5", "base": 0.1, "drift": 0.0, "partition": "uniform"}
    held, free = (_life(tolerance={"plan=gold": limit}, **options) for limit in (1e-3, 9.0))
    assert held.report().segments["plan=gold"] > 0.1
    assert free.report().segments["plan=gold"] == 0

    def loss(learner: Any) -> float:
        store = learner.store
        gold = (store["codes"][:, 0] == 1) & (store["task"] < 2)
        return float(learner.losses(learner.logits(store["x"][gold]), store["y"][gold]).mean())

    assert loss(held) < 0.5 * loss(free)


def test_adopted_data_brings_its_columns() -> None:
    x, y, columns = _task(0, 0)
    torch.manual_seed(0)
    learner = pdcl.PDCL(torch.nn.Sequential(torch.nn.Linear(DIM, 2)), memory=100, witness=20, tolerance=LIMITS)
    learner.adopt(x, y, columns=columns, labels=[0, 1], name="legacy")
    x, y, columns = _task(2, 1)
    entry = learner.learn(x, y, columns=columns, epochs=1)
    assert next(row for row in entry.promises if row.kind == "segment").samples > 0


@pytest.mark.parametrize("then", [{"plan=gold": "+30pt", "year=2026": "+30pt"}, {"year=2026": "+30pt"}, "+40pt"])
def test_other_segments_can_be_stated_on_load(tmp_path: Any, then: Any) -> None:
    learner = pdcl.load(_life(1).save(tmp_path / "model"), tolerance=then)
    for k in (1, 2):
        x, y, columns = _task(2 * k, k)
        learner.learn(x, y, columns=columns, name=f"t{k}", epochs=1)
    rows = {row.task: row.samples for row in learner.promises if row.kind == "segment"}
    assert rows.keys() == ({*then} if isinstance(then, dict) else set())
    held = learner.store
    if "year=2026" in rows:
        assert rows["year=2026"] == int(((held["role"] == 2) & (held["task"] == 1)).sum()) > 0
        assert ((held["codes"][:, 1] == 1) == (held["task"] > 0)).all()
    plans = np.concatenate([_task(2 * k, k)[2]["plan"] for k in range(3)])
    assert ((held["codes"][:, 0] == 1).numpy() == (plans[held["id"].numpy()] == "gold")).all()
