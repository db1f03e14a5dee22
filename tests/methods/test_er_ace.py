"""ER-ACE: the current batch leaves absent classes alone, replayed samples compete with all."""

from __future__ import annotations

import torch

from pdcl.lab.methods.er_ace import among_present


def test_a_batch_alone_moves_no_output_of_an_absent_class(learner, batch) -> None:
    made = learner("er-ace", network="linear")
    before = made.model.head.weight.detach().clone()
    made.step(batch(1))
    moved = (made.model.head.weight.detach() - before).abs().sum(1) > 0
    assert moved.tolist() == [False, False, True, True, False, False]


def test_replayed_samples_move_all(trained, batch) -> None:
    made = trained("er-ace", tasks=1, network="linear")
    before = made.model.head.weight.detach().clone()
    made.step(batch(1))
    assert bool(((made.model.head.weight.detach() - before).abs().sum(1) > 0).all())


def test_absent_classes_are_ruled_out() -> None:
    found = among_present(torch.zeros(2, 4), torch.tensor([1, 3]))
    assert found.isinf().tolist() == [[True, False, True, False]] * 2
