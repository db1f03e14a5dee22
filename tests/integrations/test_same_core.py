"""Our loop is one of many: the core in a loop written by hand gives the same duals."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import one_problem


def test_a_loop_written_by_hand_has_the_duals_of_ours() -> None:
    _, by_hand = one_problem.by_hand()
    assert max(by_hand[-1]) > 1
    for one, other in zip(by_hand, one_problem.by_learner(), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
