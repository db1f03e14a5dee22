"""Features beside plain accounts of their formulas: spectra, larger images, random units, given modules."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import pdcl
from pdcl.errors import UsageError
from pdcl.features.catalog import build, by_shape, chosen
from pdcl.features.feature_map import FeatureMap
from pdcl.features.patches import Patches
from pdcl.features.spectrum import BANDS, FAINTEST, Spectrum
from pdcl.features.vectors import RandomReLU, Raw
from pdcl.streams.task import Spec

SEED = torch.Generator().manual_seed


def _spec(*shape: int) -> Spec:
    return Spec(shape, torch.float32, 2)


@pytest.mark.parametrize("samples", [4000, 8000, 10_123])
def test_a_picture_of_a_signal_is_its_windowed_power_by_band_and_time(samples: int) -> None:
    signal = np.random.default_rng(0).normal(size=samples)
    signal += 3 * np.sin(2 * np.pi * 26 / 256 * np.arange(samples))
    made = Spectrum(samples, 4)
    (picture,) = made.pictures(torch.as_tensor(signal[None], dtype=torch.float32))[:, 0]
    hop, size = samples // 64, made.size
    assert size % (2 * BANDS) == 0
    assert abs(size - 2 * hop) <= BANDS
    padded = np.pad(signal, size // 2)
    window = np.sin(np.pi * np.arange(size) / size) ** 2
    assert picture.shape == (BANDS, 1 + samples // hop)
    for frame in (0, 7, picture.shape[1] - 1):
        power = np.abs(np.fft.rfft(window * padded[frame * hop : frame * hop + size]))[1:] ** 2
        bands = power.reshape(BANDS, -1).mean(1)
        np.testing.assert_allclose(picture[:, frame], np.log(bands + FAINTEST * size), atol=2e-3)
    assert int(picture.mean(1).argmax()) == (26 * size // 256 - 1) // (size // 2 // BANDS)
    assert made.width == 2 * 4 * 16


def test_larger_images_are_made_smaller_first() -> None:
    x = torch.rand(30, 3, 130, 130, generator=SEED(0))
    large, small = Patches((3, 130, 130), 5, 2), Patches((3, 43, 43), 5, 2)
    large.fit(x, SEED(1))
    assert large.shrink == 3
    assert Patches((1, 64, 20), 5, 2).shrink == 1
    assert Patches((1, 20, 65), 5, 2).shrink == 2
    small.load_state_dict(large.state_dict())
    torch.testing.assert_close(large(x), small(functional.avg_pool2d(x, 3)), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((28, 28), "patches"), ((15, 28), "random"), ((28, 15), "random"), ((16, 16), "patches"),
        ((1, 4, 20, 20), "random"), ((2, 4000), "random"), ((4000,), "spectrum"), ((999,), "random"),
    ],
)  # fmt: skip
def test_what_an_image_and_a_signal_is(shape: tuple[int, ...], kind: str) -> None:
    assert by_shape(_spec(*shape)) == kind
    assert build(chosen("auto", _spec(*shape)), _spec(*shape), False).fitted.item() is False


@pytest.mark.parametrize(
    ("text", "shape"),
    [("patches:9", (15, 40)), ("patches:9", (300,)), ("spectrum:9", (2, 4000)), ("spectrum:9", (100,)),
     ("ngrams:9", (30,)), ("raw:3", (30,)), ("auto:3", (30,)), ("random:0", (30,)), ("Random", (30,))],
)  # fmt: skip
def test_features_that_do_not_fit_are_refused(text: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="features="):
        chosen(text, _spec(*shape))


@pytest.mark.parametrize(("inputs", "width"), [(3, 200), (35, 350), (784, 2000)])
def test_ten_random_features_for_each_input_and_a_bound_takes_some(inputs: int, width: int) -> None:
    spec = _spec(inputs)
    usual = chosen("auto", spec)
    assert (usual.width(spec), usual.stated) == (width, False)
    assert usual.within(77).width(spec) == 77
    assert usual.within(10**6).width(spec) == width
    assert chosen("random:9", spec).stated
    assert chosen("raw", spec).stated
    assert chosen("raw", spec).within(1).width(spec) == inputs
    image = chosen("patches:50", _spec(1, 28, 28))
    assert (image.width(_spec(1, 28, 28)), image.within(100).size, image.within(7).size) == (1600, 3, 1)


def test_grey_images_take_every_second_place_and_colours_every_one() -> None:
    grey, two, colour = (build(chosen("patches:3", _spec(c, 20, 20)), _spec(c, 20, 20), False) for c in (1, 2, 3))
    assert (grey.stride, two.stride, colour.stride) == (2, 1, 1)  # type: ignore[union-attr]
    flat = build(chosen("patches:3", _spec(20, 20)), _spec(20, 20), False)
    x = torch.rand(50, 20, 20, generator=SEED(0))
    for made, inputs in ((flat, x), (grey, x[:, None])):
        made.fit(inputs, SEED(1))
    torch.testing.assert_close(flat(x), grey(x[:, None]))


@pytest.mark.parametrize("draws", [False, True])
def test_filters_are_samples_only_where_they_may_be(draws: bool) -> None:
    """Filters that are drawn are the same for other images; others aren't."""
    maps = [Patches((1, 20, 20), 5, 2, draws) for _ in range(2)]
    for seed, made in enumerate(maps):
        made.fit(torch.rand(60, 1, 20, 20, generator=SEED(seed)) ** (1 + seed), SEED(7))
    assert torch.equal(maps[0].filters, maps[1].filters) == draws
    assert maps[0].filters.flatten(1).sum(1).abs().max() < 1e-4
    if draws:
        assert maps[0].filters.flatten(1).norm(dim=1).tolist() == pytest.approx([1.0] * 5)


def test_random_units_are_relu_of_standardised_inputs_times_draws_then_standardised() -> None:
    x = 5 + 3 * torch.randn(500, 6, generator=SEED(0)) * torch.tensor([1.0, 10, 0.1, 1, 1, 1])
    made = RandomReLU(6, 40, False)
    made.fit(x, SEED(1))
    found = made(x)
    assert found.mean(0).abs().max() < 1e-4
    usual = found.std(0, correction=0)
    assert float(usual.median()) == pytest.approx(1.0, abs=1e-4)
    larger, scale = RandomReLU(6, 40, False), torch.tensor([1.0, 10, 0.1, 7, 7, 7])
    larger.fit(x * scale, SEED(1))
    torch.testing.assert_close(larger(x * scale), found, rtol=1e-2, atol=1e-2)


class AsTheyAre(FeatureMap):
    def compute(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_a_feature_that_hardly_moved_is_not_blown_up() -> None:
    """It is divided by a twentieth of the usual spread; the others have a spread of 1 then."""
    x = torch.randn(401, 5, generator=SEED(0)) * torch.tensor([1.0, 2.0, 3.0, 4.0, 1e-6])
    made = AsTheyAre("as they are", 5)
    made.fit(x, SEED(1))
    assert made(x)[:, :4].std(0, correction=0).tolist() == pytest.approx([1.0] * 4, abs=1e-3)
    usual = float(x.std(0, correction=0).median())
    assert float(made.spread[4]) == pytest.approx(usual / 20, rel=1e-3)
    assert made(x).mean(0).abs().max() < 1e-5
    dead = AsTheyAre("as they are", 5)
    dead.fit(torch.ones(9, 5), SEED(1))
    assert bool(dead(torch.full((2, 5), 3.0)).isfinite().all())


def test_features_are_fitted_once_and_only_to_finite_numbers() -> None:
    made, x = Raw(3, False), torch.randn(20, 3, generator=SEED(0))
    spoiled = x.clone()
    spoiled[4, 1] = math.inf
    with pytest.raises(UsageError, match="not finite"):
        made.fit(spoiled, SEED(0))
    made.fit(x, SEED(0))
    with pytest.raises(UsageError, match="fitted already"):
        made.fit(x, SEED(0))


def test_a_given_module_keeps_its_precision_and_never_trains() -> None:
    body = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.BatchNorm1d(6))
    x, y = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32), np.arange(90) % 3
    learner: Any = pdcl.learner("exact", features=body, erasable=True)
    learner.learn(x, y)
    assert body[0].weight.dtype == torch.float32
    assert learner.represent(torch.as_tensor(x)).dtype == torch.float64
    before = copy.deepcopy(body.state_dict())
    learner.learn(x + 1, y)
    assert all(torch.equal(value, before[name]) for name, value in body.state_dict().items())
    assert learner.phi.train() is learner.phi
    assert not body.training
    assert np.array_equal(learner.predict_proba(x), learner.predict_proba(x))
    assert isinstance(learner.phi, FeatureMap)


def test_filters_are_whitened_patches_of_length_one() -> None:
    """By NumPy, on the same draws: contrast-normalised patches, ZCA with .1 added to the variances, both ways."""
    images = torch.rand(8, 1, 12, 12, generator=SEED(0)) * torch.linspace(0.2, 1, 12)
    filters, offsets = Patches((1, 12, 12), 5, 2)._sampled(images, SEED(1))
    draws = SEED(1)
    patches = functional.unfold(images, 6).transpose(1, 2).flatten(0, 1).double().numpy()
    patches = patches[torch.randperm(len(patches), generator=draws).numpy()]
    patches -= patches.mean(1, keepdims=True)
    patches /= np.sqrt(patches.var(1, ddof=1, keepdims=True) + 0.01)
    values, vectors = np.linalg.eigh(np.cov(patches.T))
    whitening = vectors @ np.diag(1 / np.sqrt(values.clip(0) + 0.1)) @ vectors.T
    picked = patches[torch.randint(len(patches), (5,), generator=draws).numpy()]
    whitened = (picked - patches.mean(0)) @ whitening
    wanted = whitened / np.linalg.norm(whitened, axis=1, keepdims=True) @ whitening
    np.testing.assert_allclose(offsets, wanted @ patches.mean(0), atol=1e-3)
    np.testing.assert_allclose(filters, wanted - wanted.mean(1, keepdims=True), atol=1e-3)
