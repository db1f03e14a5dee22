"""Limits by segment: constraints of their own over stored samples of any past task, with duals of their own."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch

from pdcl.algorithm.constraints import task_sets, with_segments
from pdcl.learning.primal_dual import PrimalDual
from pdcl.limits.limits import as_limits
from pdcl.objective import OBJECTIVES
from pdcl.past.segments import Segments
from pdcl.streams.columns import encoded
from pdcl.streams.data import TensorData
from pdcl.streams.task import Task

DOUBLE = torch.float64


def with_column(made: Any, values: list[list[str]]) -> Any:
    """The problem with a column "plan" of these values, a list per task."""
    plain = made.tasks

    def tasks() -> list[Task]:
        found = []
        for task, own in zip(plain(), values, strict=True):
            columns = encoded({"plan": np.array(own, dtype=object)})
            data = TensorData(task.data.x, task.data.targets, columns=columns)
            found.append(Task(task.index, task.name, data, data))
        return found

    made.tasks = tasks
    return made


def weight_by_slot(core: PrimalDual) -> torch.Tensor:
    """What each stored sample weighs in the Lagrangian, with the whole memory replayed."""
    drawn = core.draw(1)
    assert drawn is not None
    return torch.zeros(len(core.memory), dtype=DOUBLE).index_add(0, drawn.slots, drawn.weights.double())


@pytest.mark.parametrize("by", ["core", "learner"])
@pytest.mark.parametrize("drift", [0.0, 0.5])
def test_a_segment_that_is_one_task_has_the_duals_and_weights_of_a_limit_on_the_task(
    problem: Any, by: str, drift: float
) -> None:
    past, current = [([[1.0], [2.0]], [1.0, 1.5]), ([[1.0]], [-1.0])], ([[1.0]], [3.0])
    rates = {"lr": 0.02, "dual_lr": 0.05, "steps": 40, "start": (0.5,)}
    by_task = problem(past, current, {"task 0": 0.2}, **rates).solve(by, drift=drift)
    made = with_column(problem(past, current, {"plan=old": 0.2}, **rates), [["old"] * 2, ["new"], ["new"]])
    by_segment = made.solve(by, drift=drift)
    assert torch.equal(by_segment.thetas, by_task.thetas)
    of_task, of_segment = by_task.core.algorithm.duals.values[0], by_segment.core.algorithm.duals.values[2]
    assert of_task > 0.01
    assert of_segment == of_task
    assert by_segment.core.algorithm.duals.values[:2].abs().max() == 0
    assert torch.equal(weight_by_slot(by_segment.core), weight_by_slot(by_task.core))


def test_a_sample_weighs_its_base_its_tasks_dual_and_those_of_all_its_segments(problem: Any) -> None:
    """By hand: tasks of 2 and 3 samples, b = .5, λ = (1, 0); red: samples 0, 2, 3, λ 3; blue: none; big: 2, λ 2."""
    tolerance = {"task 0": 9.0, "plan=red": 9.0, "plan=blue": 9.0, "size=big": 9.0}
    goal = OBJECTIVES["regression"]
    core = PrimalDual(10, tolerance, base=0.5, estimator="whole", witness=0, objective=goal)
    plans = [["red", "none"], ["red", "red", "none"]]
    sizes = [["small", "small"], ["big", "small", "small"]]
    for k, (plan, size) in enumerate(zip(plans, sizes, strict=True)):
        columns = encoded({"plan": np.array(plan, dtype=object), "size": np.array(size, dtype=object)})
        data = TensorData(torch.zeros(len(plan), 1), torch.zeros(len(plan), 1), columns=columns)
        core.begin(len(plan), 1)
        core.end(f"task {k}", data, lambda x: x, 100 * k)
    core.begin(1, 1)
    core.algorithm.duals.values[:] = torch.tensor([1.0, 0.0, 3.0, 5.0, 2.0], dtype=DOUBLE)
    core.algorithm.weigh()
    order = core.memory["id"].argsort()
    assert weight_by_slot(core)[order].tolist() == pytest.approx(
        [1.5 / 2 + 1, 1.5 / 2, 0.5 / 3 + 1 + 2, 0.5 / 3 + 1, 0.5 / 3]
    )
    assert core.algorithm.norm == pytest.approx(1.5 + 0.5 + 3 + 5 + 2)
    assert core.algorithm.duals.limits.isnan().tolist() == [False, True, False, True, False], "nothing is blue yet"


@pytest.mark.parametrize("seed", range(3))
def test_overlapping_segments_reach_the_oracles_duals(problem: Any, seed: int) -> None:
    """min (1/n) Σ (wx − y)² s.t. a limit on each of two segments that overlap and cross two tasks: θ*, λ* by cvxpy."""
    random = np.random.default_rng(seed)
    x = [random.normal(size=(8, 3)) for _ in range(3)]
    y = [a @ random.normal(size=3) + 0.1 * random.normal(size=8) for a in x]
    plan, region = random.choice(["gold", "silver"], (2, 8)), random.choice(["north", "south"], (2, 8))
    inside = [np.concatenate(plan == "gold"), np.concatenate(region == "north")]
    past_x, past_y = np.concatenate(x[:2]), np.concatenate(y[:2])
    both = np.linalg.lstsq(past_x[inside[0] | inside[1]], past_y[inside[0] | inside[1]], rcond=None)[0]
    own = np.linalg.lstsq(x[2], y[2], rcond=None)[0]

    def risk(w: Any, mask: Any) -> float:
        return float(np.square(past_x[mask] @ w - past_y[mask]).mean())

    limits = [risk(both, mask) + 0.3 * max(0.1, risk(own, mask) - risk(both, mask)) for mask in inside]
    theta = cp.Variable(3)
    constraints = [
        cp.sum_squares(past_x[m] @ theta - past_y[m]) / int(m.sum()) <= bound
        for m, bound in zip(inside, limits, strict=True)
    ]
    exact = cp.Problem(cp.Minimize(cp.sum_squares(x[2] @ theta - y[2]) / 8), constraints)
    exact.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
    tolerance = {"plan=gold": limits[0], "region=north": limits[1]}
    made = problem(
        [(x[0], y[0]), (x[1], y[1])], (x[2], y[2]), tolerance, start=(0.0,) * 3, lr=0.05, dual_lr=0.3, steps=1500
    )
    plain = made.tasks

    def tasks() -> list[Task]:
        found = plain()
        for k in range(2):
            columns = encoded({"plan": plan[k].astype(object), "region": region[k].astype(object)})
            data = TensorData(found[k].data.x, found[k].data.targets, columns=columns)
            found[k] = Task(k, found[k].name, data, data)
        return found

    made.tasks = tasks
    found = made.by_core()
    duals = [np.asarray(each.dual_value).item() for each in constraints]
    assert max(duals) > 0.01
    assert found.theta.tolist() == pytest.approx(theta.value.tolist(), abs=1e-3)
    assert found.core.algorithm.duals.values[2:].tolist() == pytest.approx(duals, abs=1e-3)


def test_values_are_numbered_by_name_so_a_loaded_table_means_the_same() -> None:
    segments = Segments(as_limits({"plan=gold": "+1pt", "plan=7": "+2pt", "region=north": "5%"}).segments)
    columns = encoded({"plan": np.array(["gold", "tin", 7], dtype=object), "region": np.array(["n", "north", "n"])})
    codes = segments.encode(columns, torch.tensor([2, 0, 1]))
    assert codes.tolist() == [[2, 0], [1, 0], [0, 1]]
    other = Segments(as_limits({"region=north": "5%", "plan=7": "+2pt", "plan=tin": "1%"}).segments)
    other.take_table(segments.table)
    masks = dict(zip(other.names, other.masks(codes).tolist(), strict=True))
    assert masks == {"region=north": [False, False, True], "plan=7": [True, False, False], "plan=tin": [False] * 3}


def test_a_slot_is_in_the_set_of_its_task_and_of_each_of_its_segments_and_once_among_the_distinct() -> None:
    sets = with_segments(task_sets(torch.tensor([0, 1, 1, 0]), 2), torch.tensor([[1, 1, 0, 0], [0, 1, 1, 1]]).bool())
    found = [{*each.tolist()} for each in sets.members.split(sets.counts.tolist())]
    assert found == [{0, 3}, {1, 2}, {0, 1}, {1, 2, 3}]
    assert sets.tasks.tolist() == [0, 1, -1, -1]
    once, where = sets.distinct
    assert once.tolist() == [0, 1, 2, 3]
    assert torch.equal(once[where], sets.members)


def test_without_segments_memory_has_no_column_for_them(problem: Any) -> None:
    solved = problem([([[1.0]], [1.0])], ([[1.0]], [3.0]), 0.2).by_core()
    assert "codes" not in solved.core.memory.columns


def test_slacks_of_segments_are_means_over_their_samples_each_looked_at_once(constant: Any) -> None:
    """Losses 1, 2 | 4, 8: the segment holds 2 and 4; ε = .5."""
    made = constant([[1.0, 2.0], [4.0, 8.0]], [5.0], {"plan=red": 0.5})
    made = with_column(made, [["no", "red"], ["red", "no"], ["no"]])
    learner, _ = made.prepared()
    core = learner.core
    core.begin(1, 1)
    seen: list[torch.Tensor] = []

    def look(slots: torch.Tensor) -> torch.Tensor:
        seen.append(slots)
        return core.past.look(learner.evaluated)(slots)

    found = core.algorithm.measure(look)
    assert found.told[2].item() == pytest.approx(3.0 - 0.5)
    assert found.visited.tolist() == [2]
    assert [sorted(slots.tolist()) for slots in seen] == [[0, 1, 2, 3]]


def test_a_segment_has_no_dual_at_the_sample_level() -> None:
    with pytest.raises(Exception, match=r"plan=gold.*level"):
        PrimalDual(10, {"plan=gold": 0.1}, level="sample")
