"""The embedded default: real digits, one fixed split, nothing to download."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits

from pdcl.streams.catalog import load
from pdcl.streams.data import everything


def test_all_digits_are_there_once_and_split_by_class() -> None:
    stream = load("digits")
    _, y = load_digits(return_X_y=True)
    train, test = (torch.cat([data.targets for data in side]).bincount() for side in zip(*_sides(stream), strict=True))
    assert (train + test).tolist() == torch.as_tensor(y).bincount().tolist()
    assert int((train + test).sum()) == 1797
    assert ((test / (train + test)) - 0.2).abs().max() < 0.005
    assert stream.spec.heads == ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))


def _sides(stream):  # type: ignore[no-untyped-def]
    return [(task.data, task.test) for task in stream.tasks]


def test_pixels_are_the_originals_and_reach_the_network_between_0_and_1() -> None:
    stream = load("digits")
    known = {tuple(row) for row in load_digits().data.astype(int).tolist()}
    for data, test in _sides(stream):
        for side in (data, test):
            raw, _ = side.fetch(everything(side))
            assert raw.dtype == torch.uint8
            assert {tuple(row) for row in raw.flatten(1).tolist()} <= known
            x = stream.spec.transform(raw)
            assert float(x.min()) == 0.0
            assert float(x.max()) == 1.0


def test_the_split_is_the_same_whatever_the_order_of_classes() -> None:
    plain, mixed = load("digits"), load("digits", order_seed=4)
    assert sorted(mixed.spec.labels) == list(range(10))

    def tests(stream, digit):  # type: ignore[no-untyped-def]
        index = stream.spec.labels.index(digit)
        data = next(task.test for task in stream.tasks if index in task.classes)
        return {tuple(row) for row in data.fetch((data.targets == index).nonzero().flatten())[0].flatten(1).tolist()}

    assert all(tests(plain, digit) == tests(mixed, digit) for digit in range(10))
    assert mixed.options == {"classes_per_task": 2, "order_seed": 4}
