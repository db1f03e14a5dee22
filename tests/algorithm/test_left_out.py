"""What a caller leaves out is what the description says: the same call with it stated gives the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pdcl.algorithm.algorithm1 import Algorithm1, Duals
from pdcl.algorithm.constraints import Constraints, lagrangian, task_sets
from pdcl.algorithm.draws import ByDual
from pdcl.algorithm.dual_rules import Capped, Look, ascend, infeasible, nupi
from pdcl.algorithm.lagrangian import Lagrangian
from pdcl.algorithm.partition import affine_partition, generalization_partition
from pdcl.algorithm.selection import robust_weights
from pdcl.algorithm.slacks import Survey
from pdcl.past.held_back import Counts, allowed

DUALS = torch.tensor([0.5, 3.0, 0.1, 8.0], dtype=torch.float64)
SLACKS = torch.tensor([0.2, -0.1, 0.4, 0.3], dtype=torch.float64)
TASKS = torch.tensor([0, 1, 1, 2, 3, 3])


def falling(rise: float) -> torch.Tensor:
    """Ten duals of which the last half rises by this part."""
    return torch.tensor([[9.0]] * 5 + [[1.0]] * 4 + [[1.0 + rise]])


@pytest.mark.parametrize(
    ("without", "stated"),
    [
        (lambda: ascend(DUALS, SLACKS, 0.1), lambda: ascend(DUALS, SLACKS, 0.1, decay=0.0)),
        (lambda: nupi(DUALS, SLACKS, 0.1, 0.2)[1], lambda: nupi(DUALS, SLACKS, 0.1, 0.2, decay=0.0)[1]),
        (lambda: infeasible(falling(0.02), torch.ones(10, 1)), lambda: torch.tensor([True])),
        (lambda: infeasible(falling(0.005), torch.ones(10, 1)), lambda: torch.tensor([False])),
        (lambda: robust_weights(DUALS), lambda: robust_weights(DUALS, quantile=0.9, uniform=0.5)),
        (lambda: affine_partition(DUALS, 97), lambda: affine_partition(DUALS, 97, alpha=0.5, current_cap=None)),
        (lambda: generalization_partition(DUALS, 60), lambda: generalization_partition(DUALS, 60, minimum=5)),
        (
            lambda: lagrangian(SLACKS, SLACKS.repeat(2)[:6], TASKS, DUALS, SLACKS),
            lambda: lagrangian(SLACKS, SLACKS.repeat(2)[:6], TASKS, DUALS, SLACKS, base=0.0, by_sample=False),
        ),
        (lambda: allowed(4, None, True, 300, 2), lambda: allowed(4, None, True, 300, 2, classes=0)),
        (lambda: Counts(3, 9).within(20), lambda: Counts(3, 9, least_guards=0).within(20)),
    ],
)
def test_a_call_without_it_gives_what_the_stated_default_gives(without: Any, stated: Any) -> None:
    found, expected = without(), stated()
    assert torch.equal(found, expected) if isinstance(found, torch.Tensor) else found == expected


def test_a_rule_without_a_plan_steps_as_for_one_dual_step_with_all_constraints_measured() -> None:
    rule, zeros = Capped(), torch.zeros(4, dtype=torch.float64)
    duals = Duals(zeros, zeros, rule)
    duals.ascend(SLACKS)
    _, expected = rule.step(zeros, Look(SLACKS, zeros, share=1.0, steps=1))
    assert torch.equal(duals.values, expected)
    assert torch.equal(rule.step(zeros, Look(SLACKS, zeros))[1], expected)


def test_the_algorithm_normalises_and_somebody_elses_loop_does_not_unless_told() -> None:
    tasks = task_sets(TASKS, 4)
    plain = Constraints(tasks, tasks, tasks, SLACKS, torch.zeros(4).bool(), torch.ones(4), SLACKS)
    assert not plain.by_sample
    duals = Duals(SLACKS, torch.zeros(4, dtype=torch.float64), Capped())
    found = Algorithm1(plain, duals, ByDual(), Survey(tasks, 9, torch.Generator()))
    drawn = found.draw(3, torch.Generator().manual_seed(0))
    assert drawn is not None
    assert float(found.weights(5, drawn).sum()) == pytest.approx(1.0), "a base weight of 1 for each of four tasks"
    by_hand = Lagrangian(0.0)
    by_hand.ascend(torch.tensor([2.0]), torch.tensor([0]))
    assert by_hand.duals.tolist() == pytest.approx([0.1 * 2.0])
    assert float(by_hand.loss(torch.tensor([1.0, 2.0]), torch.tensor([-1, 0]))) == pytest.approx(1 + 0.2 * 2)
    by_hand.end_task()
    assert by_hand.duals.tolist() == [0.0]
