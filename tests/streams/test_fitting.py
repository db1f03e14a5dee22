"""Inputs of any scale reach the network at order one, by what the first task shows."""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer, load_digits

from pdcl.streams.class_split import split
from pdcl.streams.data import everything
from pdcl.streams.task import Stream
from pdcl.streams.task_list import from_tasks
from pdcl.streams.transform import Transform


def seen(stream: Stream, task: int = 0) -> torch.Tensor:
    data = stream.tasks[task].data
    return stream.spec.transform(data.fetch(everything(data))[0])


def test_columns_of_a_table_come_to_one_scale() -> None:
    """Thirty measurements between 0.0 and 4,254."""
    table = load_breast_cancer()
    x = seen(split(table.data, table.target))
    assert (x.mean(0).abs() < 0.1).all()
    assert ((x.std(0) > 0.5) & (x.std(0) < 1.5)).all()
    assert x.abs().max() < 20


def test_pixels_keep_their_common_scale() -> None:
    """Pixels that are dark in the first task must not explode in a later one."""
    digits = load_digits()
    stream = split(digits.data * 100, digits.target)
    assert len(stream.spec.transform.mean) == 1
    assert max(float(seen(stream, task).abs().max()) for task in range(5)) < 5


def test_inputs_of_order_one_and_integers_are_left_alone() -> None:
    x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
    y = torch.arange(100) % 2
    assert split(x, y).spec.transform == Transform()
    assert split((x.abs() * 50).byte(), y).spec.transform == Transform()


def test_images_are_standardised_by_channel() -> None:
    x = torch.rand(50, 3, 8, 8, generator=torch.Generator().manual_seed(0)) * torch.tensor([1, 10, 100]).view(3, 1, 1)
    out = seen(split(x, torch.arange(50) % 2))
    assert torch.allclose(out.mean((0, 2, 3)), torch.zeros(3), atol=0.05)
    assert torch.allclose(out.std((0, 2, 3)), torch.ones(3), atol=0.05)


def test_constant_features_stay_finite_and_later_tasks_are_not_looked_at() -> None:
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1000.0, 1.0, 0.0])
    y = torch.arange(40) % 2
    one = from_tasks([(x, y), (x, y)]).spec.transform
    assert from_tasks([(x, y), (x * 77, y)]).spec.transform == one
    assert one(x).isfinite().all()


def test_a_transform_that_is_given_is_kept() -> None:
    x = torch.full((8, 2), 1e6)
    assert split(x, torch.arange(8) % 2, transform=Transform()).spec.transform == Transform()
