"""Losses, scores and errors per sample, against values computed by hand."""

import math

import pytest
import torch

from pdcl.errors import UsageError
from pdcl.objective import OBJECTIVES, masked


def test_classification_has_the_cross_entropy_and_zero_one_errors():
    outputs, targets = torch.tensor([[0.0, math.log(3.0)], [0.0, 0.0], [2.0, 1.0]]), torch.tensor([1, 0, 1])
    goal = OBJECTIVES["classification"]
    expected = [math.log(4 / 3), math.log(2.0), math.log(1 + math.e)]
    assert goal.loss(outputs, targets).tolist() == pytest.approx(expected)
    assert goal.score(outputs, targets).tolist() == [1.0, 1.0, 0.0]
    assert goal.error(outputs, targets).tolist() == [0.0, 0.0, 1.0]


def test_regression_has_the_squared_error_over_outputs_and_no_error_rate():
    outputs, targets = torch.tensor([[1.0, 3.0], [0.0, 0.0]]), torch.tensor([[1.0, 1.0], [2.0, 4.0]])
    goal = OBJECTIVES["regression"]
    assert goal.loss(outputs, targets).tolist() == [2.0, 10.0]
    assert goal.score(outputs, targets).tolist() == [-2.0, -10.0]
    assert goal.loss(torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 2.0])).tolist() == [4.0, 0.0]
    with pytest.raises(UsageError, match="regression has no error rate; state the tolerance in loss"):
        goal.error(outputs, targets)


def test_many_labels_have_the_mean_over_labels():
    outputs, targets = torch.tensor([[0.0, math.log(3.0)], [-1.0, 1.0]]), torch.tensor([[1, 0], [0, 1]])
    goal = OBJECTIVES["multilabel"]
    assert goal.loss(outputs, targets)[0].item() == pytest.approx((math.log(2.0) + math.log(4.0)) / 2)
    assert goal.score(outputs, targets).tolist() == [0.0, 1.0]
    assert goal.error(outputs, targets).tolist() == [1.0, 0.0]
    assert goal.score(torch.tensor([[0.1, 0.1]]), torch.tensor([[1.0, 0.0]])).tolist() == [0.5]
    assert goal.error(torch.tensor([[0.1, -0.1]]), torch.tensor([[0.5, 0.6]])).tolist() == [1.0]


def test_labels_that_are_not_known_of_a_sample_have_no_part_in_its_mean():
    outputs = torch.tensor([[0.0, math.log(3.0), 50.0], [1.0, 2.0, 3.0]], requires_grad=True)
    targets = torch.tensor([[1.0, 0.0, math.nan], [math.nan] * 3])
    goal = OBJECTIVES["multilabel"]
    assert goal.loss(outputs, targets).tolist() == pytest.approx([(math.log(2.0) + math.log(4.0)) / 2, 0.0])
    assert goal.error(outputs, targets)[0].item() == 1.0
    goal.loss(outputs, targets).sum().backward()
    assert outputs.grad is not None
    assert outputs.grad[0, 2] == 0
    assert outputs.grad.isfinite().all()


def test_masking_rules_out_all_classes_but_those_named():
    outputs = torch.tensor([[1.0, 2.0, 3.0]])
    assert masked(outputs, (0, 1)).tolist() == [[1.0, 2.0, -math.inf]]
    assert masked(outputs, ()) is outputs
