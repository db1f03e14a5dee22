"""What is held back, and the errors that it shows, counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.algorithm.guard_search import Guards
from pdcl.methods.squared_loss import own_objective
from pdcl.past.eight_bits import decode, encode
from pdcl.past.held_back import GUARD, WITNESS
from pdcl.past.held_features import BESIDE, HeldFeatures
from pdcl.past.segments import Segments

DOUBLE = torch.float64


def test_what_a_task_had_is_told_by_its_guards_and_by_witnesses_where_it_has_none() -> None:
    held = HeldFeatures(own_objective("classification"), Segments({}), 3, 3)
    x, hashes = torch.ones(4, 2), torch.arange(4)
    roles = torch.tensor([GUARD, GUARD, WITNESS, WITNESS], dtype=torch.uint8)
    assert held.had(1)[0] != held.had(1)[0]
    for task, kinds in enumerate((roles, torch.full_like(roles, WITNESS))):
        held.add(task, x, torch.tensor([0, 1, 1, 1]), hashes, kinds, hashes, torch.zeros(4, 0).long(), None)
        held.refer(task, torch.tensor([[1.0, 0.0]]).repeat(len(held.memory), 1))
    found = held.had(3)
    assert found[:2] == [0.5, 0.75]
    assert found[2] != found[2]


@pytest.mark.parametrize(
    ("guard", "witness", "limited", "places", "tasks", "counts"),
    [
        (None, None, True, None, 3, (300, 400, 100)),
        (None, None, False, None, 3, (300, 0, 0)),
        (20, 30, True, None, 3, (20, 30, 20)),
        (None, None, True, 70_000, 2, (150, 200, 100)),
        (0, 0, True, 70_000, 2, (0, 0, 0)),
        (300, 0, False, 700, 2, (3, 0, 300)),
        (30, 30, True, 800, 2, (2, 2, 30)),
    ],
)
def test_how_many_samples_fit_beside_sums(
    guard: int | None, witness: int | None, limited: bool, places: int | None, tasks: int, counts: tuple[int, int, int]
) -> None:
    held = HeldFeatures(own_objective("classification"), Segments({}), guard, witness)
    found = held.most(limited, 100 - BESIDE, places, tasks)
    assert (found.guards, found.witnesses, found.least_guards) == counts


def test_of_a_bound_in_bytes_the_first_task_holds_back_its_whole_share() -> None:
    """An eighth of 40 KB, a row of 20 features and a constant: as many guards as fit, though 100 were allowed."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(1000, 20)).astype(np.float32), np.arange(1000) % 2
    learner: Any = pdcl.learner("exact", features="raw", memory="40KB")
    learner.learn(x, y)
    assert len(learner.held.memory) == 40_000 // 8 // (21 + BESIDE) < 100


def test_features_held_in_eight_bits_differ_by_half_a_step_at_most() -> None:
    x = torch.randn(50, 9, generator=torch.Generator().manual_seed(0)) * torch.logspace(-3, 3, 50)[:, None]
    held = encode(torch.cat([x, torch.zeros(1, 9)]))
    assert held["code"].dtype == torch.int8
    assert ((decode(held)[:-1] - x).abs() <= 0.5001 * x.abs().amax(1, keepdim=True) / 127).all()
    assert held["code"][:-1].abs().amax(1).tolist() == [127] * 50
    assert decode(held)[-1].tolist() == [0.0] * 9


@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression"])
def test_an_error_is_counted_by_hand(kind: str) -> None:
    scores = torch.tensor([[0.2, 0.9], [3.0, -1.0], [0.5, 0.4]], dtype=DOUBLE)
    targets: dict[str, torch.Tensor] = {
        "classification": torch.tensor([1, 0, 1]),
        "multilabel": torch.tensor([[1.0, -1.0], [0.0, 1.0], [0.0, 0.0]], dtype=DOUBLE),
        "regression": torch.tensor([[0.2, 0.9], [1.0, -1.0], [0.5, 1.4]], dtype=DOUBLE),
    }
    wanted = {"classification": [0, 0, 1], "multilabel": [0.5, 1.0, 0.0], "regression": [0, 2.0, 0.5]}
    sets = torch.tensor([[True, True, False], [False, False, True], [False, False, False]])
    guards = Guards(torch.zeros(3, 2, dtype=DOUBLE), targets[kind], torch.tensor([0, 0, 2]), sets, kind)
    wrong = guards.wrong(scores)
    assert wrong.tolist() == pytest.approx(wanted[kind])
    assert guards.errors(wrong).tolist() == pytest.approx([sum(wanted[kind][:2]) / 2, wanted[kind][2], 0.0])
    assert guards.mean_error(wrong) == pytest.approx((sum(wanted[kind][:2]) / 2 + wanted[kind][2]) / 2)
