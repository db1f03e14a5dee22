"""The Lagrangian as functions and as a core for other people's loops."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pdcl import duality
from pdcl.algorithm.lagrangian import Lagrangian
from pdcl.duality import (
    Fixed,
    PerTask,
    Relative,
    cumulate,
    draw_by_dual,
    task_means,
)

DOUBLE = torch.float64
CURRENT = torch.tensor([1.0, 3.0], dtype=DOUBLE)
LOSSES = torch.tensor([1.0, 2.0, 4.0, 8.0, 3.0], dtype=DOUBLE)
TASKS = torch.tensor([0, 2, 2, 2, 0])
BATCH = torch.cat([CURRENT, LOSSES])
IDS = torch.cat([torch.tensor([-1, -1]), TASKS])


def real(*values):
    return torch.tensor(values, dtype=DOUBLE)


def grown(**options) -> Lagrangian:
    """One dual step on the batch: slacks (2 − 0.5, 14/3 − 0.5) at η_d = 0.1."""
    lagrangian = Lagrangian(0.5, **options)
    lagrangian.ascend(BATCH, IDS)
    return lagrangian


def test_task_means_are_nan_where_a_task_is_absent():
    means = task_means(LOSSES, TASKS, 4)
    assert means[[0, 2]].tolist() == pytest.approx([2.0, 14 / 3])
    assert means[[1, 3]].isnan().all()


def by_hand(current, losses, duals, tolerances):
    """mean(current) + Σ_k λ_k (L_k − ε_k) over tasks 0 and 2, in plain Python."""
    means = {0: (losses[0] + losses[4]) / 2, 2: (losses[1] + losses[2] + losses[3]) / 3}
    return sum(current) / 2 + sum(duals[k] * (mean - tolerances[k]) for k, mean in means.items())


@given(st.lists(st.floats(0, 10), min_size=5, max_size=5))
def test_equal_sample_duals_reduce_the_sample_level_to_the_task_level(losses):
    """One step from slack 1 each gives every sample and every task the same dual."""
    values = torch.cat([CURRENT, torch.tensor(losses, dtype=DOUBLE)])
    samples = torch.tensor([-1, -1, 0, 1, 2, 3, 4])
    task, sample = Lagrangian(0.0), Lagrangian(0.0, level="sample")
    task.ascend(torch.ones(7, dtype=DOUBLE), IDS)
    sample.ascend(torch.ones(7, dtype=DOUBLE), samples, IDS.clamp(min=0))
    groups = IDS.clamp(min=0)
    assert sample.loss(values, samples, groups=groups).item() == pytest.approx(task.loss(values, IDS).item())


def test_duals_rise_by_slack_and_only_for_ids_that_are_present():
    lagrangian = grown()
    assert lagrangian.ids.tolist() == [0, 2]
    assert lagrangian.duals.tolist() == pytest.approx([0.15, (14 / 3 - 0.5) * 0.1])
    assert lagrangian.slacks.tolist() == pytest.approx([1.5, 14 / 3 - 0.5])
    lagrangian.ascend(real(1.0), torch.tensor([0]))
    assert lagrangian.duals.tolist() == pytest.approx([0.2, (14 / 3 - 0.5) * 0.1])


def test_a_batch_that_meets_a_constraint_lowers_its_dual_to_zero_and_no_further():
    lagrangian = grown(decay=0.5)
    lagrangian.ascend(torch.zeros(2), torch.tensor([0, 2]))
    expected = (14 / 3 - 0.5) * 0.1 + 0.1 * (-0.5 - 0.5 * (14 / 3 - 0.5) * 0.1)
    assert lagrangian.duals.tolist() == pytest.approx([0.15 + 0.1 * (-0.5 - 0.075), expected])
    for _ in range(20):
        lagrangian.ascend(torch.zeros(2), torch.tensor([0, 2]))
    assert lagrangian.duals.tolist() == [0.0, 0.0]


def test_the_loss_is_the_lagrangian_up_to_a_constant_and_has_its_gradient():
    lagrangian = grown()
    duals = {0: 0.15, 2: (14 / 3 - 0.5) * 0.1}
    losses = BATCH.clone().requires_grad_()
    value = lagrangian.loss(losses, IDS)
    value.backward()
    assert value.item() == pytest.approx(by_hand(CURRENT.tolist(), LOSSES.tolist(), duals, {0: 0.0, 2: 0.0}))
    weights = [0.5, 0.5, duals[0] / 2, *[duals[2] / 3] * 3, duals[0] / 2]
    assert losses.grad.tolist() == pytest.approx(weights)


def test_at_the_sample_level_each_sample_has_its_dual_over_the_batchs_count():
    lagrangian = Lagrangian(0.5, level="sample")
    ids, groups = torch.tensor([-1, -1, 10, 3, 99, 50, 7]), torch.tensor([0, 0, 0, 2, 2, 2, 0])
    lagrangian.ascend(BATCH, ids, groups)
    assert lagrangian.ids.tolist() == [3, 7, 10, 50, 99]
    assert lagrangian.duals.tolist() == pytest.approx([0.15, 0.25, 0.05, 0.75, 0.35])
    losses = BATCH.clone().requires_grad_()
    lagrangian.loss(losses, ids).backward()
    assert losses.grad.tolist() == pytest.approx([0.5, 0.5, 0.025, 0.05, 0.35 / 3, 0.25, 0.125])
    assert lagrangian.mass == pytest.approx(0.3 / 2 + 1.25 / 3)


def test_without_groups_all_samples_are_of_one_task():
    lagrangian = Lagrangian(0.0, dual_lr=1.0, level="sample")
    losses, ids = real(1.0, 2.0, 3.0), torch.tensor([4, 5, 6])
    lagrangian.ascend(losses, ids)
    assert lagrangian.loss(losses, ids).item() == pytest.approx((1 + 4 + 9) / 3)


def test_a_sample_that_comes_twice_is_measured_once():
    lagrangian = Lagrangian(0.0, dual_lr=1.0, level="sample")
    lagrangian.ascend(real(1.0, 3.0, 5.0), torch.tensor([8, 8, 9]))
    assert lagrangian.duals.tolist() == [2.0, 5.0]


def test_weights_of_a_draw_replace_the_batchs_means():
    lagrangian = grown()
    weights = torch.tensor([0.5, 0.25, 0.0, 2.0, 1.0])
    expected = 2 + 0.5 * 1 + 0.25 * 2 + 2 * 8 + 1 * 3
    assert lagrangian.loss(BATCH, IDS, weights).item() == pytest.approx(expected)
    whole = torch.cat([torch.tensor([77.0, 77.0]), weights])
    assert lagrangian.loss(BATCH, IDS, whole).item() == pytest.approx(expected)


def test_drawn_weights_estimate_the_same_loss():
    """z-test over 2,000 draws, |z| < 5: false alarms below 1e-6."""
    lagrangian, generator = grown(), torch.Generator().manual_seed(0)
    order = TASKS.argsort(stable=True)
    stored, tasks = LOSSES[order], TASKS[order]
    counts, offsets = torch.tensor([2, 3]), torch.tensor([0, 2])
    exact = lagrangian.loss(BATCH, IDS)
    values = []
    for _ in range(2000):
        slots, weights = draw_by_dual(cumulate(lagrangian.duals, counts), offsets, counts, 4, generator)
        batch, ids = torch.cat([CURRENT, stored[slots]]), torch.cat([IDS[:2], tasks[slots]])
        values.append(lagrangian.loss(batch, ids, weights))
    values = torch.stack(values)
    assert abs((values.mean() - exact) / (values.std() / 2000**0.5)).item() < 5


def test_normalising_at_the_sample_level_divides_by_the_mean_duals():
    lagrangian = Lagrangian(0.0, dual_lr=1.0, level="sample", normalise=True)
    losses, ids = real(1.0, 3.0), torch.tensor([0, 1])
    lagrangian.ascend(losses, ids)
    assert lagrangian.loss(losses, ids).item() == pytest.approx((1 + 9) / 2 / (1 + 2))


def test_the_artificial_dual_moves_like_the_others_and_stays_out_of_the_loss():
    lagrangian = Lagrangian(0.5)
    lagrangian.ascend(CURRENT, torch.tensor([-1, -1]))
    assert lagrangian.current_dual == pytest.approx(0.15)
    assert lagrangian.ids.tolist() == []
    assert lagrangian.loss(CURRENT, torch.tensor([-1, -1])).item() == 2.0


def test_decay_acts_on_the_artificial_dual_too():
    lagrangian = Lagrangian(0.5, decay=2.0)
    for _ in range(2):
        lagrangian.ascend(CURRENT, torch.tensor([-1, -1]))
    assert lagrangian.current_dual == pytest.approx(0.15 + 0.1 * (1.5 - 2.0 * 0.15))


def test_the_current_task_has_the_tolerance_of_its_place_in_the_stream():
    lagrangian = Lagrangian(PerTask([0.5, 1.5]))
    lagrangian.end_task()
    lagrangian.ascend(real(2.0), torch.tensor([-1]))
    assert lagrangian.current_dual == pytest.approx(0.05)
    lagrangian.set_tolerance(-1, 2.0)
    lagrangian.ascend(real(2.5), torch.tensor([-1]))
    assert lagrangian.current_dual == pytest.approx(0.1)


def test_a_mapping_names_the_current_task_by_its_number_or_as_minus_one():
    for mapping, expected in (({0: 0.5, 1: 1.5}, 0.05), ({0: 0.5, 1: 1.5, -1: 1.0}, 0.1)):
        lagrangian = Lagrangian(mapping)
        lagrangian.end_task()
        lagrangian.ascend(real(2.0), torch.tensor([-1]))
        assert lagrangian.current_dual == pytest.approx(expected)


def test_a_new_task_starts_at_zero_unless_it_starts_warm():
    warm, cold = grown(), grown()
    warm.end_task(warm=True)
    assert warm.duals.sum() > 0
    assert warm.current_dual > 0
    cold.end_task()
    assert cold.duals.tolist() == [0.0, 0.0]
    assert cold.current_dual == 0.0
    assert cold.ids.tolist() == [0, 2]


def test_a_first_sight_adds_a_constraint_in_the_order_of_ids():
    lagrangian = grown()
    before = lagrangian.duals.tolist()
    assert lagrangian.loss(real(5.0), torch.tensor([1])).item() == 0.0
    assert lagrangian.ids.tolist() == [0, 1, 2]
    assert lagrangian.duals.tolist() == [before[0], 0.0, before[1]]
    assert lagrangian.slacks[1].isnan()


def test_dropping_constraints_keeps_each_dual_with_its_id():
    lagrangian = grown()
    dual = lagrangian.duals[1].item()
    lagrangian.keep(torch.tensor([2, 40]))
    assert lagrangian.ids.tolist() == [2]
    assert lagrangian.duals.tolist() == [dual]


@pytest.mark.parametrize(
    ("tolerance", "expected"),
    [(0.5, [0.5, 0.5]), ("5%", [0.05, 0.05]), ([0.1, 9, 0.3], [0.1, 0.3]), ({0: 0.2, 2: 0.4, -1: 1.0}, [0.2, 0.4])],
)
def test_every_way_to_write_a_tolerance_reaches_the_slacks(tolerance, expected):
    lagrangian = Lagrangian(tolerance)
    lagrangian.loss(BATCH, IDS)
    assert lagrangian.tolerances.tolist() == expected


def test_at_the_sample_level_tolerances_per_task_follow_the_groups():
    lagrangian = Lagrangian([0.1, 0.2], level="sample")
    lagrangian.loss(real(1.0, 1.0), torch.tensor([30, 20]), groups=torch.tensor([0, 1]))
    assert lagrangian.tolerances.tolist() == [0.2, 0.1]


def test_a_relative_tolerance_is_taken_of_what_a_task_reached():
    lagrangian = Lagrangian("2x>=0.1")
    lagrangian.set_tolerance(0, reached=0.3)
    lagrangian.set_tolerance(2, reached=0.0)
    lagrangian.set_tolerance(2, 0.7)
    lagrangian.set_tolerance(-1, reached=1.0)
    lagrangian.ascend(BATCH, IDS)
    assert lagrangian.tolerances.tolist() == [0.6, 0.7]
    assert lagrangian.current_dual == 0.0


@pytest.mark.parametrize("level", ["task", "sample"])
def test_saved_and_loaded_it_goes_on_as_if_never_stopped(level):
    groups = IDS.clamp(min=0) if level == "sample" else None
    one = Lagrangian(0.5, level=level)
    one.ascend(BATCH, IDS, groups)
    one.end_task(warm=True)
    one.set_tolerance(-1, 0.3)
    state = one.state_dict()
    values = {name: value for name, value in state.items() if not isinstance(value, torch.Tensor)}
    assert json.loads(json.dumps(values)) == values
    other = Lagrangian(0.5, level=level)
    other.load_state_dict(state)
    for name in ("ids", "duals", "slacks", "tolerances"):
        assert torch.equal(getattr(one, name), getattr(other, name))
    assert one.mass == other.mass > 0
    for lagrangian in (one, other):
        lagrangian.ascend(BATCH * 1.5, IDS)
    assert torch.equal(one.duals, other.duals)
    assert one.current_dual == other.current_dual
    assert one.task == other.task == 1
    assert state["duals"].tolist() != one.duals.tolist()


def test_half_precision_losses_do_not_coarsen_the_duals():
    lagrangian = Lagrangian(0.0, dual_lr=1e-4)
    for _ in range(1000):
        lagrangian.ascend(torch.ones(1, dtype=torch.bfloat16), torch.tensor([0]))
    assert lagrangian.duals.item() == pytest.approx(0.1)
    assert lagrangian.loss(torch.ones(1, dtype=torch.bfloat16), torch.tensor([0])).dtype == torch.bfloat16


def test_diverged_losses_change_no_dual():
    lagrangian = grown()
    before = lagrangian.state_dict()
    for ids in (IDS, IDS.flip(0)):
        with pytest.raises(ValueError, match="aren't finite, so no dual was changed"):
            lagrangian.ascend(torch.cat([real(torch.nan), BATCH[1:]]), ids)
    after = lagrangian.state_dict()
    assert torch.equal(before["duals"], after["duals"])
    assert before["current_dual"] == after["current_dual"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Lagrangian(0.1, level="class"), "'class'"),
        (lambda: Lagrangian(0.1, dual_lr=-1), "-1"),
        (lambda: Lagrangian(0.1, decay=float("nan")), "nan"),
        (lambda: Lagrangian({0: -1.0}), "-1.0"),
        (lambda: Lagrangian(0.1).loss(torch.ones(2), torch.tensor([0])), r"\[2\] and \[1\]"),
        (lambda: Lagrangian(0.1).loss(torch.ones(1), torch.tensor([-2])), "one is -2"),
        (lambda: grown().loss(BATCH, IDS, torch.ones(3)), "3 weights for a batch of 7 with 5 past"),
        (lambda: grown().loss(BATCH, IDS, groups=IDS), "no effect"),
        (lambda: Lagrangian({0: 0.1}).loss(torch.ones(1), torch.tensor([5])), r"id 5: .*set_tolerance\(5, value\)"),
        (
            lambda: Lagrangian(Relative(1.1)).loss(torch.ones(1), torch.tensor([5])),
            r"relative .*set_tolerance\(5, value\)",
        ),
        (lambda: Lagrangian("1.1x").ascend(torch.ones(1), torch.tensor([-1])), r"set_tolerance\(-1, value\)"),
        (lambda: Lagrangian([0.1]).loss(torch.ones(1), torch.tensor([1])), "task 1: 1 are given"),
        (lambda: Lagrangian(Fixed(0.1)).set_tolerance(0, reached=0.2), "no effect"),
        (lambda: Lagrangian("1.1x").set_tolerance(0), "needs what the task had reached"),
        (lambda: Lagrangian("1.1x").set_tolerance(0, 0.1, reached=0.1), "give one of them"),
        (lambda: Lagrangian(0.1, level="sample").load_state_dict(grown().state_dict()), "level 'task'"),
    ],
)
def test_nonsense_is_named_and_the_way_out_is_shown(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_a_rate_of_zero_and_no_decay_are_allowed():
    lagrangian = Lagrangian(0.1, dual_lr=0, decay=0)
    lagrangian.ascend(BATCH, IDS)
    assert lagrangian.duals.tolist() == [0.0, 0.0]


def test_duals_are_in_double_precision_whatever_networks_are_in():
    torch.set_default_dtype(torch.float32)
    lagrangian = Lagrangian(0.1, dual_lr=0.1)
    lagrangian.ascend(torch.ones(2), torch.tensor([-1, 3]))
    assert lagrangian.duals.dtype == lagrangian.tolerances.dtype == DOUBLE
    assert lagrangian.tolerances.item() == 0.1
    assert lagrangian.duals.item() == lagrangian.current_dual == 0.1 * (1 - 0.1)


def test_a_sample_has_the_group_that_it_was_last_given():
    """Two samples of one task weigh a half each; of two tasks, one each."""
    lagrangian = Lagrangian(0.0, dual_lr=1.0, level="sample")
    losses, ids = real(1.0, 3.0), torch.tensor([0, 1])
    lagrangian.ascend(losses, ids)
    assert lagrangian.loss(losses, ids).item() == pytest.approx(5.0)
    assert lagrangian.loss(losses, ids, groups=torch.tensor([0, 1])).item() == pytest.approx(10.0)
    assert lagrangian.mass == pytest.approx(4.0)


def test_one_current_sample_counts_whole():
    assert Lagrangian(0.0).loss(real(3.0), torch.tensor([-1])).item() == 3.0


@pytest.mark.parametrize("base", [0.0, 1.0])
def test_the_lagrangian_of_tasks_is_the_papers_sum(base):
    """By hand: L_t = 2; L_0 = 2, L_1 = 14/3, with λ = (½, 2) and ε = (1, 3)."""
    duals, limits, tasks = real(0.5, 2.0), real(1.0, 3.0), TASKS // 2
    expected = 2 + (base + 0.5) * 2 - 0.5 + (base + 2) * 14 / 3 - 6
    assert float(duality.lagrangian(CURRENT, LOSSES, tasks, duals, limits, base)) == pytest.approx(expected)
    # A dual for every sample, all alike within a task, with the limit of the task: the same sum.
    found = duality.lagrangian(CURRENT, LOSSES, tasks, duals[tasks], limits[tasks], base, by_sample=True)
    assert float(found) == pytest.approx(expected)


def test_what_a_loop_descends_has_the_slope_of_the_lagrangian():
    ours, batch = grown(), BATCH.clone().requires_grad_()
    ours.loss(batch, IDS).backward()
    losses = BATCH.clone().requires_grad_()
    duality.lagrangian(losses[:2], losses[2:], TASKS // 2, ours.duals, ours.tolerances).backward()
    assert batch.grad.tolist() == pytest.approx(losses.grad.tolist())
