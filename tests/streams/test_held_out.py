"""Validation data come from the training data; the test data are out of reach."""

from __future__ import annotations

import pytest
import torch

from pdcl.streams.catalog import load
from pdcl.streams.checks import BadData
from pdcl.streams.class_split import split
from pdcl.streams.data import everything
from pdcl.streams.held_out import hold_out
from pdcl.streams.task_list import from_tasks


def test_validation_replaces_the_test_data() -> None:
    x = torch.arange(100.0)[:, None]
    y = torch.arange(100) % 2
    stream = split(x, y, test=(x + 1000, y))
    tuned = stream.for_tuning(0.1, seed=3)
    task = tuned.tasks[0]
    train, held = (data.fetch(everything(data))[0].flatten().tolist() for data in (task.data, task.test))
    assert sorted(train + held) == list(range(100))
    assert task.test.targets.bincount().tolist() == [5, 5]
    assert len(stream.tasks[0].data) == 100


def test_the_seed_decides_who_is_held_out() -> None:
    stream = load("digits")
    first, again, other = (stream.for_tuning(0.2, seed).tasks[0].test.fetch(torch.arange(40))[0] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("seed", [0, 3])
def test_its_options_make_a_tuning_stream_again(seed: int) -> None:
    tuned = load("digits", order_seed=2).for_tuning(0.2, seed)
    again = load("digits", **tuned.options)
    assert again.options == tuned.options
    for one, other in zip(tuned.tasks, again.tasks, strict=True):
        assert torch.equal(one.test.fetch(everything(one.test))[0], other.test.fetch(everything(other.test))[0])


def test_a_class_of_one_sample_stays_in_training() -> None:
    x = torch.arange(11.0)[:, None]
    y = torch.tensor([0] * 10 + [1])
    held = hold_out(split(x, y, test=(x, y)).tasks[0], 0.3, 0)
    assert held.test.targets.tolist() == [0, 0, 0]
    assert 1 in held.data.targets


def test_one_single_group_can_not_be_held_out() -> None:
    x = torch.arange(10.0)[:, None]
    stream = from_tasks([(x, [0, 1] * 5, x, [0, 1] * 5)], groups=[["ann"] * 10])
    with pytest.raises(BadData, match=r"task 0 \('0'\): nothing of its 10 samples can be held out"):
        stream.for_tuning()


def test_unequal_groups_come_close_to_the_share_in_every_class() -> None:
    generator = torch.Generator().manual_seed(0)
    groups = torch.multinomial(torch.linspace(0.1, 1, 60), 2000, replacement=True, generator=generator)
    y = torch.randint(0, 4, (2000,), generator=generator)
    stream = split(torch.zeros(2000, 1), y, groups=groups, test_share=0.25)
    counts = torch.stack([task.test.targets.bincount(minlength=4) for task in stream.tasks]).sum(0)
    assert (counts / y.bincount() - 0.25).abs().max() < 0.05
