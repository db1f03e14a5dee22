"""The synthetic stream is as hard as it says, task by task."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit

from pdcl.streams.catalog import load
from pdcl.streams.checks import BadData
from pdcl.streams.data import everything
from pdcl.streams.task import Stream


def nearest_centre_error(stream: Stream, task: int) -> float:
    """The error of the Bayes rule with centres estimated from training data."""
    data, test = stream.tasks[task].data, stream.tasks[task].test
    x, y = data.fetch(everything(data))
    centres = torch.stack([x[y == k].mean(0) for k in stream.tasks[task].classes])
    tx, ty = test.fetch(everything(test))
    guess = torch.tensor(stream.tasks[task].classes)[torch.cdist(tx, centres).argmin(1)]
    return float((guess != ty).float().mean())


def test_separation_sets_the_bayes_error() -> None:
    """Φ(−s/2) within 4 standard errors of 4,000 test samples, plus what estimating the centres costs."""
    separations = [1.0, 2.0, 4.0]
    stream = load("synthetic", tasks=3, separation=separations, size=4000, test_size=4000, seed=1)
    for task, separation in enumerate(separations):
        bayes = 0.5 * math.erfc(separation / 2 / math.sqrt(2))
        error = nearest_centre_error(stream, task)
        assert abs(error - bayes) < 4 * math.sqrt(bayes * (1 - bayes) / 4000) + 0.005


def test_label_noise_moves_exactly_its_share_of_training_labels() -> None:
    clean = load("synthetic", separation=30.0, label_noise=0.0, size=300)
    noisy = load("synthetic", separation=30.0, label_noise=[0.0, 0.1, 0.3, 0.0, 0.0], size=300)
    for task, share in enumerate([0.0, 0.1, 0.3, 0.0, 0.0]):
        data = noisy.tasks[task].data
        x, y = data.fetch(everything(data))
        cx, cy = clean.tasks[task].data.fetch(everything(data))
        assert torch.equal(x, cx)
        assert int((y != cy).sum()) == round(share * 300)
        assert torch.equal(noisy.tasks[task].test.targets, clean.tasks[task].test.targets)


def test_sizes_and_classes_are_as_asked() -> None:
    stream = load("synthetic", tasks=3, classes_per_task=3, size=[30, 60, 90], dim=5)
    assert [len(task.data) for task in stream.tasks] == [30, 60, 90]
    assert stream.spec.heads == ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    with pytest.raises(BadData, match="size has 2 values for 3 tasks"):
        load("synthetic", tasks=3, size=[1, 2])
    with pytest.raises(BadData, match="dim is 1"):
        load("synthetic", dim=1)


def test_the_seed_decides() -> None:
    one, same, other = (load("synthetic", seed=seed).fingerprint for seed in (0, 0, 1))
    assert one == same != other


def logistic_optimum(contradictions: int) -> tuple[np.ndarray, np.ndarray]:
    """Where a Newton method gets without regularisation, and the Hessian there."""
    stream = load("synthetic", tasks=1, separation=20.0, dim=4, shared_classes=True, contradictions=contradictions)
    data = stream.tasks[0].data
    x, y = data.fetch(everything(data))
    a = np.hstack([x.double().numpy(), np.ones((len(x), 1))]) * (2 * y.numpy() - 1)[:, None]

    def loss(w: np.ndarray) -> float:
        return float(np.logaddexp(0, -a @ w).mean())

    def gradient(w: np.ndarray) -> np.ndarray:
        return -(expit(-a @ w)[:, None] * a).mean(0)

    def hessian(w: np.ndarray) -> np.ndarray:
        return (a * (expit(-a @ w) * expit(a @ w))[:, None]).T @ a / len(a)

    found = minimize(loss, np.zeros(5), jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9})
    return gradient(found.x), hessian(found.x)


def test_with_contradictions_logistic_regression_has_one_finite_optimum() -> None:
    gradient, hessian = logistic_optimum(contradictions=8)
    assert np.linalg.norm(gradient) < 1e-8
    assert np.linalg.eigvalsh(hessian)[0] > 1e-5


def test_without_them_classes_far_apart_have_none() -> None:
    """The classes are separable: the loss only flattens out as weights grow for ever."""
    _, hessian = logistic_optimum(contradictions=0)
    assert np.linalg.eigvalsh(hessian)[-1] < 1e-6
