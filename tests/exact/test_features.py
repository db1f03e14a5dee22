"""Fixed features by the shape of the input: of the right size, finite, the same in any batch, and worth having."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.errors import UsageError
from pdcl.features.catalog import build, chosen
from pdcl.features.feature_map import FeatureMap
from pdcl.streams.task import Spec

SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    "random": ((30,), 300),
    "raw": ((30,), 30),
    "patches": ((1, 20, 20), 1600),
    "patches:8": ((3, 32, 32), 256),
    "spectrum:5": ((1, 4000), 160),
}


def _map(name: str, shape: tuple[int, ...], draws: bool = False) -> tuple[FeatureMap, torch.Tensor]:
    spec = Spec(shape, torch.float32, 2)
    x = torch.rand(60, *shape, generator=torch.Generator().manual_seed(0))
    found = build(chosen(name, spec), spec, draws)
    found.fit(x, torch.Generator().manual_seed(1))
    return found, x


@pytest.mark.parametrize("draws", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_features_are_finite_of_order_one_and_the_same_in_any_batch(name: str, draws: bool) -> None:
    shape, width = SHAPES[name]
    found, x = _map(name, shape, draws)
    features = found(x)
    assert features.shape == (60, width) == (60, found.width)
    assert bool(features.isfinite().all())
    assert 0.1 < float(features.square().mean()) < 10
    torch.testing.assert_close(torch.cat([found(x[:7]), found(x[7:])]), features, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((12,), "random"), ((1, 8, 8), "random"), ((1, 28, 28), "patches"), ((3, 32, 32), "patches"),
        ((1, 8000), "spectrum"),
    ],
)  # fmt: skip
def test_the_shape_of_the_input_chooses(shape: tuple[int, ...], kind: str) -> None:
    assert chosen("auto", Spec(shape, torch.float32, 2)).kind == kind


def test_a_convolution_is_the_patch_formula() -> None:
    """One filter by hand: contrast-normalised patch times filter, thresholded both ways, averaged over a quarter."""
    found, x = _map("patches:3", (1, 18, 18))
    features = found.raw(x[:1]).reshape(6, 4, 4)
    rows = torch.nn.functional.unfold(x[:1] * found.unit, 6, stride=2)[0].T
    normal = (rows - rows.mean(1, keepdim=True)) / (rows.var(1, keepdim=True) + 0.01).sqrt()
    z = (normal @ found.filters.flatten(1).T - (found.above.T - 0.25)).T.reshape(3, 7, 7)
    wanted = [torch.nn.functional.adaptive_avg_pool2d(torch.relu(sign * z - 0.25), 4) for sign in (1, -1)]
    torch.testing.assert_close(features, torch.cat(wanted), rtol=1e-4, atol=1e-5)


def test_token_numbers_are_hashed() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    words = [(3 * label + rng.integers(0, 3, size=rng.integers(3, 8))) for label in y]
    learner: Any = pdcl.learner("exact", features="ngrams:256")
    learner.learn({"input_ids": words}, y)
    assert learner.evaluate({"input_ids": words}, y) > 0.9


def test_a_shift_and_a_scale_of_the_inputs_change_nothing() -> None:
    random = np.random.default_rng(0)
    y = np.arange(300) % 3
    x = (random.normal(size=(300, 4)) + 2 * np.eye(3, 4)[y]).astype(np.float32)
    near, far = (pdcl.learner("exact") for _ in range(2))
    near.learn(x, y)
    far.learn(1000 + 50 * x.astype(np.float64), y)
    assert np.mean(near.predict(x) == far.predict(1000 + 50 * x.astype(np.float64))) > 0.98


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"features": "fourier:7"}, "none of raw, random"),
        ({"features": "patches:10"}, "don't fit inputs"),
        ({"features": torch.nn.Linear(3, 4)}, "can't take inputs"),
        ({"memory": "1KB", "features": "raw"}, "can't hold one set"),
        ({"memory": 300}, "give bytes"),
        ({"network": "mlp:8"}, "has no effect"),
        ({"head": "svm"}, "ridge or lda"),
        ({"rho": 0.0}, "rho=0"),
        ({"guard": -1}, "guard=-1"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_bad_options_are_one_line(options: dict[str, Any], said: str) -> None:
    random = np.random.default_rng(0)
    with pytest.raises(UsageError, match=said) as error:
        pdcl.learner("exact", **options).learn(random.normal(size=(40, 30)).astype(np.float32), np.arange(40) % 2)
    assert "\n" not in str(error.value)
