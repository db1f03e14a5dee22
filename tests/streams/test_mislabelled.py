"""Wrong labels: as many as asked for, in training data alone, the same for everyone."""

from __future__ import annotations

import pytest
import torch

from pdcl.streams.catalog import load
from pdcl.streams.checks import BadData
from pdcl.streams.task_list import from_tasks


def test_a_tenth_of_each_tasks_training_labels_is_wrong_and_stays_within_the_task() -> None:
    clean, noisy = load("digits"), load("digits", mislabelled=0.1)
    for was, now in zip(clean.tasks, noisy.tasks, strict=True):
        changed = was.data.targets != now.data.targets
        assert int(changed.sum()) == round(0.1 * len(was.data))
        assert set(now.data.targets.tolist()) == set(was.classes)
        assert torch.equal(now.data.fetch(torch.arange(5))[0], was.data.fetch(torch.arange(5))[0])
        assert torch.equal(now.data.fetch(changed.nonzero().flatten())[1], now.data.targets[changed])
        assert torch.equal(now.test.targets, was.test.targets)
    again = load("digits", mislabelled=0.1)
    assert all(torch.equal(a.data.targets, b.data.targets) for a, b in zip(noisy.tasks, again.tasks, strict=True))


def test_the_options_say_what_was_done_and_a_subset_keeps_its_labels() -> None:
    noisy = load("digits", mislabelled=0.2, held_out=0.1)
    assert noisy.options["mislabelled"] == 0.2
    data = load("digits", mislabelled=0.2).tasks[0].data
    index = torch.tensor([3, 1, 2])
    assert torch.equal(data.subset(index).targets, data.targets[index])


def test_a_task_of_one_class_and_a_share_of_nothing_are_refused() -> None:
    one = from_tasks([(torch.zeros(4, 2), torch.zeros(4, dtype=torch.long), torch.zeros(2, 2), torch.zeros(2).long())])
    from pdcl.streams.mislabelled import mislabel

    with pytest.raises(BadData, match="two classes"):
        mislabel(one, 0.1)
    with pytest.raises(BadData, match="between 0 and 1"):
        load("digits", mislabelled=0.0)
