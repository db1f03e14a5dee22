"""SI: the path integral is the loss decrease, and importance follows from it."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from pdcl.errors import UsageError


def gap(learner, batch, lr: float, length: float = 0.4) -> float:
    """How far Σω is from the decrease of the loss along the same path in steps of `lr`, as a share of it."""
    made = learner("si", lr=lr, clip=0.0, seed=1)
    first = None
    for _ in range(round(length / lr)):
        loss = made.step(batch).losses.mean()
        first = loss if first is None else first
    last = made.losses(made.outputs(batch.x), batch.y).mean().detach()
    path = sum(value.sum() for value in made.path.values())
    return float(abs(path - (first - last)) / (first - last))


def test_path_integral_tends_to_the_loss_decrease(learner, batch) -> None:
    gaps = [gap(learner, batch(size=20), lr) for lr in (0.04, 0.02, 0.01, 0.005)]
    # The error of the sum is of first order in the step.
    assert all(fine < 0.7 * coarse for coarse, fine in pairwise(gaps))
    assert gaps[-1] < 0.02


def test_importance_after_a_task_is_the_formula_s(trained, learner) -> None:
    made = trained("si", tasks=1, damping=0.5, seed=3)
    start = learner("si", seed=3)
    again = trained("si", tasks=1, damping=0.25, seed=3)
    for name, p in made.model.named_parameters():
        moved = (p.detach() - start.anchor[name]).square()
        path = made.importance[name] * (moved + 0.5)
        torch.testing.assert_close(again.importance[name], path / (moved + 0.25), rtol=1e-4, atol=1e-6)
        assert not made.path[name].any()


def test_gradients_are_cut(learner, batch) -> None:
    made = learner("si", clip=1e-4, lr=1.0)
    before = made.model.head.bias.detach().clone()
    made.step(batch())
    assert (made.model.head.bias.detach() - before).abs().max() <= 1.01e-4


def test_nonsense_is_refused(learner) -> None:
    with pytest.raises(UsageError, match="damping"):
        learner("si", damping=0.0)
