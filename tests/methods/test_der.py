"""DER and DER++: the loss that is minimised is the formula's, and memory keeps the outputs of its time."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.nn.functional import cross_entropy

from pdcl.errors import UsageError


@pytest.mark.parametrize(("name", "options"), [("der", {"alpha": 0.7}), ("derpp", {"alpha": 0.7, "beta": 0.3})])
def test_one_step_descends_the_formula(name, options, learner, batch, stream) -> None:
    # Memory holds exactly what a draw takes, so that the draws are known but for their order.
    made = learner(name, network="linear", memory=10, replay=10, **options)
    made.step(batch(0))
    x, y, z = (made.held[column].clone() for column in ("x", "y", "outputs"))
    model, now = copy.deepcopy(made.model), batch(1)
    expected = cross_entropy(model(now.x), now.y) + 0.7 * ((model(x) - z) ** 2).sum() / (10 * stream.spec.outputs)
    if name == "derpp":
        expected = expected + 0.3 * cross_entropy(model(x), y)
    expected.backward()
    before = {n: p.detach().clone() for n, p in made.model.named_parameters()}
    made.step(now)
    for n, p in made.model.named_parameters():
        slope = dict(model.named_parameters())[n].grad
        torch.testing.assert_close(p.detach(), before[n] - made.lr * slope, rtol=1e-4, atol=1e-6)


def test_stored_outputs_are_those_before_the_step(learner, batch) -> None:
    made = learner("der", memory=50)
    before = copy.deepcopy(made.model)
    made.step(batch(0))
    torch.testing.assert_close(made.held["outputs"], before(batch(0).x))


def test_the_two_draws_of_derpp_are_independent(trained) -> None:
    made = trained("derpp", tasks=1, memory=50)
    first, second = made.draws(10)
    assert first.tolist() != second.tolist()


def test_batch_statistics_are_taken_of_each_batch_alone(learner) -> None:
    made = learner("der", network=torch.nn.Sequential(torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 6)))
    torch.manual_seed(0)
    a, b = torch.randn(10, 8), 5 + torch.randn(10, 8)
    torch.testing.assert_close(made.forward_each([a, b])[1], made.model(b))


def test_negative_weights_are_refused(learner) -> None:
    with pytest.raises(UsageError, match="alpha"):
        learner("der", alpha=-1)
    with pytest.raises(UsageError, match="beta"):
        learner("derpp", beta=-1)
