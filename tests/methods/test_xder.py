"""X-DER: implanted outputs, margins, contrast on future heads, equal heads or nothing."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from pdcl.errors import UsageError
from pdcl.lab.benchmarks.synthetic import load
from pdcl.lab.methods.xder import XDER
from pdcl.lab.methods.xder_terms import implant, mean_positive, supervised_contrast, untracked, violation
from pdcl.lab.methods.xder_views import strong_views
from pdcl.learning.loop import Loop
from pdcl.learning.schedule import Schedule
from pdcl.streams.class_split import split
from pdcl.streams.task import Spec
from pdcl.streams.transform import Transform


def test_implanted_outputs_stay_below_the_true_class() -> None:
    torch.manual_seed(0)
    stored, fresh, y = torch.randn(200, 6), 3 * torch.randn(200, 6), torch.randint(2, (200,))
    found = implant(stored, fresh, y, slice(2, 6), 0.85)
    true = stored.gather(1, y[:, None]).squeeze(1)
    top = found[:, 2:].amax(1)
    assert torch.equal(found[:, :2], stored[:, :2])
    assert bool((top <= true + 1e-6).all())
    low = fresh[:, 2:].amax(1) <= true
    assert torch.equal(found[low, 2:], fresh[low, 2:])
    scaled = ~low & (true > 0)
    torch.testing.assert_close(top[scaled], 0.85 * true[scaled])


def test_violations_are_measured_against_the_own_head() -> None:
    outputs = torch.tensor([[1.0, 3.0, 0.0, 0.0, 2.9, 0.0], [0.0, 0.0, 5.0, 0.0, 1.0, 0.0]])
    found = violation(outputs, torch.tensor([0, 1]), 2, slice(4, None), 0.3)
    torch.testing.assert_close(found, torch.tensor([0.2, -3.7]))
    assert mean_positive(found) == pytest.approx(0.2, abs=1e-6)
    assert mean_positive(-torch.ones(3)) == 0


def test_contrast_is_the_formula_s() -> None:
    torch.manual_seed(0)
    outputs, labels, tau = torch.randn(8, 6), torch.tensor([0, 0, 1, 1, 0, 1, 2, 2]), 0.7
    total = 0.0
    for head in (slice(0, 3), slice(3, 6)):
        q = torch.nn.functional.normalize(outputs[:, head])
        for a in range(8):
            rest = sum(math.exp(q[a] @ q[k] / tau) for k in range(8) if k != a)
            positives = [p for p in range(8) if p != a and labels[p] == labels[a]]
            total -= sum(float(q[a] @ q[p]) / tau - math.log(rest) for p in positives) / len(positives)
    assert supervised_contrast(outputs, labels, 3, tau) == pytest.approx(total / 16, rel=1e-5)


def test_untracked_passes_leave_running_statistics_alone() -> None:
    layer = nn.BatchNorm1d(3)
    with untracked(layer):
        layer(5 + torch.randn(10, 3))
    assert not layer.running_mean.any()
    assert layer.track_running_stats


@pytest.mark.parametrize("channels", [1, 3])
def test_strong_views_are_images_that_differ(channels: int) -> None:
    images = torch.rand(4, channels, 12, 12, generator=torch.Generator().manual_seed(0))
    first, second = (strong_views(images, True, torch.Generator().manual_seed(seed)) for seed in (1, 2))
    assert first.shape == images.shape
    assert bool(((first >= 0) & (first <= 1)).all())
    assert (first - second).abs().mean() > 0.01
    assert torch.equal(first, strong_views(images, True, torch.Generator().manual_seed(1)))


def test_memory_is_full_and_balanced_after_every_task(trained) -> None:
    for tasks in (1, 2, 3):
        learner = trained("xder", tasks=tasks, memory=32)
        counts = torch.bincount(learner.held["y"])
        assert counts.sum() == 32
        assert counts.max() - counts.min() <= 2


def test_stored_outputs_of_past_tasks_are_revised(trained) -> None:
    one, two = trained("xder", tasks=1, memory=32), trained("xder", tasks=2, memory=32)
    before = {int(i): z for i, z in zip(one.held["id"], one.held["outputs"], strict=True)}
    for i, z in zip(two.held["id"], two.held["outputs"], strict=True):
        if int(i) in before:
            torch.testing.assert_close(z[:2], before[int(i)][:2])
            assert not torch.equal(z[2:], before[int(i)][2:])


def test_future_heads_learn_where_the_stream_augments() -> None:
    torch.manual_seed(0)
    x = torch.randint(0, 255, (80, 3, 8, 8), dtype=torch.uint8)
    stream = split(x, torch.arange(80) % 4, classes_per_task=2, test=(x, torch.arange(80) % 4),
                   transform=Transform(crop_padding=1, flip=True))  # fmt: skip
    moved = []
    for weight in (0.0, 1.0):
        learner = XDER("cnn:4", memory=16, contrast=weight, eta=0.0, contrast_replay=4)
        learner.prepare(stream.spec)
        before = learner.model.head.weight.detach().clone()
        Loop(learner, stream, Schedule(1, 7)).run()
        assert len(learner.held) == 16
        moved.append(learner.contrasts)
        assert not torch.equal(before, learner.model.head.weight)
    assert moved == [False, True]


def test_unequal_unknown_and_shared_heads_are_refused_before_training() -> None:
    made = XDER("linear")
    with pytest.raises(UsageError, match="same number of classes"):
        made.prepare(Spec((3,), torch.float32, 5, heads=((0, 1), (2, 3, 4))))
    with pytest.raises(UsageError, match="beforehand"):
        made.prepare(Spec((3,), torch.float32, 4))
    with pytest.raises(UsageError, match="derpp"):
        made.prepare(load(tasks=2, shared_classes=True).spec)
    with pytest.raises(UsageError, match="views"):
        XDER("linear", views=1)


def test_past_constraint_counts_only_present_heads(trained, batch) -> None:
    learner = trained("xder", tasks=1, memory=32, past_constraint=True)
    now = torch.zeros(1, 6, requires_grad=True)
    learner.past_violation(now, 1).backward()
    assert now.grad[0, 2:4].abs().sum() > 0
    learner.step(batch(1))
