"""Per-sample gradients: the factored and the general path against one backward pass per sample."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from pdcl.lab.methods.layer_gradients import Outer, knows, layer_parts
from pdcl.lab.methods.per_sample import explicit_gradients, only_linear, per_sample_gradients
from pdcl.networks import build


def loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(outputs, targets, reduction="none")


def one_by_one(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    rows = []
    for i in range(len(x)):
        model.zero_grad()
        loss(model(x[i : i + 1]), y[i : i + 1]).sum().backward()
        rows.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    return torch.stack(rows)


@pytest.fixture
def samples() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(7, 1, 8, 8), torch.randint(4, (7,))


@pytest.mark.parametrize("name", ["mlp", "linear", "cnn"])
def test_inner_products_norms_and_squares_are_those_of_single_passes(name: str, samples: tuple[Tensor, Tensor]) -> None:
    x, y = samples
    model = build(name, (1, 8, 8), 4).eval()
    found, rows = per_sample_gradients(model, x, y, loss), one_by_one(model, x, y)
    assert all(isinstance(part, Outer) for part in found.parts) == (name != "cnn") == only_linear(model)
    torch.testing.assert_close(found.inner(found), rows @ rows.T, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.norms(), rows.norm(dim=1), rtol=1e-4, atol=1e-5)
    weights = torch.rand(7)
    squares = torch.cat([part.flatten() for part in found.squares(weights)])
    torch.testing.assert_close(squares, weights @ rows.square(), rtol=1e-4, atol=1e-6)


def test_both_paths_give_the_same_gram_matrix(samples: tuple[Tensor, Tensor]) -> None:
    x, y = samples
    model = build("mlp", (1, 8, 8), 4, hidden=(20, 20)).eval()
    factored, general = per_sample_gradients(model, x, y, loss), explicit_gradients(model, x, y, loss)
    torch.testing.assert_close(factored.inner(factored), general.inner(general), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "shape"), [("cnn", (1, 12, 12)), ("audio", (1, 1600)), ("resnet18", (3, 8, 8))])
def test_layers_of_convolutional_networks_have_the_gradients_of_the_general_path(name: str, shape: tuple[int]) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(5, *shape), torch.randint(4, (5,))
    model = build(name, shape, 4, width=4)
    model.train()(torch.randn(9, *shape))  # running statistics that are none of the initial ones
    model.eval()
    parts = layer_parts(model, x, lambda outputs: loss(outputs, y).sum())
    assert parts is not None
    general = explicit_gradients(model, x, y, loss)
    found = per_sample_gradients(model, x, y, loss)
    torch.testing.assert_close(found.inner(found), general.inner(general), rtol=1e-4, atol=1e-4)
    for mine, theirs in zip(found.squares(torch.ones(5)), general.squares(torch.ones(5)), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(2, 4, 3, groups=2),
        nn.Conv2d(2, 4, 3, padding="same"),
        nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect"),
        nn.BatchNorm2d(2, track_running_stats=False),
        nn.LayerNorm(8),
    ],
)
def test_layers_without_a_formula_take_the_general_path(layer: nn.Module) -> None:
    assert not knows(nn.Sequential(layer, nn.Flatten(), nn.LazyLinear(4)))


@pytest.mark.parametrize("layer", [nn.Conv2d(2, 3, 3, 2, 1, 1), nn.Conv2d(2, 3, (3, 2), bias=False, dilation=(2, 1))])
def test_strides_dilations_and_biases_of_convolutions_are_accounted_for(layer: nn.Module) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(4, 2, 9, 9), torch.randint(3, (4,))
    model = nn.Sequential(layer, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    found, rows = per_sample_gradients(model, x, y, loss), one_by_one(model, x, y)
    assert knows(model)
    torch.testing.assert_close(found.inner(found), rows @ rows.T, rtol=1e-4, atol=1e-5)


def test_a_layer_used_twice_takes_the_general_path(samples: tuple[Tensor, Tensor]) -> None:
    x, y = samples

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = nn.Linear(64, 64), nn.Linear(64, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.inner(self.inner(x.flatten(1)).relu()))

    model = Twice()
    found, rows = per_sample_gradients(model, x, y, loss), one_by_one(model, x, y)
    assert layer_parts(model, x, lambda outputs: loss(outputs, y).sum()) is None
    torch.testing.assert_close(found.inner(found), rows @ rows.T, rtol=1e-4, atol=1e-5)


def test_frozen_parameters_take_no_part() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    assert not knows(model)
    found = per_sample_gradients(model, torch.randn(5, 3), torch.zeros(5, dtype=torch.long), loss)
    assert [part.shape for part in found.squares(torch.ones(5))] == [(2, 4), (2,)]


def test_the_mode_of_the_model_is_restored() -> None:
    model = build("mlp", (3,), 2).train()
    per_sample_gradients(model, torch.randn(2, 3), torch.zeros(2, dtype=torch.long), loss)
    assert model.training
