"""Statistics are sums: order, batches, merged halves and erased samples change nothing but what they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.errors import UsageError
from pdcl.lifelong.undo import Before
from pdcl.past.segments import Segments
from pdcl.past.statistics import gram_bytes, packed, unpacked
from pdcl.past.task_sums import TaskSums

Digits = tuple[Any, Any]
OPTIONS: dict[str, Any] = {"guard": 0, "rho": 1e-3, "erasable": True}


@pytest.fixture(scope="module")
def phi(digits: Digits) -> Any:
    """Features that all learners here share, fitted once."""
    first = pdcl.learner("exact", features="random:120", **OPTIONS)
    first.learn(digits[0][:400], digits[1][:400])
    return first.phi


def _learner(phi: Any, digits: Digits, **options: Any) -> Any:
    """A learner that knows all ten labels by one sample each, so that outputs stand in one order."""
    learner: Any = pdcl.learner("exact", features=phi, **{**OPTIONS, **options})
    first = [int(np.flatnonzero(digits[1] == k)[0]) for k in range(10)]
    learner.learn(digits[0][first], digits[1][first], name="labels")
    return learner


def _tasks(digits: Digits) -> list[tuple[str, Any, Any]]:
    x, y = digits
    return [(f"task {k}", x[100:][y[100:] // 2 == k], y[100:][y[100:] // 2 == k]) for k in range(5)]


@pytest.fixture(scope="module")
def whole(phi: Any, digits: Digits) -> Any:
    learner = _learner(phi, digits)
    for name, x, y in _tasks(digits):
        learner.learn(x, y, name=name)
    return learner


def test_order_and_batches_change_nothing(whole: Any, phi: Any, digits: Digits) -> None:
    other = _learner(phi, digits)
    for name, x, y in reversed(_tasks(digits)):
        other.learn(x, y, name=name, batch=7)
    np.testing.assert_allclose(other.solution.W, whole.solution.W, atol=1e-8)


def test_merged_halves_are_the_whole(whole: Any, phi: Any, digits: Digits) -> None:
    halves = [_learner(phi, digits), pdcl.learner("exact", features=phi, **OPTIONS)]
    for name, x, y in _tasks(digits):
        for half, rows in zip(halves, (slice(0, None, 2), slice(1, None, 2)), strict=True):
            half.learn(x[rows], y[rows], name=name)
    halves[0].merge(halves[1])
    np.testing.assert_allclose(halves[0].solution.W, whole.solution.W, atol=1e-8)
    assert halves[0].tasks_learned == whole.tasks_learned
    assert halves[0].lineage.entries[-1]["how"] == "merged"


def test_erased_is_never_seen(phi: Any, digits: Digits) -> None:
    without, erased = _learner(phi, digits), _learner(phi, digits)
    for number, (name, x, y) in enumerate(_tasks(digits)):
        stays = 60 if number < 4 else len(x)
        without.learn(x[:stays], y[:stays], name=name)
        erased.learn(x, y, name=name)
    gone = [(x[60:], y[60:]) for _, x, y in _tasks(digits)[:4]]
    count = erased.forget(np.concatenate([x for x, _ in gone]), np.concatenate([y for _, y in gone]))
    assert count > 1000
    np.testing.assert_allclose(erased.solution.W, without.solution.W, atol=1e-6)
    x = digits[0][:200]
    np.testing.assert_allclose(erased.predict_proba(x), without.predict_proba(x), atol=1e-5)


def test_learning_copies_no_statistics_and_what_is_undone_has_them_as_they_were(digits: Digits) -> None:
    (x, y), learner = digits, pdcl.learner("exact", tolerance={"first": "+2pt"})
    learner.learn(x[:600], y[:600], name="first")
    learner.learn(x[600:900], y[600:900], name="second")
    sums, said = [each.gram.clone() for each in learner.sets.parts], learner.scores(torch.as_tensor(x[:50]))
    before = Before(learner)
    kept = before.attributes["sets"]
    assert all(one.gram is other.gram for one, other in zip(kept.parts, learner.sets.parts, strict=True))
    learner.learn(x[900:], y[900:], name="third")
    assert not torch.equal(learner.sets.parts[0].gram, sums[0])
    before.restore()
    assert all(torch.equal(each.gram, own) for each, own in zip(learner.sets.parts, sums, strict=True))
    assert torch.equal(learner.scores(torch.as_tensor(x[:50])), said)


def test_an_erased_class_is_predicted_no_more(phi: Any, digits: Digits) -> None:
    learner = _learner(phi, digits)
    x, y = digits
    rows = np.flatnonzero(y == 9)
    learner.learn(x[rows[1:]], y[rows[1:]], name="nines")
    assert 9 in learner.predict(x[rows])
    learner.learn(x[:0:-300], y[:0:-300], name="later")
    learner.forget(x[rows], y[rows])
    assert 9 not in learner.predict(x)
    note = learner.lineage.entries[-1]
    assert (note["how"], note["task"], note["result"]) == ("forgotten", 2, {"forgotten": len(rows)})


def test_guards_are_erased_too(phi: Any, digits: Digits) -> None:
    learner: Any = pdcl.learner("exact", features=phi, **{**OPTIONS, "guard": 30})
    x, y = digits
    learner.learn(x[:600], y[:600])
    assert len(learner.held.memory) == 30
    learner.forget(x[:300], y[:300])
    assert 0 < len(learner.held.memory) < 30
    other: Any = pdcl.learner("exact", features=phi, **{**OPTIONS, "guard": 0})
    other.learn(x[:1], y[:1])
    assert sum(each.samples for each in learner.sets.parts) == 300 - len(learner.held.memory)


def test_saved_and_loaded_it_goes_on_to_the_bit(whole: Any, phi: Any, digits: Digits, tmp_path: Any) -> None:
    one = _learner(phi, digits)
    for name, x, y in _tasks(digits)[:2]:
        one.learn(x, y, name=name)
    one.save(tmp_path / "model")
    other: Any = pdcl.load(tmp_path / "model")
    for learner in (one, other):
        for name, x, y in _tasks(digits)[2:]:
            learner.learn(x, y, name=name)
    assert torch.equal(one.solution.W, other.solution.W)
    np.testing.assert_array_equal(one.predict_proba(digits[0]), other.predict_proba(digits[0]))


@pytest.mark.parametrize("m", [1, 2, 5, 8])
def test_half_a_symmetric_matrix_is_all_of_it(m: int) -> None:
    x = torch.randn(m, m, generator=torch.Generator().manual_seed(m))
    symmetric = x + x.T
    assert torch.equal(unpacked(packed(symmetric), m), symmetric)
    assert packed(symmetric).numel() <= (m + 1) ** 2 / 2 + 1
    assert gram_bytes(m, torch.float64) == 8 * packed(symmetric).numel()


def _refused(learner: Any, act: Any, said: str) -> None:
    before = learner.solution.W.clone(), learner.sets.nbytes, learner.tasks_learned
    with pytest.raises(UsageError, match=said) as error:
        act()
    assert "\n" not in str(error.value)
    assert torch.equal(learner.solution.W, before[0])
    assert (learner.sets.nbytes, learner.tasks_learned) == before[1:]


def test_what_can_t_be_added_or_taken_out_is_refused_and_nothing_changes(phi: Any, digits: Digits) -> None:
    x, y = digits
    learner = _learner(phi, digits)
    stranger: Any = pdcl.learner("exact", features="random:120", **OPTIONS)
    stranger.learn(x[:300], y[:300])
    labels: Any = pdcl.learner("exact", features=phi, **OPTIONS)
    labels.learn(x[:50], [f"a {k}" for k in y[:50]])
    single: Any = pdcl.learner("exact", features=phi, guard=0)
    single.learn(x[:50], y[:50])
    _refused(learner, lambda: learner.merge(stranger), "other features")
    _refused(learner, lambda: learner.merge(labels), "label 'a")
    _refused(learner, lambda: learner.merge(single), "made alike")
    _refused(learner, lambda: learner.merge("model"), "not str")
    _refused(learner, lambda: learner.merge(learner), "count twice")
    _refused(learner, lambda: learner.forget(x[500:510], y[500:510]), "row 0 .*never learned")
    _refused(learner, lambda: learner.forget(x[:1], [77]), "77")
    _refused(single, lambda: single.forget(x[:1], y[:1]), "erasable=True")
    _refused(learner, lambda: learner.learn(x[:20, :10], y[:20]), "shape|fit")
    bad = x[:20].copy()
    bad[3, 3] = np.nan
    _refused(learner, lambda: learner.learn(bad, y[:20]), "finite|NaN|nan")


def test_a_changed_backbone_is_refused(digits: Digits) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(64, 30), torch.nn.ReLU())
    learner: Any = pdcl.learner("exact", features=module)
    learner.learn(digits[0][:400], digits[1][:400])
    assert learner.evaluate(digits[0][:400], digits[1][:400]) > 0.8
    with torch.no_grad():
        module[0].weight.add_(0.01)
    for act in (lambda: learner.predict(digits[0]), lambda: learner.learn(digits[0], digits[1])):
        with pytest.raises(UsageError, match="features have changed"):
            act()


def test_guards_are_learned_where_nothing_is_stated_and_judge_where_something_is():
    """Without limits the network is the ridge solution over all samples; with limits, over those not held back."""
    x = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
    y = x @ torch.randn(6, generator=torch.Generator().manual_seed(1))[:, None] + 1
    y = y + torch.randn(400, 1, generator=torch.Generator().manual_seed(2))
    free = pdcl.learner("exact", features="raw", rho=1e-6, erasable=True)
    free.learn(x, y.flatten().numpy(), kind="regression")
    limited = pdcl.learner("exact", features="raw", rho=1e-6, erasable=True, tolerance="2.0")
    limited.learn(x, y.flatten().numpy(), kind="regression")
    design = np.concatenate([x.numpy(), np.ones((400, 1))], 1)
    whole = design @ np.linalg.lstsq(design, y.numpy(), rcond=None)[0]
    far = [np.abs(np.asarray(each.predict(x)).reshape(-1, 1) - whole).max() for each in (free, limited)]
    assert far[0] < 0.01 < far[1]


def test_sums_of_all_ranks_are_added() -> None:
    """Every other rank saw what this one did, twice over."""

    class Three:
        alone = False

        def sum(self, value: torch.Tensor) -> torch.Tensor:
            return 3 * value

    one = TaskSums(4, 3, 2, Segments({}), exact=True)
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.tensor([0, 1, 1, 1])
    one.include(torch.arange(4), x, y, torch.zeros(4, 0).long())
    found, _ = one.finished(Three())
    np.testing.assert_allclose(found.gram.triu(), (3 * x.T @ x).triu())
    np.testing.assert_allclose(found.cross, 3 * torch.stack([x[0], x[1:].sum(0)]))
    assert (found.counts.tolist(), found.samples, found.squares) == ([3, 9], 12, 12.0)
