"""A module of features that goes wrong after the first task: one line says so, and the learner is what it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import pdcl
from pdcl.errors import UsageError

pytestmark = pytest.mark.filterwarnings("ignore::pdcl.LearningWarning")


class Body(nn.Module):
    """A user's features."""

    width, scale = 6, 1.0

    def forward(self, x: Tensor) -> Tensor:
        return x[:, : self.width] * self.scale


@pytest.mark.parametrize("act", ["learn", "predict", "predict_proba"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("width", 5, "gave 6 numbers a sample at first and gives 5 now"),
        ("scale", float("nan"), "row 0 of a batch are not finite"),
        ("scale", float("inf"), "row 0 of a batch are not finite"),
    ],
)
def test_features_that_go_wrong_are_refused_and_nothing_changes(act: str, name: str, value: float, said: str) -> None:
    x, y = np.random.default_rng(0).normal(size=(120, 8)).astype(np.float32), np.arange(120) % 3
    body = Body()
    learner: Any = pdcl.learner("exact", features=body)
    learner.learn(x, y)
    W, size, answers = learner.solution.W.clone(), learner.nbytes, learner.predict(x)
    setattr(body, name, value)
    with pytest.raises(UsageError, match=said) as refused:
        getattr(learner, act)(*((x, y) if act == "learn" else (x,)))
    assert "\n" not in str(refused.value)
    delattr(body, name)
    assert torch.equal(learner.solution.W, W)
    assert (learner.nbytes, learner.tasks_learned) == (size, 1)
    assert np.array_equal(learner.predict(x), answers)
