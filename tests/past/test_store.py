"""Memory holds what it was given, in the dtype it came in, and never more than its bound."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pdcl.errors import UsageError
from pdcl.past.bound import parse_bound
from pdcl.past.origins import Origins, bytes_by_row, rows_apart, rows_left_out
from pdcl.past.store import Memory


def rows(ids, classes=None):
    ids = torch.as_tensor(ids)
    return {
        "x": ids.to(torch.uint8).reshape(-1, 1).expand(-1, 4).clone(),
        "y": ids if classes is None else torch.as_tensor(classes),
        "task": torch.zeros(len(ids), dtype=torch.long),
        "id": ids,
    }


@pytest.mark.parametrize(
    ("bound", "meaning"),
    [
        (500, (500, None)),
        ("500", (500, None)),
        ("64MB", (None, 64_000_000)),
        ("1.5KiB", (None, 1536)),
        ("2gb", (None, 2 * 10**9)),
    ],
)
def test_a_bound_is_a_number_of_samples_or_of_bytes(bound, meaning):
    assert parse_bound(bound) == meaning


@pytest.mark.parametrize("bound", ["64XB", "-3", "1.5", "many", "", 10**19, "12345678901234567890"])
def test_a_bound_that_is_neither_is_refused_by_name(bound):
    with pytest.raises(UsageError, match="neither a number of samples"):
        parse_bound(bound)


@pytest.mark.parametrize("bound", [0, "0", "0MB", "0.0B"])
def test_a_bound_that_holds_nothing_is_refused(bound):
    with pytest.raises(UsageError, match="holds nothing; give at least one sample per task"):
        parse_bound(bound)


def test_a_column_that_is_not_there_is_a_key_error():
    memory = Memory(4)
    memory.append(**rows([1]))
    with pytest.raises(KeyError, match="outputs"):
        memory["outputs"]


def test_a_memory_follows_where_its_rows_come_from():
    memory = Memory(9)
    memory.append(**rows(range(5)))
    memory.origins = Origins(5)
    memory.keep(torch.tensor([4, 0, 2]))
    memory.append(**rows([7]))
    memory.write(torch.tensor([1]), **rows([8]))
    assert memory.origins.rows.tolist() == [4, -1, 2, -1]


def test_bytes_bound_what_all_columns_take_together():
    memory = Memory("1KB")
    memory.add_reservoir(torch.Generator(), **rows(range(200)))
    each = 4 * 1 + 8 + 8 + 8
    assert memory.capacity == 1000 // each == len(memory)
    assert memory.nbytes <= 1000


def test_bytes_too_few_for_one_sample_say_what_a_sample_takes():
    with pytest.raises(UsageError, match="each takes 28 bytes"):
        Memory("27B").append(**rows([1]))
    memory = Memory("28B")
    memory.append(**rows([1]))
    assert memory.capacity == 1


def test_columns_keep_the_dtype_of_the_data():
    memory = Memory(4)
    memory.append(**rows([1, 2]))
    assert memory["x"].dtype == torch.uint8


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 12), st.integers(0, 2**31))
def test_a_reservoir_never_exceeds_its_bound_and_holds_distinct_samples(sizes, capacity, seed):
    memory, generator, start = Memory(capacity), torch.Generator().manual_seed(seed), 0
    for size in sizes:
        memory.add_reservoir(generator, **rows(range(start, start + size)))
        start += size
        assert len(memory) == min(capacity, start)
    held = memory["id"].tolist()
    assert len(set(held)) == len(held)
    assert set(held) <= set(range(start))
    assert memory["x"][:, 0].tolist() == [i % 256 for i in held]


def test_every_sample_is_held_with_the_same_probability():
    """Q ~ χ²(N−1) under uniformity; the test fails by chance once in 10⁴ seeds."""
    n, capacity, repeats = 40, 10, 800
    generator, counts = torch.Generator().manual_seed(5), np.zeros(n)
    for _ in range(repeats):
        memory = Memory(capacity)
        for part in torch.arange(n).split(7):
            memory.add_reservoir(generator, **rows(part))
        counts[memory["id"].numpy()] += 1
    share = capacity / n
    q = ((counts - repeats * share) ** 2).sum() / (repeats * share * (1 - share) * n / (n - 1))
    assert stats.chi2.sf(q, n - 1) > 1e-4


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8), min_size=1, max_size=12),
    st.integers(4, 17),
)
def test_rings_hold_the_newest_of_each_class(batches, capacity):
    memory, seen, start = Memory(capacity), [], 0
    for batch in batches:
        data = rows(range(start, start + len(batch)), batch)
        memory.allocate(**data)
        if start == 0:
            memory.start_ring(4)
        memory.add_ring(torch.tensor(batch), **data)
        assert len(memory.state_dict()["ring"]["table"]) <= capacity, "no more places than the rings may have"
        seen += list(zip(range(start, start + len(batch)), batch, strict=True))
        start += len(batch)
    quota = capacity // 4
    expected = {i for label in range(4) for i in [i for i, y in seen if y == label][-quota:]}
    assert set(memory["id"].tolist()) == expected
    assert len(memory) == len(expected)


def test_rings_shrink_to_their_newest_when_classes_are_added():
    memory = Memory(8)
    first = rows(range(9), [0, 1, 0, 1, 0, 1, 0, 1, 0])
    memory.allocate(**first)
    memory.start_ring(2)
    memory.add_ring(first["y"], **first)
    memory.start_ring(4)
    assert sorted(memory["id"].tolist()) == [5, 6, 7, 8]
    memory.add_ring(torch.tensor([2, 2, 2, 0]), **rows(range(9, 13), [2, 2, 2, 0]))
    assert sorted(memory["id"].tolist()) == [5, 7, 8, 10, 11, 12]


def test_a_ring_for_each_class_needs_room_for_each_class():
    memory = Memory(3)
    memory.append(**rows([0]))
    with pytest.raises(UsageError, match="smaller than the 4 classes"):
        memory.start_ring(4)


def test_a_ring_must_be_started():
    with pytest.raises(UsageError, match="start_ring"):
        Memory(3).add_ring(torch.tensor([0]), **rows([0]))


@pytest.mark.parametrize("size", [40, 6000])
def test_draws_are_distinct_and_uniform(size):
    """χ² over slots; false alarm once in 10⁴ seeds. 6,000 takes the path for large memories."""
    memory = Memory(size)
    memory.append(x=torch.zeros(size, 1, dtype=torch.uint8))
    generator, counts = torch.Generator().manual_seed(1), torch.zeros(size)
    draws = 20 * size // 10
    for _ in range(draws):
        slots = memory.draw(10, generator)
        assert len(slots.unique()) == 10
        counts[slots] += 1
    share = 10 / size
    q = float(((counts - draws * share) ** 2).sum() / (draws * share * (1 - share) * size / (size - 1)))
    assert 1e-4 < stats.chi2.sf(q, size - 1) < 1 - 1e-4


def test_a_draw_is_capped_by_what_is_held():
    memory = Memory(9)
    memory.append(**rows([1, 2, 3]))
    assert sorted(memory.draw(10, torch.Generator()).tolist()) == [0, 1, 2]


def test_replace_keeps_rows_in_order_and_adds_behind_them():
    memory = Memory(5)
    memory.append(**rows([10, 11, 12, 13]))
    memory.replace(torch.tensor([3, 0]), **rows([20, 21]))
    assert memory["id"].tolist() == [13, 10, 20, 21]
    assert memory["x"][:, 0].tolist() == [13, 10, 20, 21]


def test_more_than_fits_is_refused_and_changes_nothing():
    memory = Memory(2)
    memory.append(**rows([1]))
    with pytest.raises(UsageError, match="2 more samples don't fit: 1 of 2"):
        memory.append(**rows([2, 3]))
    assert memory["id"].tolist() == [1]


def test_other_columns_shapes_and_dtypes_are_refused():
    memory = Memory(4)
    memory.append(**rows([1]))
    with pytest.raises(UsageError, match="columns"):
        memory.append(x=torch.zeros(1, 4, dtype=torch.uint8))
    with pytest.raises(UsageError, match=r"'x' holds \(4,\) torch.uint8, got \(5,\)"):
        memory.append(**{**rows([1]), "x": torch.zeros(1, 5, dtype=torch.uint8)})
    with pytest.raises(UsageError, match="same shape and dtype"):
        memory.append(**{**rows([1]), "x": torch.zeros(1, 4)})


def test_a_restored_memory_goes_on_as_the_first():
    first, second = Memory(6), Memory(6)
    generator = torch.Generator().manual_seed(2)
    first.add_reservoir(generator, **rows(range(9)))
    second.load_state_dict(first.state_dict())
    twin = torch.Generator()
    twin.set_state(generator.get_state())
    for memory, random in ((first, generator), (second, twin)):
        memory.add_reservoir(random, **rows(range(9, 40)))
    assert first["id"].tolist() == second["id"].tolist()
    assert first.seen == second.seen == 40


def test_a_restored_ring_goes_on_as_the_first():
    first, second = Memory(6), Memory(6)
    data = rows(range(7), [0, 1, 0, 1, 1, 1, 0])
    first.allocate(**data)
    first.start_ring(2)
    first.add_ring(data["y"], **data)
    second.load_state_dict(first.state_dict())
    for memory in (first, second):
        memory.add_ring(torch.tensor([0, 1]), **rows([7, 8], [0, 1]))
    assert first["id"].tolist() == second["id"].tolist()


def test_a_state_of_another_bound_is_refused():
    with pytest.raises(UsageError, match="bounded by 6, this one by 7"):
        Memory(7).load_state_dict(Memory(6).state_dict())


def test_capacity_in_bytes_is_unknown_before_the_first_sample():
    with pytest.raises(UsageError, match="before its first sample"):
        _ = Memory("1MB").capacity


def test_a_state_and_the_rows_that_are_written_apart_make_the_whole():
    memory = Memory(9)
    memory.append(**rows(range(5)), dual=torch.ones(5))
    whole, apart = memory.state_dict()["columns"], rows_apart(memory, torch.arange(5))
    with rows_left_out(memory):
        left = memory.state_dict()["columns"]
    assert left.keys() == {"dual"}
    assert apart.keys() == whole.keys() - left.keys()
    assert all(torch.equal({**left, **apart}[name], column) for name, column in whole.items())
    assert bytes_by_row(memory) == sum(column.nbytes for column in apart.values())
    assert memory.state_dict()["columns"].keys() == whole.keys(), "only within"
