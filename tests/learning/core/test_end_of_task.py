"""The end of a task: memory divided by the duals that its dual steps found, filled, tolerances set anew."""

import math
from dataclasses import dataclass

import pytest
import torch

from pdcl.algorithm.constraints import task_sets
from pdcl.algorithm.partition_rules import PartitionRule
from pdcl.algorithm.rules import rule
from pdcl.learning.events import ToleranceSet
from pdcl.past.refill import chosen_positions, kept_slots
from pdcl.streams.data import TensorData

LITERAL = "dual:clip=1,uniform_share=0,balance=false,candidates=0,rescore=false"


@pytest.fixture
def counts(constant):
    """n_k after one dual step at η_d = 1 and ε = 0: a task's loss is its dual. sizes: samples of each past task."""

    def run(duals, sizes, memory, partition, newest=100):
        past = [[dual] * size for dual, size in zip(duals, sizes, strict=False)]
        found = constant(past, [duals[-1]] * newest, dual_lr=1.0).by_learner(memory=memory, partition=partition)
        assert found.learner.final_duals() == pytest.approx(duals)
        assert found.learner.held.counts(len(duals)) == torch.bincount(found.learner.held["task"]).tolist()
        return found.learner.held.counts(len(duals))

    return run


@pytest.mark.parametrize(
    ("sizes", "alpha", "expected"),
    [
        ((40, 30, 30), 0.5, [38, 21, 12, 29]),
        ((25, 40, 25), 0.5, [25, 25, 15, 35]),
        ((50, 25, 25), 1.0, [50, 17, 0, 33]),
        ((40, 30, 30), 0.0, [25, 25, 25, 25]),
    ],
)
def test_w4_affine_partition(counts, sizes, alpha, expected):
    """λ = (3, 1, 0, 2), the last being the artificial dual of the newest task."""
    assert counts((3, 1, 0, 2), sizes, 100, f"affine:alpha={alpha},current_cap=0") == expected


def test_w4_without_duals_memory_is_divided_evenly(counts):
    assert counts((0, 0, 0), (50, 50), 100, "affine") == [34, 33, 33]


@pytest.mark.parametrize(
    ("duals", "sizes", "memory", "expected"),
    [
        ((4, 2, 7), (60, 40), 100, [53, 30, 17]),
        ((4, 2, 7), (20, 10), 30, [17, 8, 5]),
        ((4, 2, 7), (600, 400), 1000, [508, 307, 185]),
        ((10, 1, 0, 7), (50, 5, 5), 60, [45, 5, 5, 5]),
        ((4, 2, 7), (40, 60), 100, [40, 38, 22]),
    ],
)
def test_w6_generalisation_partition_weighs_the_newest_task_by_one(counts, duals, sizes, memory, expected):
    """λ = (4, 2, 1) and (10, 1, 0, 1): the artificial dual, 7 here, has no say."""
    assert counts(duals, sizes, memory, "generalization", newest=300) == expected


@pytest.mark.parametrize(
    ("duals", "n", "expected"),
    [((3, 1, 1), 2, (0.9, 0.55, 0.55)), ((4, 3, 2, 1), 2, (0.715873, 0.608333, 0.441270, 0.234524))],
)
def test_w5_past_samples_stay_with_the_probabilities_of_their_duals(duals, n, expected):
    """z-tests of 1,500 refills, |z| < 4.5: a false alarm in 2·10⁴."""
    generator, repeats = torch.Generator().manual_seed(1), 1500
    tasks, labels = task_sets(torch.zeros(len(duals), dtype=torch.long), 1), torch.zeros(len(duals))
    values = torch.tensor(duals, dtype=torch.float64)
    kept = [kept_slots(rule("selection", LITERAL), tasks, [n], values, labels, generator) for _ in range(repeats)]
    seen = torch.bincount(torch.cat(kept), minlength=len(duals)) / repeats
    for share, exact in zip(seen.tolist(), expected, strict=True):
        assert abs(share - exact) < 4.5 * math.sqrt(exact * (1 - exact) / repeats)


def test_w5_new_samples_are_chosen_with_the_probabilities_of_their_shadow_duals():
    """The same for the newest task's data; |z| < 4.5."""
    duals, expected, repeats = torch.tensor([3.0, 1.0, 1.0]), (0.9, 0.55, 0.55), 1500
    data, generator = TensorData(torch.zeros(3, 1), torch.zeros(3, 1)), torch.Generator().manual_seed(1)
    found = [
        chosen_positions(rule("selection", LITERAL), data, 2, lambda c: duals[c], generator) for _ in range(repeats)
    ]
    assert all(torch.equal(own, duals[chosen]) for chosen, own in found)
    seen = torch.bincount(torch.cat([chosen for chosen, _ in found]), minlength=3) / repeats
    for share, exact in zip(seen.tolist(), expected, strict=True):
        assert abs(share - exact) < 4.5 * math.sqrt(exact * (1 - exact) / repeats)


def stored_losses(found, task):
    """The losses of what memory holds of a task; with constant losses they name the samples."""
    held = found.learner.held
    return sorted(held["y"][held["task"] == task].flatten().tolist())


@pytest.mark.parametrize("seed", range(5))
def test_w5_past_samples_without_a_dual_go_first(constant, seed):
    """λ ∝ (8, 1, 1, 0): of four past samples three are kept, always those with a dual. Uniformly, 1 in 4 each time."""
    made = constant([[8.0, 1.0, 1.0, 0.0]], [1.0] * 6)
    found = made.by_learner(level="sample", selection=LITERAL, memory=6, seed=seed)
    assert stored_losses(found, 0) == [1.0, 1.0, 8.0]


@pytest.mark.parametrize("seed", range(5))
def test_new_samples_without_a_shadow_dual_are_left_out(constant, seed):
    made = constant([[1.0] * 3], [8.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    found = made.by_learner(level="sample", selection=LITERAL, memory=6, seed=seed)
    assert stored_losses(found, 1) == [1.0, 1.0, 8.0]


@dataclass(frozen=True)
class OneEach(PartitionRule):
    """A partition that leaves one sample to each past task, and what `newest` says to the newest."""

    newest: int

    def counts(self, duals, capacity, available):
        past = [1] * (len(duals) - 1)
        return [*past, min(available[-1], self.newest if past else capacity)]


def kept_hard(constant, selection, new):
    """In how many of 20 refills one hard sample among ten is the one that stays."""
    hard, easy = [1000.0] + [1.0] * 9, [1.0] * 10
    made = constant([easy] if new else [hard], hard if new else easy)
    options = {"level": "sample", "selection": selection, "memory": 10, "partition": OneEach(1)}
    stored = [stored_losses(made.by_learner(seed=seed, **options), int(new)) for seed in range(20)]
    assert all(len(losses) == 1 for losses in stored)
    return sum(losses == [1000.0] for losses in stored)


@pytest.mark.parametrize("new", [False, True])
def test_clipping_and_the_uniform_share_bound_the_say_of_one_sample(constant, new):
    """λ = (1000, 1, …, 1), one of ten stays. Literally it is the hard one in 99 %; clipped at the median or drawn
    uniformly in 10 %; half of each in 55 %. Of 20: ≥ 18 but for 10⁻³; ≤ 8 but for 10⁻⁴; 4 … 18 but for 2·10⁻³."""
    base = "dual:balance=false,rescore=false,"
    assert kept_hard(constant, base + "clip=1,uniform_share=0", new) >= 18
    assert kept_hard(constant, base + "clip=.5,uniform_share=0", new) <= 8
    assert kept_hard(constant, base + "clip=1,uniform_share=1", new) <= 8
    assert 4 <= kept_hard(constant, base + "clip=1,uniform_share=.5", new) <= 18


def test_a_stored_sample_carries_what_it_had_as_a_candidate_or_in_memory(constant):
    """Duals belong to samples: those kept have λ_i = η_d (ℓ_i − 1.1 ε), new ones their shadow dual."""
    losses = [3.0, 5.0, 7.0, 9.0]
    made = constant([losses], [2.0, 4.0, 6.0, 8.0], tolerance=0.5, dual_lr=0.1)
    found = made.by_learner(level="sample", selection=LITERAL, memory=6)
    held = found.learner.held
    past = held["task"] == 0
    own = held["y"].flatten() - 0.55
    assert past.sum() == (~past).sum() == 3
    assert held["dual"][past].tolist() == pytest.approx((0.1 * own[past]).tolist())
    assert held["dual"][~past].tolist() == pytest.approx((0.1 * own[~past]).tolist())
    assert held["id"].tolist() == [int(y) - 3 >> 1 if old else 4 + (int(y) - 2 >> 1) for y, old in zip(
        held["y"].flatten().tolist(), past.tolist(), strict=True)]  # fmt: skip


def test_at_the_task_level_a_stored_sample_carries_the_dual_of_its_task(constant):
    found = constant([[3.0] * 4, [5.0] * 4], [1.0] * 4, dual_lr=0.1).by_learner(memory=12)
    held = found.learner.held
    assert held["dual"][:8].tolist() == pytest.approx([0.3] * 4 + [0.5] * 4)
    assert held["dual"][8:].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("epochs", "rescore", "factor"), [(1, True, 1.0), (1, False, 0.1), (3, True, 0.4), (3, False, 0.3)]
)
def test_the_score_of_a_sample_is_its_accumulated_dual_unless_it_is_scored_anew(constant, epochs, rescore, factor):
    """η_d s for each sight (η_d = .1). Scored anew: once more at the end; after one pass, s itself."""
    made = constant([[1.0]], [2.0, 4.0, 6.0], tolerance=0.5, dual_lr=0.1, steps=epochs)
    found = made.by_learner(selection=f"dual:rescore={rescore}")
    held = found.learner.held
    new = held["task"] == 1
    assert held["dual"][new].tolist() == pytest.approx((factor * (held["y"][new].flatten() - 0.55)).tolist())


def test_shadow_duals_start_again_with_every_task_and_never_fall_below_zero(constant):
    made = constant([[1.0]], [0.1, 4.0], tolerance=0.5, dual_lr=0.1, steps=3)
    learner, _ = made.prepared(selection="dual:rescore=false")
    core = learner.core
    for _ in range(2):
        core.begin(2, 3)
        assert core.progress.shadow.tolist() == [0.0, 0.0]
        core.observe(torch.tensor([1, 0]), torch.tensor([4.0, 0.1]), 2)
        assert core.progress.shadow.tolist() == pytest.approx([0.0, 0.345])


def test_samples_mixed_in_behind_the_tasks_own_have_no_shadow_dual(constant):
    learner, _ = constant([[1.0]], [0.1, 4.0], tolerance=0.5, dual_lr=0.1).prepared(selection="dual")
    learner.core.begin(2, 3)
    learner.core.observe(torch.tensor([5, 1]), torch.tensor([9.0, 4.0]), 2)
    assert learner.core.progress.shadow.tolist() == pytest.approx([0.0, 0.345])


def test_a_relative_tolerance_counts_shadow_duals_from_its_floor(constant):
    found = constant([[1.0]], [2.0, 4.0], tolerance="1.5x>=0.5", dual_lr=0.1).by_learner(selection="dual")
    held = found.learner.held
    new = held["task"] == 1
    assert held["dual"][new].tolist() == pytest.approx((held["y"][new].flatten() - 0.55).tolist())


def test_tolerances_follow_what_is_stored_and_every_change_is_told(constant):
    """ε_k = 1.5 × the mean loss of what memory holds of task k, old and new."""
    events = []
    made = constant([[2.0] * 2 + [4.0] * 2], [6.0] * 4, tolerance="1.5x>=0.1")
    found = made.by_learner(events.append, memory=4, partition=OneEach(3))
    kept = stored_losses(found, 0)
    assert found.core.tolerances.values == pytest.approx([1.5 * kept[0], 9.0])
    told = [event for event in events if isinstance(event, ToleranceSet)]
    assert [(e.constrained, e.old) for e in told] == [(0, pytest.approx(4.5)), (1, None)]
    assert [e.new for e in told] == pytest.approx(found.core.tolerances.values)
    assert [e.reached for e in told] == pytest.approx([kept[0], 6.0])
    assert [e.reached_on_all for e in told] == [None, 6.0]
    assert [e.why.split(";")[0] for e in told] == ["other samples of it are stored", "task learned"]


def test_a_tolerance_agreed_on_for_one_task_holds_for_it_alone(constant):
    learner, stream = constant([[2.0]], [6.0], tolerance=0.5).prepared()
    learner.agree_on(1, 0.7)
    learner.absorb(stream.tasks[1])
    assert learner.core.tolerances.values == [0.5, 0.7]
    learner.agree_on(2, "5%")
    assert [learner.core.tolerances.of(k).unit for k in range(3)] == ["loss", "loss", "error"]


def test_references_shrink_to_what_the_last_dual_steps_saw(constant):
    """The task's loss at the end is 6, its running mean over dual steps 2: ε = 1.5 × 6 × 2/6."""
    learner, stream = constant([[1.0]], [6.0] * 4, tolerance="1.5x>=0.1").prepared()
    learner.begin(stream.tasks[1], 1)
    learner.core.progress.recent = 2.0
    learner.end(stream.tasks[1])
    assert learner.core.tolerances.values[1] == pytest.approx(3.0)


def test_the_running_mean_moves_a_fifth_of_the_way_at_each_dual_step(constant):
    learner, _ = constant([[1.0]], [6.0] * 4).prepared()
    core = learner.core
    core.begin(4, 2)
    for loss in (1.0, 3.0):
        core.observe(torch.tensor([0]), torch.tensor([loss]), 1)
    core.measure(learner.evaluated)
    assert core.progress.recent == pytest.approx(2.0)
    core.observe(torch.tensor([0]), torch.tensor([7.0]), 1)
    core.measure(learner.evaluated)
    assert core.progress.recent == pytest.approx(2.0 + 0.2 * 5.0)


@pytest.mark.parametrize(
    ("written", "total", "places", "expected"),
    [
        ("dual", 5000, 300, 1200),
        ("dual", 5000, 10, 1000),
        ("dual", 700, 10, 700),
        ("dual:candidates=0", 5000, 10, 5000),
        ("dual:candidates=2", 5000, 900, 1800),
    ],
)
def test_so_many_samples_are_scored_for_each_place(written, total, places, expected):
    data = TensorData(torch.zeros(total, 1), torch.zeros(total, 1))
    scored = []

    def score(candidates):
        scored.extend(candidates.tolist())
        return torch.ones(len(candidates))

    chosen, _ = chosen_positions(rule("selection", written), data, places, score, torch.Generator().manual_seed(0))
    assert len(set(scored)) == len(scored) == expected
    assert len(set(chosen.tolist())) == places
    assert set(chosen.tolist()) <= set(scored)


def test_nothing_is_kept_for_each_sample_where_selection_does_not_ask(constant):
    learner, stream = constant([[1.0]], [2.0, 3.0]).prepared()
    learner.begin(stream.tasks[1], 1)
    assert len(learner.core.progress.shadow) == 0
