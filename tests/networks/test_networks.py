"""Every network by name: shapes, features, and what the paper says of each."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

from pdcl.errors import UsageError
from pdcl.networks import BUILDERS, auto_name, build, has_batch_statistics
from pdcl.networks.audio import FRAME, WINDOW, frames
from pdcl.networks.resnet import Block

CASES: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("linear", (7,), {}),
    ("mlp", (7,), {}),
    ("mlp", (1, 28, 28), {"hidden": [100, 100]}),
    ("mlp-glorot", (1, 28, 28), {"hidden": [100, 100]}),
    ("cnn", (1, 8, 8), {}),
    ("cnn", (28, 28), {}),
    ("cnn", (3, 33, 61), {"width": 4}),
    ("audio", (1, 8000), {}),
    ("audio", (1600,), {"width": 4}),
    ("resnet18", (3, 32, 32), {"width": 4}),
    ("resnet18", (1, 8, 8), {"width": 2}),
]


@pytest.mark.parametrize(("name", "shape", "options"), CASES)
def test_logits_are_the_head_of_the_features(name: str, shape: tuple[int, ...], options: dict[str, Any]) -> None:
    network = build(name, shape, 5, **options).eval()
    x = torch.randn(3, *shape)
    features = network.features(x)
    assert features.shape == (3, network.head.in_features)
    assert isinstance(network.head, nn.Linear)
    assert network.head.out_features == 5
    assert torch.equal(network(x), network.head(features))
    network(x).square().sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize("channels", [3, 8])
def test_the_shortcut_of_a_block_sees_every_second_pixel(channels: int) -> None:
    # Not stored by pixel, so that torch's own convolution can go backwards everywhere.
    block, x = Block(channels, 2 * channels, 2).eval(), torch.randn(2, channels, 9, 8)
    weight = block.shortcut[0].weight
    inner = block.norm2(block.conv2(nn.functional.relu(block.norm1(block.conv1(x)))))
    expected = nn.functional.relu(inner + block.shortcut[1](nn.functional.conv2d(x, weight, stride=2)))
    found = block(x)
    torch.testing.assert_close(found, expected)
    for own, other in zip(*(torch.autograd.grad(each.sum(), [weight]) for each in (found, expected)), strict=True):
        torch.testing.assert_close(own, other)


def test_glorot_weights_fill_their_interval_and_biases_start_at_zero() -> None:
    network = build("mlp-glorot", (1, 28, 28), 10, hidden=(100, 100))
    for layer in (module for module in network.modules() if isinstance(module, nn.Linear)):
        bound = (6 / (layer.in_features + layer.out_features)) ** 0.5
        assert 0.95 * bound < layer.weight.abs().max() <= bound
        assert not layer.bias.any()


def test_every_name_is_tried() -> None:
    assert {name for name, _, _ in CASES} == set(BUILDERS)


@pytest.mark.parametrize(("name", "shape", "options"), CASES)
def test_a_sample_does_not_depend_on_its_neighbours_in_evaluation(
    name: str, shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    network = build(name, shape, 5, **options).eval()
    x = torch.randn(4, *shape)
    assert torch.allclose(network(x)[:1], network(x[:1]), atol=1e-5)


def count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def test_the_papers_mlp_has_its_size() -> None:
    assert count(build("mlp", (1, 28, 28), 10, hidden=(100, 100))) == 785 * 100 + 101 * 100 + 101 * 10


def test_resnet18_at_full_width_has_the_known_size() -> None:
    """torchvision's ResNet-18 has 11,689,512 weights: a 7×7 stem and 1000 classes; ours a 3×3 stem and 40."""
    known = 11_689_512 - 64 * 3 * (49 - 9) - (1000 - 40) * 513
    assert count(build("resnet18", (3, 64, 64), 40)) == known


def test_the_audio_network_reads_windows_of_ten_milliseconds() -> None:
    convolutions = [module for module in build("audio", (1, 8000), 10).modules() if isinstance(module, nn.Conv2d)]
    assert [FRAME * 5, *(layer.kernel_size[1] for layer in convolutions)] == [WINDOW, 5, 3, 3, 3]
    assert (WINDOW, FRAME) == (80, 16)
    assert {layer.out_channels for layer in convolutions} == {32}


@pytest.mark.parametrize(("channels", "samples"), [(1, 8000), (2, 1600), (1, 1605), (2, 1615)])
def test_convolving_frames_is_convolving_the_signal(channels: int, samples: int) -> None:
    x = torch.randn(3, channels, samples, dtype=torch.float64)
    plain = nn.Conv1d(channels, 4, WINDOW, FRAME, padding=WINDOW // 2, bias=False).double()
    framed = nn.Conv2d(FRAME * channels, 4, (1, WINDOW // FRAME), bias=False).double()
    by_frame = plain.weight.detach().unflatten(-1, (-1, FRAME)).transpose(2, 3).reshape(framed.weight.shape)
    framed.weight.data.copy_(by_frame)
    torch.testing.assert_close(framed(frames(x))[:, :, 0], plain(x))


@pytest.mark.parametrize("channels", [1, 3])
def test_maps_lie_by_pixel(channels: int) -> None:
    """Where they don't, max-pooling alone takes half of the time."""
    network, seen = build("cnn", (channels, 16, 16), 2), list[bool]()

    def look(module: nn.Module, inputs: object, maps: torch.Tensor) -> None:
        seen.append(maps.is_contiguous(memory_format=torch.channels_last) and not maps.is_contiguous())

    for layer in (module for module in network.modules() if isinstance(module, nn.Conv2d | nn.MaxPool2d)):
        layer.register_forward_hook(look)
    network(torch.randn(2, channels, 16, 16))
    assert seen == [True] * 6


def test_weights_follow_the_callers_seed() -> None:
    def weights(seed: int) -> torch.Tensor:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return build("cnn", (1, 8, 8), 2).head.weight

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((5,), "mlp"),
        ((), "mlp"),
        ((1, 28, 28), "cnn"),
        ((28, 28), "cnn"),
        ((3, 64, 64), "cnn"),
        ((1, 6, 6), "mlp"),
        ((1, 8000), "audio"),
        ((16000,), "audio"),
        ((2, 3, 4, 5), "mlp"),
    ],
)
def test_the_shape_suggests_a_network_that_takes_it(shape: tuple[int, ...], name: str) -> None:
    assert auto_name(shape) == name
    network = build(name, shape, 2).eval()
    assert network(torch.zeros(2, *shape)).shape == (2, 2)


def test_integer_tables_are_numbers_to_an_mlp() -> None:
    assert build("mlp", (3,), 2)(torch.ones(4, 3, dtype=torch.int64)).shape == (4, 2)


def test_batch_statistics_are_noticed() -> None:
    assert has_batch_statistics(build("cnn", (1, 8, 8), 2))
    assert not has_batch_statistics(build("mlp", (3,), 2))
    assert not has_batch_statistics(nn.Sequential(nn.GroupNorm(1, 4)))


@pytest.mark.parametrize(
    ("name", "shape", "options", "message"),
    [
        ("resnet", (3, 32, 32), {}, "did you mean 'resnet18'"),
        ("mlp", (3,), {"hiden": (2,)}, "did you mean 'hidden'"),
        ("cnn", (32, 32, 3), {}, r"permute\(0, 3, 1, 2\)"),
        ("cnn", (1, 4, 4), {}, "too small"),
        ("cnn", (9,), {}, "no images"),
        ("audio", (1, 100), {}, "no signals"),
    ],
)
def test_a_wrong_choice_says_what_would_be_right(
    name: str, shape: tuple[int, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        build(name, shape, 2, **options)


def test_names_are_known_without_torch() -> None:
    code = "import sys; import pdcl.networks; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
