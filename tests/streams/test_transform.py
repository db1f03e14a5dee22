"""Augmentation by one gather equals the crop and flip done by hand, image by image."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pdcl.streams.transform import Transform, moved


def by_hand(image: torch.Tensor, down: int, right: int, flip: bool, padding: int) -> torch.Tensor:
    channels, height, width = image.shape
    wide = torch.zeros(channels, height + 2 * padding, width + 2 * padding, dtype=image.dtype)
    wide[:, padding : padding + height, padding : padding + width] = image
    window = wide[:, down : down + height, right : right + width]
    return window.flip(2) if flip else window


@given(
    st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(2, 9), st.integers(2, 9)),
    st.integers(0, 4),
    st.booleans(),
    st.integers(0, 999),
)
@settings(max_examples=80, deadline=None)
def test_each_image_is_cropped_and_flipped_as_drawn(
    shape: tuple[int, int, int, int], padding: int, flip: bool, seed: int
) -> None:
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    transform = Transform(crop_padding=padding, flip=flip)
    down, right, flips = transform.draw(len(images), torch.Generator().manual_seed(seed))
    expected = torch.stack(
        [by_hand(images[i], int(down[i]), int(right[i]), bool(flips[i]), padding) for i in range(len(images))]
    )
    assert torch.equal(moved(images, down, right, flips, padding), expected)
    assert torch.equal(transform(images, torch.Generator().manual_seed(seed)), expected.float() * (1 / 255))


def test_the_generator_decides_and_goes_on() -> None:
    images = torch.randint(0, 256, (16, 3, 8, 8), dtype=torch.uint8)
    transform = Transform(crop_padding=2, flip=True)
    generator = torch.Generator().manual_seed(0)
    first, second = transform(images, generator), transform(images, generator)
    assert torch.equal(first, transform(images, torch.Generator().manual_seed(0)))
    assert not torch.equal(first, second)


def test_without_a_generator_nothing_moves() -> None:
    images = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8)
    assert torch.equal(Transform(crop_padding=4, flip=True)(images), images.float() * (1 / 255))


def test_half_the_images_flip_and_all_offsets_are_equally_frequent() -> None:
    """Fixed seed; a right sampler fails by chance in one of 10⁵ seeds: |z| < 4.5 for flips, χ²₈ < 40 for offsets."""
    count = 40_000
    down, right, flips = Transform(crop_padding=4, flip=True).draw(count, torch.Generator().manual_seed(1))
    assert abs(float(flips.float().mean()) - 0.5) < 4.5 * 0.5 / count**0.5
    for offsets in (down, right):
        seen = offsets.bincount(minlength=9).double()
        assert len(seen) == 9
        assert float(((seen - count / 9) ** 2 / (count / 9)).sum()) < 40
    together = torch.stack([down.double(), right.double(), flips.double()]).corrcoef()
    assert (together - torch.eye(3)).abs().max() < 4.5 / count**0.5


def test_integers_are_scaled_and_channels_normalised() -> None:
    images = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    out = Transform(mean=(0.5, 0.2, 0.0), std=(1.0, 0.5, 2.0))(images)
    assert torch.allclose(out.flatten(), torch.tensor([-0.5, 0.0, 0.5]), atol=1e-6)
    assert Transform()(torch.tensor([[-32768, 16384]], dtype=torch.int16)).tolist() == [[-1.0, 0.5]]
    assert Transform(scale=1 / 16)(torch.tensor([[16]], dtype=torch.uint8)).tolist() == [[1.0]]


def test_vectors_are_normalised_by_feature() -> None:
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    assert Transform(mean=(2.0, 20.0), std=(1.0, 10.0))(x).tolist() == [[-1.0, -1.0], [1.0, 1.0]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.int16])
def test_raw_samples_are_never_changed(dtype: torch.dtype) -> None:
    raw = torch.ones(2, 3, 8, 8).to(dtype)
    before = raw.clone()
    Transform(mean=(0.5,) * 3, std=(2.0,) * 3, crop_padding=1, flip=True, scale=3.0)(raw, torch.Generator())
    assert torch.equal(raw, before)
