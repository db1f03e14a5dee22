"""A split keeps every sample exactly once, in the task its class belongs to, and never divides a group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pdcl.errors import UsageError
from pdcl.streams.checks import BadData
from pdcl.streams.class_split import split
from pdcl.streams.data import Data, everything
from pdcl.streams.task import Stream


def marks(data: Data) -> list[int]:
    """Which rows of x these are: tests put a row's number into it."""
    return data.fetch(everything(data))[0][:, 0].long().tolist()


def numbered(labels: list[Any]) -> tuple[torch.Tensor, np.ndarray]:
    return torch.arange(len(labels), dtype=torch.float32)[:, None].repeat(1, 2), np.array(labels)


def all_marks(stream: Stream) -> list[int]:
    return [mark for task in stream.tasks for data in (task.data, task.test) for mark in marks(data)]


label_lists = st.lists(st.integers(-3, 6), min_size=2, max_size=60).map(lambda some: some * 2)


@given(label_lists, st.integers(1, 4), st.one_of(st.none(), st.integers(0, 9)), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_every_sample_is_in_exactly_one_task_and_on_one_side(
    labels: list[int], per_task: int, order: int | None, seed: int
) -> None:
    x, y = numbered(labels)
    stream = split(x, y, classes_per_task=per_task, order_seed=order, seed=seed)
    assert sorted(all_marks(stream)) == list(range(len(labels)))
    sizes = [len(task.classes) for task in stream.tasks]
    assert all(size == per_task for size in sizes[:-1])
    assert sum(sizes) == len(set(labels))
    for task in stream.tasks:
        for data in (task.data, task.test):
            shown = [stream.spec.labels[target] for target in data.targets.tolist()]
            assert shown == [labels[mark] for mark in marks(data)]
            assert set(data.targets.tolist()) <= set(task.classes)


@given(label_lists, st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_carving_takes_a_fifth_of_every_class_and_leaves_some(labels: list[int], seed: int) -> None:
    x, y = numbered(labels)
    stream = split(x, y, classes_per_task=1, seed=seed)
    for task in stream.tasks:
        count = len(task.data) + len(task.test)
        assert len(task.test) == max(1, round(0.2 * count))
        assert len(task.data) >= 1


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_no_group_is_divided_even_where_it_speaks_in_several_tasks(seed: int) -> None:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 6, 300).tolist()
    groups = generator.integers(0, 40, 300)
    x, y = numbered(labels)
    stream = split(x, y, groups=[f"speaker {group}" for group in groups], seed=seed)
    train = {groups[mark] for task in stream.tasks for mark in marks(task.data)}
    test = {groups[mark] for task in stream.tasks for mark in marks(task.test)}
    assert not train & test
    assert 0.1 < len([1 for task in stream.tasks for _ in marks(task.test)]) / 300 < 0.3
    tuned = stream.for_tuning(0.2, seed)
    train = {groups[mark] for task in tuned.tasks for mark in marks(task.data)}
    validation = {groups[mark] for task in tuned.tasks for mark in marks(task.test)}
    assert not train & validation


def test_class_order_is_a_permutation_that_the_seed_fixes() -> None:
    x, y = numbered(list(range(10)) * 5)
    orders = [split(x, y, order_seed=seed).spec.labels for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[2]) == list(range(10))
    assert split(x, y).spec.labels == tuple(range(10))


def test_labels_may_be_strings_negative_numbers_or_whole_floats() -> None:
    x, _ = numbered([0] * 12)
    assert split(x, ["owl", "cat", "fox"] * 4).spec.labels == ("cat", "fox", "owl")
    assert split(x, [-7, 900] * 6).spec.labels == (-7, 900)
    assert split(x, np.array([1.0, 2.0] * 6)).spec.labels == (1, 2)
    assert split(x, np.array(["a", 1] * 6, dtype=object)).spec.labels == (1, "a")
    assert split(x, torch.tensor([[3], [4]] * 6)).spec.labels == (3, 4)


def test_a_remainder_class_is_a_smaller_last_task() -> None:
    x, y = numbered([0, 1, 2] * 5)
    assert split(x, y).spec.heads == ((0, 1), (2,))


def test_tasks_may_be_named_unequal_and_leave_a_class_out() -> None:
    x, y = numbered(["a", "b", "c", "d"] * 5)
    stream = split(x, y, tasks=[["d"], ["a", "b"]])
    assert stream.spec.labels == ("d", "a", "b")
    assert [task.name for task in stream.tasks] == ["d", "a, b"]
    assert len(all_marks(stream)) == 15


def test_given_test_data_are_used_and_divided_alike() -> None:
    x, y = numbered([0, 1, 2, 3] * 5)
    stream = split(x, y, test=(x[:8] + 100, y[:8]))
    assert [len(task.data) for task in stream.tasks] == [10, 10]
    assert sorted(mark for task in stream.tasks for mark in marks(task.test)) == list(range(100, 108))


def test_inputs_keep_their_type_except_doubles() -> None:
    for dtype, kept in (("uint8", torch.uint8), ("int16", torch.int16), ("float64", torch.float32)):
        stream = split(np.zeros((8, 3), dtype=dtype), [0, 1] * 4)
        assert stream.spec.dtype == kept
        assert stream.spec.shape == (3,)


def test_the_fingerprint_tells_data_apart() -> None:
    x, y = numbered([0, 1] * 10)
    changed = x.clone()
    changed[3] += 1
    same, other = split(x.clone(), y).fingerprint, split(changed, y).fingerprint
    assert split(x, y).fingerprint == same != other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": [[0], [0, 1]]}, "twice"),
        ({"tasks": [[0], [7]]}, r"\[7\], which y doesn't hold"),
        ({"tasks": [[0], [1]], "order_seed": 1}, "no effect"),
        ({"classes_per_task": 0}, "at least 1"),
        ({"test_share": 1.5}, "between 0 and 1"),
        ({"groups": ["a"] * 3}, "one group per sample"),
        ({"groups": ["a"] * 12}, "empty"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    x, y = numbered([0, 1] * 6)
    with pytest.raises((BadData, UsageError), match=message):
        split(x, y, **options)


def test_a_group_on_both_sides_is_refused() -> None:
    x, y = numbered([0, 1] * 4)
    with pytest.raises(BadData, match="1 groups are in training and in test data \\(ann\\)"):
        split(x, y, test=(x, y), groups=["ann", "bob"] * 4, test_groups=["ann", "eve"] * 4)


class Counted(int):
    """A label that counts how often it is compared."""

    compared = 0
    __hash__ = int.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return int(self) == int(other)


@pytest.mark.parametrize("named", [False, True], ids=["by-number", "by-name"])
def test_twice_as_many_classes_cost_about_twice_the_comparisons(named):
    """Labels are looked up, never searched for: a search would take four times as many."""
    counts = []
    for classes in (200, 400):
        labels = [Counted(i) for i in range(classes)]
        y = np.asarray(labels * 4, dtype=object)
        plan = [labels[i : i + 10] for i in range(0, classes, 10)] if named else None
        Counted.compared = 0
        split(np.zeros((len(y), 2), np.float32), y, tasks=plan, classes_per_task=10)
        counts.append(Counted.compared)
    assert counts[1] <= 2.5 * counts[0] + 100


@pytest.mark.parametrize("seed", range(5))
def test_every_task_holds_the_samples_of_its_classes_in_their_order(seed):
    random = np.random.default_rng(seed)
    y = random.integers(0, 30, 400)
    x = np.arange(400, dtype=np.float32)[:, None]
    test = (x + 1000, random.integers(0, 30, 400))
    plan = np.split(random.permutation(24), 6)
    stream = split(x, y, test=test, tasks=[members.tolist() for members in plan])
    for task, members in zip(stream.tasks, plan, strict=True):
        for data, (inputs, labels) in ((task.data, (x, y)), (task.test, test)):
            held = data.fetch(torch.arange(len(data)))[0]
            assert held.flatten().tolist() == inputs[np.isin(labels, members)].flatten().tolist()


def test_a_hundred_thousand_classes_are_split():
    """Linear in classes and samples; where it was quadratic, this took many minutes."""
    y = np.repeat(np.arange(100_000), 2)
    stream = split(np.zeros((len(y), 1), np.float32), y, classes_per_task=1000)
    assert len(stream.tasks) == 100
    assert all(len(task.data) == len(task.test) == 1000 for task in stream.tasks)
