"""Our loop is one of many: the core in a loop written by hand gives the same duals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import one_problem


@pytest.mark.parametrize("loop", [one_problem.by_learner, one_problem.by_task_replay])
def test_a_loop_written_by_hand_has_the_duals_of_every_other(loop: Any) -> None:
    _, by_hand = one_problem.by_hand()
    assert max(by_hand[-1]) > 1
    for one, other in zip(by_hand, loop(), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_a_lever_is_pulled_at_each_dual_step_whoever_trains() -> None:
    """Eight dual steps a task; the first task has nothing to hold."""
    plain, pulled = one_problem.by_hand()[1], []
    for loop in (lambda lever: one_problem.by_hand(lever)[1], one_problem.by_learner, one_problem.by_task_replay):
        lever = one_problem.Fading()
        pulled.append(loop(lever))
        assert lever.steps == {1: 8, 2: 8}
    for task in (1, 2):
        assert abs(pulled[0][task][0] - plain[task][0]) > 1e-3
        for other in pulled[1:]:
            np.testing.assert_allclose(pulled[0][task], other[task], rtol=0, atol=1e-6)
