"""Drift of outputs beside the loss of a replayed sample: differentiated under its weight, not measured."""

import pytest
import torch


@pytest.fixture
def drifting(problem):
    """Two past tasks of two samples; θ moved from 1 to 3 since their outputs were recorded."""

    def make(level="task", **options):
        past = [([[1.0], [2.0]], [0.0, 0.0]), ([[3.0], [4.0]], [0.0, 0.0])]
        learner, stream = problem(past, ([[1.0]], [1.0]), 0.5, (1.0,), dual_lr=0.1).prepared(level=level, **options)
        with torch.no_grad():
            learner.model.weight.fill_(3.0)
        learner.begin(stream.tasks[-1], 1)
        learner.core.observe(torch.tensor([0]), torch.tensor([1.0]), 1)
        return learner, learner.core.measure(learner.evaluated)

    return make


@pytest.mark.parametrize("drift", [0.0, 0.5])
def test_the_duals_answer_the_loss_alone(drifting, drift):
    """Losses (3x)²: means 22.5 and 112.5; ε = .5."""
    learner, moved = drifting(drift=drift)
    assert moved.duals == pytest.approx([2.2, 11.2])
    assert moved.slacks == pytest.approx([22.0, 112.0])
    drawn = learner.core.draw(5)
    tasks = learner.held["task"][drawn.slots]
    assert drawn.weights.tolist() == pytest.approx((torch.tensor([2.2, 11.2])[tasks] / 2).tolist())


@pytest.mark.parametrize("drift", [0.0, 0.5])
def test_per_sample_a_dual_answers_the_loss_of_its_sample_alone(drifting, drift):
    learner, _ = drifting("sample", drift=drift)
    duals = 0.1 * (9 * learner.held["x"].flatten() ** 2 - 0.55)
    assert learner.core.algorithm.duals.values.tolist() == pytest.approx(duals.tolist())
    drawn = learner.core.draw(5)
    assert drawn.weights.tolist() == pytest.approx((duals / 2)[drawn.slots].tolist())


@pytest.mark.parametrize("drift", [0.0, 0.5])
def test_terms_are_the_losses_of_current_samples_then_those_of_replayed_ones_with_their_drift(drifting, drift):
    """Losses (3x)², drifts (2x)²; a current sample has none."""
    learner, _ = drifting(drift=drift)
    core = learner.core
    drawn = core.draw(1)
    past = core.past.inputs(drawn.slots)
    x = past.flatten()
    expected = (9 * x**2 + drift * 4 * x**2).tolist()
    terms = core.terms(learner.outputs(torch.cat([torch.tensor([[1.0]]), past])), torch.tensor([[1.0]]), drawn)
    assert terms.tolist() == pytest.approx([4.0, *expected])
    assert core.replayed(learner.outputs(past), drawn).tolist() == pytest.approx(expected)
    weights = core.weights(1, drawn)
    assert weights.tolist() == pytest.approx([1.0, *drawn.weights.tolist()])
    assert core.weights(1, None) is None
    core.algorithm.normalise = True
    assert core.weights(1, drawn).tolist() == pytest.approx((weights / (1 + 2.2 + 11.2)).tolist())
