"""Nearest class mean and streaming LDA: what a stream leaves is what all data at once would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid
from torch import Tensor, nn

import pdcl
from pdcl.errors import UsageError
from pdcl.streams.task import Stream

NAMES = ["ncm", "slda"]


def _all(stream: Stream) -> tuple[Tensor, Tensor, Tensor]:
    """Training inputs as the network sees them, their labels, and test inputs, of all tasks."""
    sides = [[part.fetch(torch.arange(len(part))) for part in (task.data, task.test)] for task in stream.tasks]
    seen = stream.spec.transform(torch.cat([train[0] for train, _ in sides]))
    test = stream.spec.transform(torch.cat([test[0] for _, test in sides]))
    return seen.double(), torch.cat([train[1] for train, _ in sides]), test.double()


def _scores(learner: Any, stream: Stream) -> Tensor:
    return torch.cat([learner.evaluated(task.test.fetch(torch.arange(len(task.test)))[0]) for task in stream.tasks])


def test_ncm_keeps_the_mean_of_every_class(stream: Stream) -> None:
    learner: Any = pdcl.run(stream, "ncm", batch=7).learner
    x, y, test = _all(stream)
    oracle = NearestCentroid().fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(learner.means.numpy(), oracle.centroids_, rtol=1e-12)
    assert learner.counts.tolist() == torch.bincount(y).tolist()
    np.testing.assert_array_equal(_scores(learner, stream).argmax(1).numpy(), oracle.predict(test.numpy()))


@pytest.mark.parametrize("shrinkage", [1e-4, 0.3])
def test_slda_is_discriminant_analysis_of_all_data(stream: Stream, shrinkage: float) -> None:
    learner: Any = pdcl.run(stream, "slda", batch=7, shrinkage=shrinkage).learner
    x, y, test = _all(stream)
    oracle = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage, store_covariance=True)
    oracle.fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(learner.covariance().numpy(), oracle.covariance_, rtol=1e-10, atol=1e-12)
    probabilities = _scores(learner, stream).double().softmax(1).numpy()
    np.testing.assert_allclose(probabilities, oracle.predict_proba(test.numpy()), atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_order_and_batches_change_nothing(name: str, stream: Stream) -> None:
    from dataclasses import replace

    backwards = replace(stream, tasks=[replace(t, index=i) for i, t in enumerate(reversed(stream.tasks))])
    one: Any = pdcl.run(stream, name, batch=5, seed=0).learner
    other: Any = pdcl.run(backwards, name, batch=64, seed=1).learner
    for kept in [each for each in one.persistent if each != "fresh"]:
        torch.testing.assert_close(getattr(one, kept), getattr(other, kept), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_far_from_zero_the_covariance_keeps_its_digits(name: str) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    x = rng.normal(size=(200, 3)) + np.eye(4, 3)[y] * 4
    near, far = (pdcl.learner(name) for _ in range(2))
    near.learn(x, y)
    far.learn(x + 1000, y)
    np.testing.assert_array_equal(near.predict(x), far.predict(x + 1000))


@pytest.mark.parametrize("name", NAMES)
def test_new_labels_in_later_tasks_and_after_loading(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6)).astype("float32") + 4 * np.eye(6, dtype="float32")[np.arange(120) % 6]
    y = np.array([f"intent {k % 6}" for k in range(120)])
    early = np.isin(y, ["intent 0", "intent 1", "intent 2"])
    learner = pdcl.learner(name)
    learner.learn(x[early], y[early])
    learner.save(tmp_path / "model")
    learner = pdcl.load(tmp_path / "model")
    learner.learn(x[~early], y[~early])
    whole = pdcl.learner(name)
    whole.learn(x, y)
    assert learner.store is None
    assert learner.evaluate(x, y) > 0.9
    np.testing.assert_array_equal(learner.predict(x), whole.predict(x))


def test_adopting_counts_as_learning(tmp_path: Path) -> None:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

        def features(self, x: Tensor) -> Tensor:
            return self.body(x).relu()

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.features(x))

    torch.manual_seed(0)
    network = Encoder()
    x, y = torch.randn(60, 4), torch.arange(60) % 3
    adopting, learning = (pdcl.learner("slda", network) for _ in range(2))
    adopting.adopt(x, y, labels=[0, 1, 2])
    learning.learn(x, y)
    assert adopting.means.shape == (3, 8)
    torch.testing.assert_close(adopting.means, learning.means)
    torch.testing.assert_close(adopting.scatter, learning.scatter)


def test_the_network_stays_as_it_was(stream: Stream) -> None:
    network = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 6))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    pdcl.run(stream, "ncm", network=network, batch=10)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"network": "mlp:8"}, "trained module"),
        ({"lr": 0.1}, "no option 'lr'"),
        ({"epochs": 3}, "no option 'epochs'"),
        ({"memory": 10}, "no option 'memory'"),
        ({"shrinkage": 0.0}, "shrinkage"),
    ],
)
def test_options_without_effect_are_refused(stream: Stream, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        pdcl.run(stream, "slda", **options)


def test_epochs_and_export_are_refused_by_a_learner(tmp_path: Path) -> None:
    learner = pdcl.learner("ncm")
    with pytest.raises(UsageError, match="epochs=2 has no effect"):
        learner.learn([[0.0], [1.0]], [0, 1], epochs=2)
    learner.learn([[0.0], [1.0]], [0, 1])
    with pytest.raises(UsageError, match="save the learner"):
        learner.export(tmp_path / "m.onnx")


def test_a_stream_s_preset_speaks_of_networks_and_rates_that_have_no_effect_here() -> None:
    result = pdcl.run("digits", "slda", preset="tuned")
    assert result.mean_accuracy > 0.9
    assert result.mean_forgetting < 0.1


def test_inputs_of_several_parts_go_through_the_network() -> None:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = nn.Embedding(12, 5)

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            return (self.vectors(input_ids) * attention_mask[..., None]).sum(1)

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    y = np.arange(40) % 4
    words = [3 * label + rng.integers(0, 3, size=rng.integers(2, 6)) for label in y]
    parts = {"input_ids": words, "attention_mask": [np.ones(len(each), dtype="float32") for each in words]}
    learner = pdcl.learner("ncm", Bag())
    learner.learn(parts, y)
    assert learner.evaluate(parts, y) > 0.5
