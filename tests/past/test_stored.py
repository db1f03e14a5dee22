"""What a past of stored samples tells and keeps, from memories that are written by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from pdcl.algorithm.constraints import task_sets
from pdcl.algorithm.rules import rule
from pdcl.algorithm.selection_rules import ByDual, Uniform
from pdcl.errors import UsageError
from pdcl.judging.witnesses import look_at_witnesses
from pdcl.limits.limits import as_limits
from pdcl.objective import OBJECTIVES
from pdcl.past.held_back import GUARD, REPLAY, WITNESS, Counts, allowed
from pdcl.past.refill import View, chosen_positions, divided, kept_slots
from pdcl.past.registry import Registry
from pdcl.past.repeats import held_hashes, hold_back_once
from pdcl.past.segments import Segments
from pdcl.past.store import Memory
from pdcl.past.stored import StoredSamples
from pdcl.streams.data import TensorData

OLD = {"x", "y", "task", "id", "dual", "reference"}
CPU = torch.device("cpu")


def memory(role: list[int], task: list[int], **more: Tensor) -> Memory:
    n, held = len(role), Memory(50)
    columns: dict[str, Any] = {"x": torch.zeros(n, 2), "y": torch.zeros(n).long(), "task": torch.tensor(task)}
    columns |= {"id": torch.arange(n), "role": torch.tensor(role, dtype=torch.uint8), "dual": torch.zeros(n)}
    held.append(**columns, reference=torch.linspace(1, 2, n), wrong=torch.zeros(n), **more)
    return held


def random() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_what_a_task_reached_is_its_mean_over_each_sample_once_and_over_512_of_many() -> None:
    past, read = StoredSamples(Memory(5), OBJECTIVES["regression"], CPU), []
    for n in (3, 2000):
        x = torch.arange(float(n))[:, None]

        def forward(x: Tensor) -> Tensor:
            read.append(len(x))
            return x

        found = past.reached(TensorData(x, torch.zeros(n, 1)), forward)
        assert math.isnan(found.error)
        if n == 3:
            assert found.loss == pytest.approx(float(past.goal.loss(x, torch.zeros(n, 1)).mean()))
    assert read == [3, 512]


def test_outputs_are_recorded_only_where_somebody_asks_for_them() -> None:
    for asked, recorded in (({}, False), ({"records": True}, True)):
        past = StoredSamples(Memory(9), OBJECTIVES["regression"], CPU, **asked)
        past.allocate(TensorData(torch.zeros(3, 1), torch.zeros(3, 1)), lambda x: x)
        assert ("outputs" in past.memory.columns) == recorded


def test_classes_are_balanced_among_the_samples_that_are_not_held_back() -> None:
    y = torch.tensor([0] * 90 + [1] * 10)
    data, trained = TensorData(torch.zeros(100, 2), y), torch.arange(100)[torch.arange(100) % 10 != 0]
    chosen, _ = chosen_positions(Uniform(), View(data, trained), 8, lambda c: torch.zeros(len(c)), random())
    assert y[trained[chosen]].bincount().tolist() == [4, 4]


def test_a_segment_has_a_limit_once_it_is_both_replayed_and_measured() -> None:
    """Guards measure: of "old" no sample is replayed, of "new" no guard is there, of "both" both."""
    segments = Segments(as_limits({"plan=old": 0.2, "plan=new": 0.2, "plan=both": 0.2}).segments)
    codes = torch.tensor([[1], [2], [3], [3]], dtype=torch.int16)
    past = StoredSamples(
        memory([GUARD, REPLAY, REPLAY, GUARD], [0] * 4, codes=codes), OBJECTIVES["classification"], CPU,
        segments=segments,
    )  # fmt: skip
    layout = past.lay_out(1, by_sample=False, soften=0.0, learned=[4])
    found = past.segment_limits(layout.sets, layout.measured_on, 1)
    assert [math.isnan(each) for each in found] == [True, True, False]
    assert found[2] == 0.2


def test_a_memory_of_an_older_format_was_replayed_whole_and_knows_errors_only_where_limits_were_in_them() -> None:
    held = Memory(50)
    now = memory([REPLAY] * 4, [0, 0, 1, 1])
    held.append(**{name: now[name] for name in OLD})
    past = StoredSamples(held, OBJECTIVES["classification"], CPU)
    past.upgrade([True, False])
    assert held["role"].tolist() == [REPLAY] * 4
    assert torch.equal(held["wrong"][:2], held["reference"][:2])
    assert bool(held["wrong"][2:].isnan().all())
    empty = Memory(50)
    empty.allocate(**{name: now[name] for name in OLD})
    StoredSamples(empty, OBJECTIVES["classification"], CPU).upgrade([])
    assert len(empty["wrong"]) == len(empty["role"]) == 0


def test_without_duals_of_samples_any_of_them_stay() -> None:
    tasks = task_sets(torch.tensor([0] * 6 + [1] * 6), 2)
    kept = kept_slots(ByDual(), tasks, [2, 6], None, torch.zeros(12).long(), random())
    assert len(kept) == len(kept.unique()) == 8
    assert kept[2:].tolist() == [*range(6, 12)]


def test_a_group_stays_on_its_side_in_later_tasks() -> None:
    """Group 7 has a stored witness, so it isn't trained on; group 8 was replayed, so it is no witness."""
    held = memory([WITNESS, REPLAY], [0, 0], group=torch.tensor([7, 8]))
    groups = torch.tensor([7, 8, *range(100, 118)])
    data = TensorData(torch.rand(20, 2), torch.zeros(20).long())
    for seed in range(20):
        found = hold_back_once(data, Counts(0, 2), torch.Generator().manual_seed(seed), groups, held, None)
        assert 0 not in found.trained.tolist()
        assert 1 in found.trained.tolist()
        assert len(found.witnesses) == 2


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("copies", [1, 3])
def test_no_class_is_held_back_whole(grouped: bool, copies: int) -> None:
    """Each of six classes is one sample, its copies, or one group; four witnesses come from the two large ones."""
    y = torch.cat([torch.arange(6).repeat_interleave(copies), torch.tensor([6, 7] * 20)])
    x = y[:, None].float() if copies > 1 else torch.rand(len(y), 1)
    x[6 * copies :] = torch.rand(40, 1)
    groups = torch.cat([y[: 6 * copies], torch.arange(100, 140)]) if grouped else None
    for seed in range(40):
        found = hold_back_once(
            TensorData(x, y), Counts(2, 2), torch.Generator().manual_seed(seed), groups, Memory(9), None
        )
        assert set(y[found.trained].tolist()) == set(range(8))
        assert len(found.guards) + len(found.witnesses) == 4


def test_without_guards_and_witnesses_a_task_is_searched_for_copies_only_where_some_are_stored() -> None:
    data = TensorData(torch.cat([torch.zeros(1, 2), torch.rand(4, 2)]), torch.zeros(5).long())
    for stored, left in ((REPLAY, None), (WITNESS, [1, 2, 3, 4]), (GUARD, [1, 2, 3, 4])):
        past = StoredSamples(memory([stored], [0]), OBJECTIVES["classification"], CPU, guard=0, witness=0)
        found = past.hold_back(data, None, True, random())
        assert (None if found is None else found.trained.tolist()) == left


def test_a_memory_of_an_older_format_holds_nothing_back() -> None:
    older, empty = Memory(9), Memory(9)
    older.append(x=torch.rand(3, 2), y=torch.zeros(3).long())
    empty.allocate(x=torch.rand(1, 2), y=torch.zeros(1).long(), role=torch.zeros(1, dtype=torch.uint8))
    assert [held_hashes(each).tolist() for each in (older, empty, memory([REPLAY], [0]))] == [[]] * 3
    assert len(held_hashes(memory([GUARD, REPLAY, WITNESS], [0] * 3))) == 2


def test_of_data_in_files_no_sample_is_left_out_as_a_copy() -> None:
    """They aren't read for it: twenty equal samples, of which two are witnesses and the others trained on."""
    data = TensorData(torch.zeros(20, 2), torch.zeros(20).long())
    data.in_memory = False
    found = hold_back_once(data, Counts(0, 2), random(), None, Memory(9), None)
    assert (len(found.trained), len(found.witnesses)) == (18, 2)


def test_targets_that_are_numbers_are_no_classes_that_want_places() -> None:
    """With 300 classes a memory of 400 would have no place for witnesses."""
    past = StoredSamples(Memory(400), OBJECTIVES["regression"], CPU)
    for targets, witnesses in ((torch.rand(300), 50), (torch.rand(300, 1), 50), (torch.arange(300), 0)):
        assert past.wanted(TensorData(torch.zeros(300, 2), targets), limited=True).witnesses == witnesses


def test_memory_with_fewer_places_than_tasks_is_refused_and_with_few_it_is_divided_evenly() -> None:
    by_bound = rule("partition", "generalization:minimum=5")
    with pytest.raises(UsageError, match="memory=1KB holds 2 samples, fewer than the 3 tasks so far"):
        divided(by_bound, [1.0, 1.0, 0.0], "1KB", 2, [9, 9, 9])
    few = divided(by_bound, [1.0, 1.0, 0.0], "1KB", 3, [9, 9, 9])
    assert (few.counts, few.note) == ([1, 1, 1], "memory of 3 is below 5 samples for each of 3 tasks: divided evenly")
    assert divided(by_bound, [1.0, 1.0, 0.0], "1KB", 15, [9, 9, 9]).note is None


def test_guards_beside_a_single_witness_share_half_of_memory() -> None:
    assert allowed(100, 1, limited=True, capacity=100, tasks=1) == Counts(25, 1)


@pytest.mark.parametrize("bound", ["10B", "35B"])
def test_a_restored_memory_of_bytes_holds_as_many_samples(bound: str) -> None:
    """Rows of a single byte are the smallest there are."""
    first, second = Memory(bound), Memory(bound)
    first.add_reservoir(random(), x=torch.arange(10, dtype=torch.uint8))
    second.load_state_dict(first.state_dict())
    assert second.capacity == first.capacity == int(bound[:-1])
    for each in (first, second):
        each.add_reservoir(random(), x=torch.arange(10, 90, dtype=torch.uint8))
    assert first["x"].tolist() == second["x"].tolist()


def test_a_memory_of_one_column_goes_back_too() -> None:
    held = Memory(9)
    held.append(x=torch.arange(6))
    before = held.snapshot()
    held.replace(torch.tensor([5, 2]), x=torch.tensor([70, 71]))
    held.restore(before)
    assert held["x"].tolist() == [*range(6)]


def test_what_a_task_had_is_told_by_its_guards_else_by_what_is_replayed_in_the_unit_of_its_limit() -> None:
    held = memory([REPLAY, REPLAY, GUARD, WITNESS, REPLAY, REPLAY], [0, 0, 0, 0, 1, 1])
    held["wrong"].copy_(torch.tensor([0.0, 0.0, 1.0, 0.0, 1.0, 0.0]))
    held["reference"].copy_(torch.tensor([1.0, 2.0, 5.0, 9.0, 3.0, 4.0]))
    past = StoredSamples(held, OBJECTIVES["classification"], CPU)
    assert past.references(3, [False] * 3) == [5.0, 3.5, 0.0]
    assert past.references(3, [True] * 3) == [1.0, 0.5, 0.0]
    assert past.references(2, [True, False]) == [1.0, 3.5]


def test_drift_is_measured_on_the_outputs_that_have_a_record() -> None:
    """A head that grew has no record of its new outputs."""
    nan = torch.nan
    for recorded, expected in (([[1.0, 2.0], [3.0, 4.0]], [4.0, 0.5]), ([[1.0, nan], [nan, nan]], [4.0, 0.0])):
        held = memory([REPLAY] * 2, [0] * 2, outputs=torch.tensor(recorded))
        past = StoredSamples(held, OBJECTIVES["classification"], CPU, records=True)
        past.lay_out(1, by_sample=False, soften=0.0, learned=[2])
        outputs = torch.tensor([[3.0, 4.0], [3.0, 5.0]])
        assert past.recorded.drift(outputs, past.recorded.of(torch.arange(2))).tolist() == expected


def test_samples_stored_before_a_limit_on_a_column_have_no_value_of_it() -> None:
    held, later = memory([REPLAY] * 3, [0] * 3), torch.tensor([[1], [0], [1]], dtype=torch.int16)
    one, two = (dict.fromkeys(names, 0.2) for names in (["plan=old"], ["plan=old", "age=60"]))
    StoredSamples(held, OBJECTIVES["classification"], CPU, segments=Segments(as_limits(one).segments)).upgrade([False])
    assert held["codes"].tolist() == [[0]] * 3
    held["codes"].copy_(later)
    for limits, width in ((one, 1), (two, 2)):
        past = StoredSamples(held, OBJECTIVES["classification"], CPU, segments=Segments(as_limits(limits).segments))
        past.upgrade([False])
        assert held["codes"].tolist() == [[*row, *[0] * (width - 1)] for row in later.tolist()]


def test_what_a_task_only_looks_at_is_not_copied_for_the_journal() -> None:
    """Records of outputs are the widest column, and methods may edit them in place."""
    segments = Segments(as_limits({"plan=old": 0.2}).segments)
    more = {"codes": torch.ones(4, 1, dtype=torch.int16), "group": torch.arange(4), "outputs": torch.rand(4, 30)}
    held = memory([REPLAY, REPLAY, GUARD, WITNESS], [0] * 4, **more)
    past = StoredSamples(held, OBJECTIVES["classification"], CPU, records=True, witness=2, segments=segments)
    registry = Registry(task_samples=[40], smallest_groups=[1], trained_here=[True])
    before = held.snapshot()
    past.lay_out(1, by_sample=False, soften=1.0, learned=[40])
    data = TensorData(torch.rand(20, 2), torch.zeros(20).long())
    past.hold_back(data, torch.arange(20), True, random())
    past.references(1, [True])
    look_at_witnesses(past, registry, lambda x: torch.rand(len(x), 30))
    assert before.nbytes == 0
    held["outputs"].zero_()
    held.restore(before)
    assert torch.equal(held["outputs"], more["outputs"])
