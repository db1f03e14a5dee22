"""Probabilities, "none of these", and inputs that a learner refuses to judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, TensorDataset

import pdcl
from pdcl.errors import UsageError
from pdcl.streams.checks import BadData

LABELS = ["card", "cash", "loan"]


def _task(count: int = 90, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    random = np.random.default_rng(seed)
    k = np.arange(count) % 3
    x = random.normal(size=(count, 5)).astype("float32") + 3 * np.eye(3, 5, dtype="float32")[k]
    return x, np.asarray(LABELS)[k]


@pytest.fixture(scope="module")
def learner() -> pdcl.Learner:
    made = pdcl.learner("er", "linear", memory=10, lr=0.05)
    made.learn(*_task(), epochs=3)
    return made


def test_probabilities_are_the_softmax_of_the_network_s_outputs(learner: pdcl.Learner) -> None:
    x, _ = _task(seed=1)
    found = learner.predict_proba(x)
    assert found.shape == (90, 3)
    assert list(learner.labels) == LABELS
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    expected = learner.model(torch.as_tensor(x)).softmax(1).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_array_equal(np.asarray(LABELS)[found.argmax(1)], learner.predict(x))


def test_outputs_that_no_label_has_yet_get_no_probability() -> None:
    made = pdcl.learner("er", torch.nn.Sequential(torch.nn.Linear(5, 8)), memory=10)
    made.learn(*_task(), epochs=1)
    assert made.predict_proba(_task()[0]).shape == (90, 3)
    np.testing.assert_allclose(made.predict_proba(_task()[0]).sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_batches_change_nothing(learner: pdcl.Learner, batch: int) -> None:
    x, y = _task(seed=1)
    np.testing.assert_allclose(learner.predict_proba(x, batch=batch), learner.predict_proba(x), rtol=1e-5, atol=1e-7)
    assert learner.evaluate(x, y, batch=batch) == learner.evaluate(x, y)


def test_a_dataset_is_read_so_many_at_a_time(learner: pdcl.Learner) -> None:
    x, y = _task(seed=1)
    asked: list[int] = []

    class Rows(Dataset[Any]):
        def __len__(self) -> int:
            return len(x)

        def __getitem__(self, row: int) -> tuple[Any, Any]:
            asked.append(row)
            return x[row], y[row]

    sizes: list[int] = []
    evaluated = learner.evaluated
    learner.evaluated = lambda part, size: (sizes.append(len(part)), evaluated(part, size))[1]  # type: ignore[assignment,method-assign,func-returns-value]
    try:
        found = learner.predict_proba(Rows(), batch=40)
    finally:
        del learner.evaluated  # type: ignore[method-assign]
    assert sizes == [40, 40, 10]
    assert sorted(asked) == list(range(90))
    np.testing.assert_allclose(found, learner.predict_proba(x), rtol=1e-5)


@pytest.mark.parametrize(("otherwise", "kind"), [(None, "O"), ("none of these", "U"), (-1, "O")])
def test_an_unsure_sample_gets_no_label_or_the_stated_one(learner: pdcl.Learner, otherwise: Any, kind: str) -> None:
    x, _ = _task(seed=1)
    sure = learner.predict_proba(x).max(1) >= 0.9
    assert 0 < sure.sum() < 90
    found = learner.predict(x, threshold=0.9, otherwise=otherwise)
    assert found.dtype.kind == kind
    assert found[sure].tolist() == learner.predict(x)[sure].tolist()
    assert set(found[~sure].tolist()) == {otherwise}


def test_labels_have_probabilities_and_thresholds_of_their_own() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 4)).astype("float32")
    y = (x[:, :3] > 0).astype(int)
    made = pdcl.learner("er", "linear", memory=10, lr=0.05)
    made.learn(x, y, kind="multilabel", epochs=3)
    found = made.predict_proba(x)
    np.testing.assert_array_equal(made.predict(x), found > 0.5)
    np.testing.assert_array_equal(made.predict(x, threshold=0.8), found >= 0.8)
    with pytest.raises(UsageError, match="otherwise"):
        made.predict(x, threshold=0.8, otherwise="none")


def test_regression_has_neither(learner: pdcl.Learner) -> None:
    made = pdcl.learner("er", "linear", memory=10)
    made.learn(np.zeros((20, 3), dtype="float32"), np.arange(20.0), kind="regression", epochs=1)
    with pytest.raises(UsageError, match="no probabilities"):
        made.predict_proba(np.zeros((2, 3)))
    with pytest.raises(UsageError, match="no effect on regression"):
        made.predict(np.zeros((2, 3)), threshold=0.5)


@pytest.mark.parametrize("call", ["predict", "predict_proba"])
def test_what_learn_refuses_is_refused_here(learner: pdcl.Learner, call: str) -> None:
    ask, (x, _) = getattr(learner, call), _task()
    with pytest.raises(BadData, match=r"the learner reads \(n, 5\)"):
        ask(x[:, :4])
    with pytest.raises(BadData, match="float32"):
        ask(x.astype("int64"))
    broken = x.copy()
    broken[57, 2] = np.nan
    with pytest.raises(BadData, match="row 57 holds NaN"):
        ask(broken)
    rows = TensorDataset(torch.as_tensor(broken), torch.zeros(len(x)))
    with pytest.raises(BadData, match="row 57 holds NaN"):
        ask(rows, batch=20)
    with pytest.raises(BadData, match=r"loader\.dataset"):
        ask(DataLoader(rows))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"threshold": 1.5}, "between 0 and 1"),
        ({"threshold": "0.5"}, "between 0 and 1"),
        ({"otherwise": "none"}, "without threshold"),
        ({"batch": 0}, "at least 1"),
        ({"collate": list}, "collate has no effect"),
    ],
)
def test_options_that_say_nothing_are_refused(learner: pdcl.Learner, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        learner.predict(_task()[0], **options)


def test_a_label_has_its_own_type_whatever_else_is_predicted() -> None:
    learner = pdcl.learner("er", "linear", memory=30, lr=0.05)
    x, y = _task()
    learner.learn(x[y != "loan"], y[y != "loan"], epochs=5)
    learner.learn(x[y == "loan"], np.full(30, 7), epochs=5)
    for part in (x[y == "loan"], x):
        assert {type(label) for label in learner.predict(part)} <= {int, str}
    assert 7 in learner.predict(x).tolist()


def test_no_samples_give_no_answers(learner: pdcl.Learner) -> None:
    x, _ = _task()
    assert learner.predict(x[:0]).shape == (0,)
    assert learner.predict(x[:0]).dtype.kind == "U"
    assert learner.predict(x[:0], threshold=0.5).shape == (0,)
    assert learner.predict_proba(x[:0]).shape == (0, 3)
