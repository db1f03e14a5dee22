"""What a user is told of stated limits: by the entry, by a warning, in the lineage; and what can be done about them."""

from __future__ import annotations

import copy
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import pdcl
from pdcl.errors import UsageError
from pdcl.methods.catalog import methods
from pdcl.past.held_back import GUARD, REPLAY
from pdcl.storage.serialize import same

DIM = 30
RNG = np.random.default_rng


def _old(count: int, seed: int) -> tuple[Any, Any]:
    """Two classes by the sign of the first input."""
    x = RNG(seed).normal(size=(count, DIM)).astype("float32")
    return x, np.where(x[:, 0] > 0, "up", "down")


def _new(count: int, seed: int) -> tuple[Any, Any]:
    """Two more classes where the old ones were: who learns them alone has nothing left for the old ones."""
    x = RNG(seed).normal(size=(count, DIM)).astype("float32")
    return x, np.where(x[:, 1] > 0, "left", "right")


def _knowing() -> nn.Module:
    """A network that knows the old classes."""
    torch.manual_seed(0)
    x, y = _old(2000, 0)
    inputs, targets = torch.from_numpy(x), torch.from_numpy((y == "up").astype("int64"))
    network = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 2))
    optimiser = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(60):
        optimiser.zero_grad()
        cross_entropy(network(inputs), targets).backward()
        optimiser.step()
    return network


def _adopted(**options: Any) -> Any:
    settings = {"memory": 200, "witness": 25, "tolerance": "+2pt", **options}
    learner = pdcl.PDCL(_knowing(), **settings)
    learner.adopt(*_old(500, 1), name="legacy", labels=["down", "up"])
    return learner


FORGETFUL: dict[str, Any] = {"base": 0.0, "dual": "frozen", "lr": 0.02}


@pytest.fixture
def forgetful() -> Any:
    """A learner that will break its limit: nothing in its objective keeps the past."""
    return _adopted(**FORGETFUL)


def test_stored_samples_that_were_memorised_are_no_proof_and_the_limit_is_reported_as_broken() -> None:
    learner = _adopted(drift=0.0)
    with pytest.warns(pdcl.LimitBroken, match="legacy: BROKEN"):
        entry = learner.learn(*_new(500, 2), name="sides", epochs=60, batch=50)
    stored = (learner.store["task"] == 0) & (learner.store["role"] == 0)
    said = learner.logits(learner.store["x"][stored]).argmax(1)
    assert (said == learner.store["y"][stored]).float().mean() > 0.95
    assert learner.evaluate(*_old(1000, 3)) < 0.8
    row = entry.promises[0]
    assert row.verdict == "BROKEN"
    assert row.samples == 25
    assert row.over > 5
    assert re.search(
        r"; more memory \(at least 500 places for it; it had 175\), .*looser limit \(\+[\d.]+pt", row.sentence
    )
    assert row.stored == pytest.approx(float((said != learner.store["y"][stored]).float().mean()))
    assert f"{100 * row.stored:.1f} % on stored samples, learned by heart" in row.sentence


def test_without_witnesses_what_was_memorised_proves_nothing_and_is_never_kept() -> None:
    learner = _adopted(witness=0, drift=0.0)
    entry = learner.learn(*_new(500, 2), name="sides", epochs=60, batch=50)
    assert learner.evaluate(*_old(1000, 3)) < 0.8
    assert entry.promises[0].verdict == "no witnesses"
    assert not entry.promises.kept


@pytest.mark.parametrize(("unseen", "verdict"), [(False, "undecided"), (True, "kept")])
def test_adopted_samples_show_a_limit_as_kept_only_where_the_network_never_saw_them(
    unseen: bool, verdict: str, tmp_path: Path
) -> None:
    learner = pdcl.PDCL(_knowing(), memory=200, witness=50, tolerance="45%")
    learner.adopt(*_old(500, 0), name="legacy", labels=["down", "up"], unseen=unseen)
    learner.save(tmp_path / "model")
    loaded = pdcl.load(tmp_path / "model", network=_knowing())
    row = loaded.learn(*_new(60, 2), name="sides", epochs=1, batch=50).promises[0]
    assert row.high < 0.45  # a limit that such witnesses show as kept with ease
    assert row.verdict == verdict
    assert ("unseen=True" in row.sentence) is not unseen


def test_a_limit_of_a_name_that_no_task_has_stands_in_the_table_until_one_comes() -> None:
    learner = pdcl.PDCL("mlp:8", memory=60, tolerance={"legcy": "+2pt", "*": "50%"})
    learner.learn(*_old(60, 0), name="legacy", epochs=1)
    rows = {row.task: row for row in learner.learn(*_new(60, 1), name="sides", epochs=1).promises}
    assert (rows["legcy"].verdict, rows["legcy"].written, rows["legcy"].samples) == ("no samples yet", "+2pt", 0)
    rows = [row.task for row in learner.learn(*_old(60, 2), name="legcy", epochs=1).promises]
    assert rows.count("legcy") == 1


def test_a_report_before_the_first_task_is_empty_and_steps_without_a_unit_relax_no_limit() -> None:
    learner = pdcl.PDCL("mlp:8", memory=60, tolerance="+2pt")
    assert not learner.report().has_tolerances
    learner.learn(*_old(60, 0), epochs=1)
    assert learner.core.dual.decay > 0
    assert learner.report().decay == 0
    learner = pdcl.PDCL("mlp:8", memory=60, tolerance=0.1, decay=0.2)
    learner.learn(*_old(60, 0), epochs=1)
    assert learner.report().decay == 0.2


def test_with_few_witnesses_the_same_is_undecided_and_says_how_many_would_decide() -> None:
    learner = _adopted(witness=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entry = learner.learn(*_new(500, 2), name="sides", epochs=60, batch=50)
    assert entry.promises[0].verdict == "undecided"
    assert entry.promises[0].wants > 4


def test_a_broken_limit_is_one_warning_at_the_users_own_line(forgetful: Any) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        forgetful.learn(*_new(500, 2), name="sides", epochs=5, batch=50)
    broken = [each for each in heard if issubclass(each.category, pdcl.LimitBroken)]
    assert [each.filename for each in broken] == [__file__]
    assert "legacy: BROKEN by" in str(broken[0].message)


def test_without_limits_there_is_no_table_and_nothing_is_said() -> None:
    learner = _adopted(tolerance=None, witness=None, base=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entry = learner.learn(*_new(200, 2), epochs=2)
    assert entry.promises is None
    assert learner.promises is None


@pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")
def test_the_entry_is_its_line_of_the_lineage_and_reads_as_a_table(forgetful: Any, tmp_path: Any) -> None:
    entry = forgetful.learn(*_new(500, 2), name="sides", epochs=5, batch=50)
    assert json.loads(json.dumps(entry)) == forgetful.lineage.entries[-1]
    assert [row.task for row in entry.promises] == ["legacy", "sides"]
    assert "task 1 (sides) learned, 500 samples" in repr(entry)
    assert str(entry.promises) in repr(entry)
    assert entry.promises == forgetful.promises
    assert pdcl.load(forgetful.save(tmp_path / "model"), network=_knowing()).promises == entry.promises


@pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")
def test_rollback_leaves_the_learner_as_it_was_and_says_so(forgetful: Any) -> None:
    before, spec, x = copy.deepcopy(forgetful.state_dict()), forgetful.spec, _old(50, 4)[0]
    head, said = forgetful.model[-1], forgetful.predict(x)
    entry = forgetful.learn(*_new(500, 2), name="sides", epochs=5, batch=50, on_violation="rollback")
    assert entry.rolled_back
    assert entry.promises[0].verdict == "BROKEN"
    assert "rolled back" in repr(entry)
    assert same(forgetful.state_dict(), before)
    assert forgetful.spec == spec
    assert forgetful.model[-1] is head
    assert (forgetful.predict(x) == said).all()
    assert [(each["task"], each["how"]) for each in forgetful.lineage.entries] == [(0, "adopted"), (1, "rolled back")]


@pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")
def test_life_goes_on_after_a_rollback(forgetful: Any, tmp_path: Any) -> None:
    forgetful.learn(*_new(500, 2), name="sides", epochs=5, batch=50, on_violation="rollback")
    seen = len(forgetful.lineage.samples)
    entry = forgetful.learn(*_new(500, 2), name="sides", epochs=5, batch=50)
    assert (entry["task"], entry["how"], "data" in entry) == (1, "learned", True)
    assert len(forgetful.lineage.samples) == seen + 500
    card = (forgetful.save(tmp_path / "model") / "MODEL.md").read_text()
    assert "rolled back" in card


def test_a_limit_that_is_kept_is_not_rolled_back() -> None:
    learner = _adopted(tolerance="+100pt", memory=60, witness=5)
    assert not learner.learn(*_new(100, 2), epochs=1, on_violation="rollback").rolled_back


def test_rollback_is_refused_where_no_limit_could_break_and_unknown_words_too() -> None:
    learner = _adopted(tolerance=None, witness=None)
    with pytest.raises(UsageError, match="no limits"):
        learner.learn(*_new(100, 2), on_violation="rollback")
    with pytest.raises(UsageError, match=r"choose one of report, rollback$"):
        learner.learn(*_new(100, 2), on_violation="undo")
    with pytest.raises(UsageError, match='"feasible" is gone; write on_violation="rollback"'):
        learner.learn(*_new(100, 2), on_violation="feasible")
    assert learner.tasks_learned == 1


@pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")
def test_a_model_that_went_between_old_and_new_weights_is_loaded_and_its_guards_are_replayed(
    tmp_path: Any,
) -> None:
    """`on_violation="feasible"` of before set guards aside that nobody had stated, and noted how far it went."""
    learner = _adopted(memory=1000, guard=30, witness=None, tolerance="+50pt")
    learner.guard = None
    learner.lineage.entries[-1]["result"]["candidate"] = {
        "share": 0.75, "kept": True, "over": [0.2, 0.1, 0.0], "judged_on": "guards",
    }  # fmt: skip
    loaded = pdcl.load(learner.save(tmp_path / "model"), network=_knowing())
    assert loaded.lineage.entries == learner.lineage.entries
    held = loaded.held["id"][loaded.held["role"] == GUARD]
    assert len(held) == 30
    loaded.learn(*_new(100, 2), name="sides", epochs=1)
    roles = dict(zip(loaded.held["id"].tolist(), loaded.held["role"].tolist(), strict=True))
    assert {roles.get(each) for each in held.tolist()} == {REPLAY}


def test_a_method_without_limits_names_those_that_take_some_and_no_option_that_it_lacks() -> None:
    with pytest.raises(UsageError, match="DERpp takes no limits") as refused:
        pdcl.learner("derpp", "mlp:8", memory=20).learn(*_old(40, 1), on_violation="rollback")
    assert "tolerance" not in str(refused.value)
    takers = [name for name, method in methods().items() if method.family == "primal-dual"]
    assert f"({', '.join(takers)})" in str(refused.value)


@pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")
def test_a_reference_moves_only_when_rebased_and_the_lineage_says_so(forgetful: Any, tmp_path: Any) -> None:
    limit = forgetful.report().tolerances[0]
    first = forgetful.learn(*_new(500, 2), name="sides", epochs=5, batch=50).promises[0]
    assert first.verdict == "BROKEN"
    assert forgetful.report().tolerances[0] == pytest.approx(limit, abs=0.02)
    moved = forgetful.rebase("legacy")
    assert (moved["how"], moved["task"]) == ("rebased", 0)
    assert moved["result"]["new"] == pytest.approx(min(1.0, moved["result"]["now"] + 0.02))
    assert moved["result"]["then"] == pytest.approx(first.then)
    assert moved["result"]["now"] == pytest.approx(first.now)
    assert forgetful.report().tolerances[0] > limit + 0.1
    assert forgetful.lineage.entries[-1] == moved
    saved = pdcl.load(forgetful.save(tmp_path / "model"), network=_knowing())
    assert saved.report().tolerances == forgetful.report().tolerances
    second = forgetful.learn(*_old(100, 5), name="old again", epochs=1).promises[0]
    assert second.then == pytest.approx(first.now, abs=1e-6)


def test_rebasing_what_has_no_reference_is_refused() -> None:
    learner = _adopted(tolerance="5%")
    with pytest.raises(UsageError, match="compares with nothing"):
        learner.rebase(0)
    with pytest.raises(UsageError, match=r"tasks so far: 0 \(legacy\)"):
        learner.rebase("legcay")


@pytest.mark.filterwarnings("ignore::pdcl.errors.LimitBroken")
def test_a_task_can_be_given_a_limit_of_its_own_when_it_is_learned() -> None:
    learner = _adopted()
    learner.learn(*_new(200, 2), name="sides", tolerance="40%", epochs=1)
    rows = learner.learn(*_old(200, 5), name="old again", epochs=1).promises
    assert [row.written for row in rows] == ["+2pt", "40%", None]


@pytest.mark.parametrize("tolerance", ["+2%", "1%,2%", {"a": "+2pt"}, "a:+2pt, *:5%", "new:5%"])
def test_what_is_no_single_limit_is_refused_before_the_task(tolerance: Any) -> None:
    learner = _adopted()
    for call in (learner.learn, learner.adopt):
        with pytest.raises(UsageError, match="tolerance="):
            call(*_old(100, 2), tolerance=tolerance)
    assert learner.tasks_learned == 1
