"""LwF: the distillation is the formula's, and the warm-up moves nothing but the new classes' part of the head."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pdcl.errors import UsageError
from pdcl.lab.methods.lwf import distance


def test_distance_is_the_cross_entropy_of_softened_probabilities() -> None:
    torch.manual_seed(0)
    now, then = torch.randn(2, 5, 3)
    q, p = then.softmax(1) ** 0.5, now.softmax(1) ** 0.5
    q, p = q / q.sum(1, keepdim=True), p / p.sum(1, keepdim=True)
    torch.testing.assert_close(distance(now, then, 2.0), -(q * p.log()).sum(1).mean())


def test_warm_up_moves_only_new_rows_of_the_head(trained, stream) -> None:
    learner = trained("lwf", tasks=1)
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    learner.begin(stream.tasks[1], 6)
    after = learner.model.state_dict()
    assert torch.equal(after["body.0.weight"], before["body.0.weight"])
    moved = (after["head.weight"] - before["head.weight"]).abs().sum(1) > 0
    assert moved.tolist() == [False, False, True, True, False, False]


def test_recorded_outputs_belong_to_the_samples(trained, stream) -> None:
    learner = trained("lwf", tasks=1)
    data = stream.tasks[1].data
    learner.begin(stream.tasks[1], 6)
    x, _ = data.fetch(torch.tensor([17]))
    torch.testing.assert_close(learner.recorded[17], learner.scores(x)[0].detach())


def test_without_past_it_is_plain_training_among_seen_classes(learner, batch, stream) -> None:
    learner = learner("lwf", network="linear")
    learner.begin(stream.tasks[0], 6)
    before = learner.model.head.weight.detach().clone()
    learner.step(batch(0))
    moved = (learner.model.head.weight.detach() - before).abs().sum(1) > 0
    assert moved.tolist() == [True, True, False, False, False, False]


def test_a_network_without_head_is_refused_unless_not_warmed(learner) -> None:
    with pytest.raises(UsageError, match="warm_epochs=0"):
        learner("lwf", network=nn.Linear(8, 6))
    learner("lwf", network=nn.Linear(8, 6), warm_epochs=0)
