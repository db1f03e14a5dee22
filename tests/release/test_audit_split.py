"""Setting part of a task aside: never trained on, on a budget, whole groups, and told before training."""

import numpy as np
import pytest

import pdcl
from pdcl.errors import PdclError, UsageError
from pdcl.learning.events import SetAside, TaskBegan
from pdcl.lifelong import references
from pdcl.streams.audits import read_audit
from pdcl.streams.hashes import sample_hashes
from pdcl.streams.transform import Transform


def task(seed, labels=("cat", "dog"), n=200):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, n)
    x = generator.normal(0, 1, (n, 4)) + 4 * y[:, None]
    return x.astype(np.float32), np.asarray(labels)[y]


@pytest.fixture
def learner():
    return pdcl.PDCL("mlp:8", memory=20, seed=0, device="cpu")


def test_what_is_set_aside_is_not_trained_on(learner, tmp_path):
    x, y = task(0)
    learner.learn(x, y, name="jan", epochs=1, audit=tmp_path / "audit")
    held = read_audit(tmp_path / "audit")
    assert len(held) == 20
    assert set(held.columns["task"]) == {"jan"}
    seen = set(learner.lineage.samples.tolist())
    assert len(seen) == 180
    assert not seen & set(sample_hashes(held.x, learner.lineage.key).tolist())


def test_the_audit_set_grows_task_by_task_within_its_budget(learner, tmp_path):
    place = tmp_path / "audit"
    for month, name in enumerate(["jan", "feb"]):
        learner.learn(*task(month), name=name, epochs=1, audit=place, audit_share=0.2, audit_budget=60)
    assert [int((read_audit(place).columns["task"] == name).sum()) for name in ("jan", "feb")] == [40, 20]
    with pytest.raises(UsageError, match="budget is 60"):
        learner.learn(*task(3), name="mar", epochs=1, audit=place, audit_budget=60)


def test_before_training_it_says_what_can_be_certified(learner, tmp_path):
    heard = []
    learner.learn(*task(0), name="jan", epochs=1, audit=tmp_path / "a", audit_share=0.295, listener=heard.append)
    said = next(event for event in heard if isinstance(event, SetAside))
    assert said.samples == 59
    assert said.certifies == pytest.approx(0.0495, abs=1e-4)
    assert heard.index(said) < next(i for i, event in enumerate(heard) if isinstance(event, TaskBegan))


def test_the_card_shows_it_beside_memory(learner, tmp_path):
    learner.learn(*task(0), name="jan", epochs=1, audit=tmp_path / "a", audit_budget=100)
    card = (learner.save(tmp_path / "model") / "MODEL.md").read_text()
    assert "20 samples, at most 100" in card
    assert "| jan | 20 | 14 % |" in card


def test_groups_are_set_aside_whole(learner, tmp_path):
    x, y = task(0)
    groups = np.repeat([f"p{i}" for i in range(40)], 5)
    learner.learn(x, y, name="jan", epochs=1, groups=groups, audit=tmp_path / "a", audit_share=0.25)
    held = read_audit(tmp_path / "a")
    names, counts = np.unique(held.columns["group"], return_counts=True)
    assert set(counts.tolist()) == {5}
    assert len(names) >= 5


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(50), 4)], ids=["rows", "groups"])
def test_the_same_call_again_sets_nothing_aside_twice(groups, tmp_path):
    for _ in range(2):
        again = pdcl.PDCL("mlp:8", memory=20, seed=0, device="cpu")
        again.learn(*task(0), groups=groups, name="jan", epochs=1, audit=tmp_path / "a")
    assert len(read_audit(tmp_path / "a")) == 20


def wrong(x, y):
    """Calls that are refused, each at another place."""
    return {
        "test-of-another-shape": ((x, y), {"test": (x[:, :3], y)}),
        "test-of-unknown-classes": ((x, y), {"test": (x, np.full(len(y), "owl"))}),
        "not-finite": ((np.where(np.arange(len(x))[:, None] == 7, np.nan, x).astype(np.float32), y), {}),
        "inputs-of-another-shape": ((x[:, :3], y), {}),
        "a-late-transform": ((x, y), {"transform": Transform(scale=2.0)}),
        "no-epochs-at-all": ((x, y), {"epochs": -1}),
        "infinitely-large": ((x * np.float32(1e38), y[::-1].copy()), {"epochs": 3}),
    }


@pytest.mark.parametrize("fault", wrong(*task(1)))
@pytest.mark.parametrize("begun", [False, True], ids=["a-new-audit-set", "one-that-grows"])
def test_a_refused_task_leaves_the_audit_set_as_it_was(fault, begun, learner, tmp_path):
    place = tmp_path / "audit"
    learner.learn(*task(0), name="jan", epochs=1, audit=place if begun else None)
    before = (place / "samples.npz").read_bytes() if begun else None
    data, options = wrong(*task(1))[fault]
    with pytest.raises(PdclError):
        learner.learn(*data, name="feb", **{"epochs": 1, **options}, audit=place)
    now = (place / "samples.npz").read_bytes() if (place / "samples.npz").exists() else None
    assert now == before


def test_the_same_task_after_a_refusal_sets_the_same_samples_aside(learner, tmp_path):
    x, y = task(0)
    with pytest.raises(PdclError):
        learner.learn(x, y, name="jan", epochs=-1, audit=tmp_path / "a")
    learner.learn(x, y, name="jan", epochs=1, audit=tmp_path / "a")
    pdcl.PDCL("mlp:8", memory=20, seed=0, device="cpu").learn(x, y, name="jan", epochs=1, audit=tmp_path / "b")
    assert read_audit(tmp_path / "a").hash() == read_audit(tmp_path / "b").hash()


def test_references_are_measured_in_pieces_and_are_those_of_the_whole(learner, tmp_path, monkeypatch):
    sizes, measured = [], references.measured

    def noting(learner, audit):
        sizes.append(len(audit))
        return measured(learner, audit)

    monkeypatch.setattr(references, "measured", noting)
    learner.learn(*task(0, n=5000), name="jan", epochs=1, audit=tmp_path / "a", audit_share=0.5)
    assert sizes == [1000, 1000, 500]
    whole = measured(learner, read_audit(tmp_path / "a"))
    for name, values in learner.lineage.references.state_dict().items():
        assert values.tolist() == getattr(whole, name).tolist()


def gated(learner, place):
    """Refused, if anything in the audit set was trained on."""
    return pdcl.gate(learner, place, max_error=0.9)


@pytest.mark.parametrize("copies", [50, 2000], ids=["some", "mostly"])
def test_copies_of_what_is_set_aside_are_not_trained_on(copies, learner, tmp_path):
    x, y = task(0)
    again = np.arange(copies) % len(x)
    learner.learn(np.concatenate([x, x[again]]), np.concatenate([y, y[again]]), epochs=1, audit=tmp_path / "a")
    held = read_audit(tmp_path / "a")
    assert not set(learner.lineage.samples.tolist()) & set(sample_hashes(held.x, learner.lineage.key).tolist())
    assert len(learner.lineage.samples) > 120


def test_groups_that_come_again_stay_on_their_side(learner, tmp_path):
    place, heard = tmp_path / "a", []
    learner.learn(*task(0), groups=np.repeat(np.arange(40), 5), name="jan", epochs=1, audit=place)
    january = set(read_audit(place).columns["group"].tolist())
    learner.learn(
        *task(1), groups=np.repeat(np.arange(20, 60), 5), name="feb", epochs=1, audit=place, listener=heard.append
    )
    held = read_audit(place)
    february = set(held.columns["group"][held.columns["task"] == "feb"].tolist())
    again = {group for group in january if int(group) >= 20}
    assert {group for group in february if int(group) < 40} == again
    assert any(f"{5 * len(again)} of 200 samples are of groups in" in getattr(e, "message", "") for e in heard)
    gated(learner, place)


def test_the_budget_holds_where_groups_come_again(learner, tmp_path):
    groups = np.repeat(np.arange(10), 20)
    for month, name in enumerate(["jan", "feb"]):
        learner.learn(*task(month), groups=groups, name=name, epochs=1, audit=tmp_path / "a", audit_budget=30)
    assert len(read_audit(tmp_path / "a")) == 30
    gated(learner, tmp_path / "a")


def test_audit_rows_and_learned_rows_that_come_again_stay_on_their_side(learner, tmp_path):
    place, heard = tmp_path / "a", []
    x, y = task(0)
    learner.learn(x, y, name="jan", epochs=1, audit=place)
    held = read_audit(place)
    fresh = task(1)
    both = np.concatenate([x, fresh[0]]), np.concatenate([y, fresh[1]])
    learner.learn(*both, name="feb", epochs=1, audit=place, listener=heard.append)
    assert len(read_audit(place)) == 2 * len(held)
    assert any("20 of 400 samples are copies of audit samples" in getattr(e, "message", "") for e in heard)
    gated(learner, place)


def test_labels_of_two_types_are_refused_before_training(learner, tmp_path):
    x, y = task(0)
    learner.learn(x, (y == "cat").astype(int), name="jan", epochs=1, audit=tmp_path / "a")
    with pytest.raises(PdclError, match=r"two types, \d \(int\) and '\w+' \(str\); give this task an audit set"):
        learner.learn(*task(1), name="feb", epochs=1, audit=tmp_path / "a")
    assert learner.tasks_learned == 1
