"""The mean loss that events tell of."""

from __future__ import annotations

import pytest
import torch

from pdcl.learning.meter import AT_ONCE, Meter
from pdcl.ranks import ALONE


@pytest.mark.parametrize("steps", [1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE])
def test_it_tells_the_mean_of_the_means_once_there_are_enough_steps(steps: int) -> None:
    meter, losses = Meter(), torch.rand(2 * steps, 10).unbind()
    told = [meter.add(each, 10, steps, ALONE) for each in losses]
    assert [place for place, mean in enumerate(told, 1) if mean is not None] == [steps, 2 * steps]
    for mean, part in zip((told[steps - 1], told[-1]), (losses[:steps], losses[steps:]), strict=True):
        assert mean == float(sum(each.mean() for each in part)) / steps


@pytest.mark.parametrize("stopped", [1, 5, AT_ONCE, AT_ONCE + 1, 69])
def test_one_that_goes_on_from_a_state_tells_the_same_to_the_bit(stopped: int) -> None:
    whole, first, losses = Meter(), Meter(), torch.rand(70, 10).unbind()
    for each in losses[:stopped]:
        assert whole.add(each, 10, 70, ALONE) is first.add(each, 10, 70, ALONE) is None
    second = Meter(first.sum_up(ALONE), first.count)
    for each in losses[stopped:]:
        told, again = whole.add(each, 10, 70, ALONE), second.add(each, 10, 70, ALONE)
    assert told is not None
    assert told == again
